/** Faults that only show in what is watched of plans, landings and clocks. */
import { type Mutant, seeds } from "../mutant.ts";

export const WATCHED: readonly Mutant[] = [
  {
    name: "landing-takes-older",
    rule: "I1: at most one accepted writer, only at the current epoch",
    file: "src/sdk/landing.ts",
    find: "if (highest !== null && compareEpochs(epoch, highest) < 0) throw staleWriter(workload, epoch, highest);",
    replace: "",
    shownBy: seeds("writer_isolated"),
  },
  {
    name: "plan-in-the-order-seen",
    rule: "I17: the outcome does not depend on the order in which things are seen",
    file: "src/plan/plan.ts",
    find: "const instances = pool.instances.toSorted((a, b) => compareText(idOf(a), idOf(b)));",
    replace: "const instances = pool.instances;",
    shownBy: seeds("node_drift", "node_death", "boot_failure", "resize"),
  },
  {
    name: "seal-by-a-dead-process",
    rule: "D13: a lost process leaves the drain as a loss",
    file: "src/plan/lifecycle.ts",
    find: "if (isDone && isOwnWordKnown && silent.length === 0) {",
    replace: "if (isDone && silent.length === 0) {",
    shownBy: seeds("node_drift", "node_death", "process_crash", "operator_drain", "spot_notice"),
  },
  {
    name: "clock-that-jumps",
    rule: "I16: a clock that is set runs out no waiting and closes no gate",
    file: "src/kernel/steady-clock.ts",
    find: "return Math.floor(this.#at);",
    replace: "return this.#clock.now();",
    shownBy: seeds("clock_jump", "boot_failure", "node_drift"),
  },
];
