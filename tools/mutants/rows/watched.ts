/** Faults that the simulator found in the program once, made again. */
import { type Mutant, seeds } from "../mutant.ts";

export const WATCHED: readonly Mutant[] = [
  {
    name: "seal-by-a-dead-process",
    rule: "D13: a lost process leaves the drain as a loss",
    file: "src/plan/departure.ts",
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
