/**
 * What `relevo agent` sends of its machine's metadata: one thing that it said, as it said it. Free of zod, because the agent is on every node and has to be
 * small; `parse-agent-report.ts` reads it.
 */
import { formatInstant, type Instant } from "../kernel/clock.ts";

export interface AgentReport {
  /** As the node's `spec.providerID`. */
  readonly providerID: string;
  /** The path in the metadata that said it, below what all paths of the cloud have in common. */
  readonly kind: string;
  /** `gone`: it is not said any more. */
  readonly state: "present" | "gone";
  /** As the cloud wrote it when it was seen first. */
  readonly document: unknown;
  /** When it was seen first, by the node's own clock (RFC 3339). It tells two of a kind apart and counts for nothing else. */
  readonly seenAt: string;
  /** How long ago that was when this was sent. */
  readonly ageMs: number;
  /** Of the machine's kernel; null where it has none to tell. */
  readonly bootId: string | null;
  /** What the machine is called where its cloud names several at once. */
  readonly machineName?: string;
}

/** More is said of nothing: a machine that was to go so long ago is gone, and what stands for weeks has its own time. */
export const MAX_AGE_MS = 24 * 3_600_000;

/** Who the machine is. */
export interface MachineIdentity {
  readonly providerID: string;
  readonly machineName?: string;
}

export function agentReport(
  { providerID, machineName }: MachineIdentity,
  said: { readonly kind: string; readonly state: "present" | "gone"; readonly document: unknown; readonly seenAt: Instant },
  { ageMs, bootId }: { readonly ageMs: number; readonly bootId: string | null },
): AgentReport {
  const { kind, state, document, seenAt } = said;
  return {
    providerID,
    kind,
    state,
    document,
    seenAt: formatInstant(seenAt),
    ageMs: Math.min(MAX_AGE_MS, Math.max(0, Math.round(ageMs))),
    bootId,
    ...(machineName === undefined ? {} : { machineName }),
  };
}
