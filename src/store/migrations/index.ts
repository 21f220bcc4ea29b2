import { initial } from "./0001-initial.ts";
import { workloads } from "./0002-workloads.ts";
import { leaseTtl } from "./0003-lease-ttl.ts";
import { scale } from "./0004-scale.ts";
import { memberEvidence } from "./0005-member-evidence.ts";
import type { Migration } from "./migration.ts";

/** In the order of their numbers. */
export const MIGRATIONS: readonly Migration[] = [initial, workloads, leaseTtl, scale, memberEvidence];
