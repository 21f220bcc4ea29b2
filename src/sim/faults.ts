/** What goes wrong, and when: a schedule as data, drawn from the seed before the run begins. Shares and picks are in [0, 1), times in ms. */
import type { Lie } from "./jobs.ts";
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
  | { readonly kind: "foreign_cordon"; readonly pick: number; readonly forMs: number }
  // ---- notices that are not as they should be
  /** Long before the cloud takes the machine: `leadMs` instead of the lead that everybody knows. */
  | { readonly kind: "notice_early"; readonly pick: number; readonly leadMs: number }
  | { readonly kind: "notice_lost"; readonly pick: number }
  /** All messages about one machine, in the order that `order` names, each as often as `copies` says. */
  | { readonly kind: "notice_reordered"; readonly pick: number; readonly order: readonly NoticeKind[]; readonly copies: number }
  /** A real machine, of another account and region. */
  | { readonly kind: "notice_other_cluster" }
  /** Two messages that name different ends of the same machine, `apartMs` from each other; the machine goes at the earlier one. */
  | { readonly kind: "notice_two_deadlines"; readonly pick: number; readonly apartMs: number; readonly laterFirst: boolean }
  /** Nothing comes of it: the machine stays, and a message says so. */
  | { readonly kind: "notice_cancelled"; readonly pick: number; readonly afterMs: number }
  // ---- capacity
  | {
      readonly kind: "capacity_exhausted";
      readonly pick: number;
      readonly why: CapacityRefusal;
      readonly zones: number;
      readonly forMs: number;
    }
  // ---- calls that are neither answered nor refused
  | { readonly kind: "api_timeouts"; readonly share: number; readonly forMs: number }
  /** Nothing watched is heard for a while; afterwards it goes on, or all is too old (410). */
  | { readonly kind: "watch_gap"; readonly forMs: number; readonly isTooOld: boolean }
  | { readonly kind: "store_busy"; readonly upToMs: number; readonly forMs: number }
  /** A backup of `byMs` ago is restored; an operator recovers it `recoverAfterMs` later. */
  | { readonly kind: "store_rewound"; readonly byMs: number; readonly recoverAfterMs: number }
  | { readonly kind: "store_lost_replies"; readonly share: number; readonly forMs: number }
  /** The controller reaches no instance; everybody else does. */
  | { readonly kind: "prober_cut"; readonly forMs: number }
  // ---- processes that stand still, twice, or believe in another time
  | { readonly kind: "controller_pause"; readonly forMs: number }
  /**
   * The running one stands still, another begins, the first goes on with what it believed, and ends after a while. `strays`: a gateway replica whose way leads
   * to the first one again, as in a network that is parted.
   */
  | { readonly kind: "two_controllers"; readonly pausedMs: number; readonly bothMs: number; readonly strays?: number }
  /** A replica of the controller ends in good order, or dies, or stands still; only where there are several, and not in the standard mix. */
  | { readonly kind: "replica_gone"; readonly pick: number; readonly how: "ended" | "killed" | "paused"; readonly forMs: number }
  /** Another one begins beside the one that runs; one of them ends after a while. */
  | { readonly kind: "second_controller"; readonly bothMs: number; readonly firstEnds: boolean }
  | { readonly kind: "clock_jump"; readonly of: "controller" | "gateway"; readonly byMs: number; readonly backAfterMs: number | null }
  | { readonly kind: "gateway_pause"; readonly pick: number; readonly forMs: number }
  /** The replica reaches no instance; the controller does, and the other replica. */
  | { readonly kind: "gateway_unreaching"; readonly pick: number; readonly forMs: number }
  /** Silent for so long that it is given up; it returns with the generation that it had. */
  | { readonly kind: "gateway_returns"; readonly pick: number; readonly forMs: number }
  | { readonly kind: "process_pause"; readonly pick: number; readonly forMs: number }
  /** Its check passes, and it can serve nobody. */
  | { readonly kind: "process_lies"; readonly pick: number; readonly forMs: number }
  /** It hears nobody and nobody hears it, but what it writes lands; `defies`: it does not stop itself when its lease is over. */
  | { readonly kind: "writer_isolated"; readonly pick: number; readonly forMs: number; readonly defies: boolean }
  /** Clients that never end what they began. */
  | { readonly kind: "endless_work"; readonly streams: number }
  | { readonly kind: "pool_recreated" }
  // ---- of a pool that scales; not in the standard mix
  /** So many of the jobs that are taken do nothing for ever. */
  | { readonly kind: "jobs_hang"; readonly share: number; readonly forMs: number }
  | { readonly kind: "demand_lies"; readonly lie: Lie; readonly forMs: number };

