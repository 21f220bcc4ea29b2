/** What goes wrong, and when: a schedule as data, drawn from the seed before the run begins. Shares and picks are in [0, 1), times in ms. */
import { integerBetween, type Random } from "../kernel/random.ts";
import type { WatchBreak } from "./ports.ts";
import type { Side } from "./process.ts";
import { chance, pick } from "./seeded.ts";

export type Fault =
  /** `pick` chooses among the nodes, those that carry an instance first. `clearsAfterMs`: the drift goes away again. */
  | { readonly kind: "node_drift"; readonly pick: number; readonly clearsAfterMs: number | null }
  | { readonly kind: "node_deletion"; readonly pick: number }
  | { readonly kind: "node_death"; readonly pick: number; readonly returnsAfterMs: number | null; readonly sameUid: boolean }
  | { readonly kind: "node_frozen"; readonly pick: number; readonly forMs: number }
  /** The cloud takes the machine after its lead; the notice arrives `delayMs` later than it was decided, `copies` times. */
  | { readonly kind: "spot_notice"; readonly pick: number; readonly delayMs: number; readonly copies: number }
  | { readonly kind: "unknown_machine_notice" }
  | { readonly kind: "malformed_notice"; readonly variant: number }
  | { readonly kind: "boot_failure"; readonly containers: number }
  | { readonly kind: "process_crash"; readonly pick: number }
  | { readonly kind: "process_sick"; readonly pick: number; readonly forMs: number }
  | { readonly kind: "api_errors"; readonly share: number; readonly forMs: number }
  | { readonly kind: "lost_replies"; readonly share: number; readonly forMs: number }
  | { readonly kind: "conflicts"; readonly share: number; readonly forMs: number }
  | { readonly kind: "driver_errors"; readonly share: number; readonly forMs: number }
  | { readonly kind: "watch_break"; readonly how: WatchBreak }
  | { readonly kind: "controller_crash"; readonly afterCalls: number; readonly side: Side; readonly downMs: number }
  | { readonly kind: "store_failing"; readonly share: number; readonly forMs: number }
  /** Somebody else claims the pool for a moment: the running controller is deposed and finds out. */
  | { readonly kind: "deposed" }
  | { readonly kind: "gateway_silent"; readonly pick: number; readonly forMs: number }
  | { readonly kind: "gateway_restart"; readonly pick: number; readonly downMs: number }
  | { readonly kind: "mode_off"; readonly forMs: number }
  | { readonly kind: "resize"; readonly by: number; readonly forMs: number }
  /** Events arrive later, in their order; calls are as quick as ever. */
  | { readonly kind: "watch_lag"; readonly lagMs: number; readonly forMs: number }
  /** Somebody deletes a pod, or the operator asks for a drain, or freezes the pool. */
  | { readonly kind: "pod_deletion"; readonly pick: number }
  | { readonly kind: "operator_drain"; readonly pick: number }
  | { readonly kind: "freeze"; readonly forMs: number }
  | { readonly kind: "foreign_cordon"; readonly pick: number; readonly forMs: number };

export type FaultKind = Fault["kind"];

export interface PlannedFault {
  readonly atMs: number;
  readonly fault: Fault;
}

