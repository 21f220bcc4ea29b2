/** Faults of several controllers that share the pools. */
import type { PlannedFault } from "../../../src/sim/faults.ts";
import { type Mutant, plannedIn } from "../mutant.ts";

const SECONDS = 1_000;

/** Each of the three dies once, and comes back under another name; afterwards two machines are lost. */
const EACH_DIES: readonly PlannedFault[] = [
  ...[0.1, 0.5, 0.9].map(
    (pick, turn): PlannedFault => ({ atMs: (1 + turn * 6) * SECONDS, fault: { kind: "replica_gone", pick, how: "killed", forMs: 300 } }),
  ),
  ...[0.1, 0.4].map(
    (pick): PlannedFault => ({ atMs: 22 * SECONDS, fault: { kind: "node_death", pick, returnsAfterMs: null, sameUid: false } }),
  ),
];

export const CONTROLLERS: readonly Mutant[] = [
  {
    name: "the-dead-keep-their-pools",
    rule: "I16: a pool whose controller is gone is another one's, and converges",
    file: "src/kube/election-state.ts",
    find: "isReachable && other.isLive && askedAt >= deadAt(state, other) ? { ...other, isLive: false } : other",
    replace: "isReachable && askedAt < 0 ? { ...other, isLive: false } : other",
    shownBy: plannedIn("three_controllers", 30 * SECONDS, ...EACH_DIES),
  },
];