export const NOTICE_KINDS = ["rebalance", "interruption", "state_change"] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];
export type CapacityRefusal = "insufficient_capacity" | "quota_exceeded";

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
  notice_early: (random) => ({ kind: "notice_early", pick: random.next(), leadMs: between(random, 60_000, 150_000) }),
  notice_lost: (random) => ({ kind: "notice_lost", pick: random.next() }),
  notice_reordered: (random) => ({
    kind: "notice_reordered",
    pick: random.next(),
    order: shuffled(random, NOTICE_KINDS),
    copies: between(random, 1, 3),
  }),
  notice_other_cluster: () => ({ kind: "notice_other_cluster" }),
  notice_two_deadlines: (random) => ({
    kind: "notice_two_deadlines",
    pick: random.next(),
    apartMs: between(random, 3_000, 30_000),
    laterFirst: chance(random, 0.5),
  }),
  notice_cancelled: (random) => ({ kind: "notice_cancelled", pick: random.next(), afterMs: between(random, 500, 20_000) }),
  capacity_exhausted: (random) => ({
    kind: "capacity_exhausted",
    pick: random.next(),
    why: pick(random, ["insufficient_capacity", "quota_exceeded"]),
    zones: between(random, 1, 2),
    forMs: between(random, 5_000, 60_000),
  }),
  api_timeouts: (random) => ({ kind: "api_timeouts", share: share(random) / 2, forMs: between(random, 500, 20_000) }),
  watch_gap: (random) => ({ kind: "watch_gap", forMs: between(random, 500, 20_000), isTooOld: chance(random, 0.5) }),
  store_busy: (random) => ({ kind: "store_busy", upToMs: between(random, 20, 3_000), forMs: between(random, 500, 15_000) }),
  store_rewound: (random) => ({
    kind: "store_rewound",
    byMs: between(random, 1_000, 40_000),
    recoverAfterMs: between(random, 1_000, 20_000),
  }),
  store_lost_replies: (random) => ({ kind: "store_lost_replies", share: share(random), forMs: between(random, 500, 10_000) }),
  prober_cut: (random) => ({ kind: "prober_cut", forMs: between(random, 2_000, 30_000) }),
  controller_pause: (random) => ({ kind: "controller_pause", forMs: between(random, 200, 40_000) }),
  two_controllers: (random) => ({
    kind: "two_controllers",
    pausedMs: between(random, 1_000, 40_000),
    bothMs: between(random, 500, 15_000),
    ...(chance(random, 0.5) ? { strays: random.next() } : {}),
  }),
  replica_gone: (random) => ({
    kind: "replica_gone",
    pick: random.next(),
    how: pick(random, ["ended", "killed", "paused"]),
    forMs: between(random, 200, 20_000),
  }),
  second_controller: (random) => ({ kind: "second_controller", bothMs: between(random, 1_000, 20_000), firstEnds: chance(random, 0.5) }),
  clock_jump: (random) => ({
    kind: "clock_jump",
    of: pick(random, ["controller", "controller", "gateway"]),
    byMs: (chance(random, 0.5) ? -1 : 1) * pick(random, [between(random, 100, 5_000), between(random, 60_000, 600_000), 3_600_000]),
    backAfterMs: chance(random, 0.5) ? between(random, 1_000, 30_000) : null,
  }),
  gateway_pause: (random) => ({ kind: "gateway_pause", pick: random.next(), forMs: between(random, 200, 20_000) }),
  gateway_unreaching: (random) => ({ kind: "gateway_unreaching", pick: random.next(), forMs: between(random, 1_000, 20_000) }),
  gateway_returns: (random) => ({ kind: "gateway_returns", pick: random.next(), forMs: between(random, 125_000, 180_000) }),
  process_pause: (random) => ({ kind: "process_pause", pick: random.next(), forMs: between(random, 200, 30_000) }),
  process_lies: (random) => ({ kind: "process_lies", pick: random.next(), forMs: between(random, 1_000, 20_000) }),
  writer_isolated: (random) => ({
    kind: "writer_isolated",
    pick: random.next(),
    forMs: between(random, 2_000, 60_000),
    defies: chance(random, 0.7),
  }),
  endless_work: (random) => ({ kind: "endless_work", streams: between(random, 1, 4) }),
  pool_recreated: () => ({ kind: "pool_recreated" }),
  jobs_hang: (random) => ({ kind: "jobs_hang", share: share(random), forMs: between(random, 5_000, 40_000) }),
  demand_lies: (random) => ({ kind: "demand_lies", lie: pick(random, LIES) ?? "missing", forMs: between(random, 2_000, 40_000) }),
};

const LIES: readonly Lie[] = ["not_a_number", "negative", "infinite", "stale", "other_flow", "unreachable", "missing"];

export const FAULT_KINDS = Object.keys(MAKERS) as readonly FaultKind[];
/** Of a pool that scales. */
export const JOB_KINDS: readonly FaultKind[] = ["jobs_hang", "demand_lies"];
/** Of one controller and of services: what is drawn when nothing else is said. */
export const STANDARD_KINDS: readonly FaultKind[] = FAULT_KINDS.filter((kind) => kind !== "replica_gone" && !JOB_KINDS.includes(kind));

/** How often each is drawn; what moves capacity is drawn more often than what disturbs. */
const OFTEN: readonly FaultKind[] = ["node_drift", "spot_notice", "node_death", "controller_crash"];

export function planFaults(random: Random, withinMs: number, kinds: readonly FaultKind[] = STANDARD_KINDS): readonly PlannedFault[] {
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

/** One of this kind, with parameters as the standard mix has them. */
export function drawFault(random: Random, kind: FaultKind): Fault {
  return MAKERS[kind](random);
}

function shuffled<T>(random: Random, items: readonly T[]): readonly T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

function share(random: Random): number {
  return chance(random, 0.3) ? 1 : 0.1 + random.next() * 0.5;
}

const between = integerBetween;
