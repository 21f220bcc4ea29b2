/** What is found out of a Pool before its size is left to Relevo: for each of its sites one line a check. */
import type { Finding } from "./finding.ts";

/** Of a size that follows something; it is not taken over where one refuses. */
const SCALE_CHECKS = ["signal", "credentials", "flow", "value", "owner"] as const;
/** Of a pool of Trino clusters. */
const TRINO_CHECKS = [
  "mounts",
  "qos",
  "heap",
  "memory",
  "detection",
  "grace",
  "connectors",
  "fit",
  "capability",
  "shutdown",
  "quota",
  "credential_paths",
  "exchange",
] as const;
export const PREFLIGHT_CHECKS = [...SCALE_CHECKS, ...TRINO_CHECKS] as const;

export interface PreflightRow {
  /** Several, separated by commas, where they have it in common. */
  readonly site: string;
  readonly check: (typeof PREFLIGHT_CHECKS)[number];
  /** `refused`: this Pool is not to be taken over as it stands. */
  readonly state: Finding["state"];
  readonly message: string;
  readonly todo: string | null;
}