const MAKERS: { readonly [K in FaultKind]: (random: Random) => Extract<Fault, { kind: K }> } = {
  node_drift: (random) => ({
    kind: "node_drift",
    pick: random.next(),
    clearsAfterMs: chance(random, 0.25) ? between(random, 500, 15_000) : null,
  }),
  node_deletion: (random) => ({ kind: "node_deletion", pick: random.next() }),
  node_death: (random) => ({
    kind: "node_death",
    pick: random.next(),
    returnsAfterMs: chance(random, 0.4) ? between(random, 500, 12_000) : null,
    sameUid: chance(random, 0.5),
  }),
  node_frozen: (random) => ({ kind: "node_frozen", pick: random.next(), forMs: between(random, 1_000, 25_000) }),
  spot_notice: (random) => ({
    kind: "spot_notice",
    pick: random.next(),
    delayMs: chance(random, 0.6) ? between(random, 0, 500) : between(random, 2_000, 40_000),
    copies: chance(random, 0.3) ? between(random, 2, 3) : 1,
  }),
  unknown_machine_notice: () => ({ kind: "unknown_machine_notice" }),
  malformed_notice: (random) => ({ kind: "malformed_notice", variant: between(random, 0, 3) }),
  boot_failure: (random) => ({ kind: "boot_failure", containers: between(random, 1, 3) }),
  process_crash: (random) => ({ kind: "process_crash", pick: random.next() }),
  process_sick: (random) => ({ kind: "process_sick", pick: random.next(), forMs: between(random, 200, 20_000) }),
  api_errors: (random) => ({ kind: "api_errors", share: share(random), forMs: between(random, 500, 20_000) }),
  lost_replies: (random) => ({ kind: "lost_replies", share: share(random), forMs: between(random, 500, 20_000) }),
  conflicts: (random) => ({ kind: "conflicts", share: share(random), forMs: between(random, 500, 20_000) }),
  driver_errors: (random) => ({ kind: "driver_errors", share: share(random), forMs: between(random, 500, 15_000) }),
  watch_break: (random) => ({ kind: "watch_break", how: pick(random, ["ended", "broken", "gone"]) }),
  controller_crash: (random) => ({
    kind: "controller_crash",
    afterCalls: between(random, 1, 60),
    side: pick(random, ["before", "after"]),
    downMs: between(random, 100, 6_000),
  }),
  store_failing: (random) => ({ kind: "store_failing", share: share(random), forMs: between(random, 500, 15_000) }),
  deposed: () => ({ kind: "deposed" }),
  gateway_silent: (random) => ({ kind: "gateway_silent", pick: random.next(), forMs: between(random, 500, 20_000) }),
  gateway_restart: (random) => ({ kind: "gateway_restart", pick: random.next(), downMs: between(random, 100, 6_000) }),
  mode_off: (random) => ({ kind: "mode_off", forMs: between(random, 2_000, 30_000) }),
  resize: (random) => ({ kind: "resize", by: pick(random, [-1, 1, 2]), forMs: between(random, 2_000, 30_000) }),
  watch_lag: (random) => ({ kind: "watch_lag", lagMs: between(random, 20, 3_000), forMs: between(random, 2_000, 20_000) }),
  pod_deletion: (random) => ({ kind: "pod_deletion", pick: random.next() }),
  operator_drain: (random) => ({ kind: "operator_drain", pick: random.next() }),
  freeze: (random) => ({ kind: "freeze", forMs: between(random, 2_000, 30_000) }),
  foreign_cordon: (random) => ({ kind: "foreign_cordon", pick: random.next(), forMs: between(random, 2_000, 40_000) }),
};

export const FAULT_KINDS = Object.keys(MAKERS) as readonly FaultKind[];

/** How often each is drawn; what moves capacity is drawn more often than what disturbs. */
const OFTEN: readonly FaultKind[] = ["node_drift", "spot_notice", "node_death", "controller_crash"];

export function planFaults(random: Random, withinMs: number, kinds: readonly FaultKind[] = FAULT_KINDS): readonly PlannedFault[] {
  const urn = [...kinds, ...kinds.filter((kind) => OFTEN.includes(kind))];
  const planned: PlannedFault[] = [];
  for (let left = between(random, 4, 12); left > 0; left--) {
    const kind = pick(random, urn);
    if (kind === undefined) break;
    // Several at the same moment, too.
    const atMs = planned.length > 0 && chance(random, 0.2) ? (planned.at(-1)?.atMs ?? 0) : between(random, 0, withinMs);
    planned.push({ atMs, fault: MAKERS[kind](random) });
  }
  return planned.toSorted((a, b) => a.atMs - b.atMs);
}

function share(random: Random): number {
  return chance(random, 0.3) ? 1 : 0.1 + random.next() * 0.5;
}

const between = integerBetween;
