/**
 * Faults that some forty seeds did not show: each is a hole to close. `npm run mutants -- --unshown` runs them; one that is caught goes to the others.
 *
 * Not here, because they change nothing that anybody could see, also when two lines of defence fall at once:
 * - A lease that is passed without a comparison of its epoch: one authority commits at a time, its passes one after the other, and who still may write keeps it.
 * - A gateway that passes on stale answers, or lowers a tombstone: the generation that raises the tombstone also takes the former writer out, and what it held is
 *   asked again elsewhere. An older generation, which alone could lower one, is refused as a whole.
 * - A step that is recorded again with another payload: its id names what it does, and an open step is gone on with as it was recorded.
 * - A standby that is taken twice: its place is granted to one evacuee, a plan decides once about an instance, and the store compares its purpose.
 */
import type { PlannedFault } from "../../../src/sim/faults.ts";
import { type Mutant, plannedIn, seeds } from "../mutant.ts";

export const UNSHOWN: readonly Mutant[] = [
  // The next pass decides the same again first, and the executor takes a decision that is being recorded once: it shows only when something more urgent becomes
  // known within the time of that record.
  {
    name: "pass-does-not-wait-for-records",
    rule: "I5: the same spare instance is not spent twice",
    file: "src/control/controller.ts",
    find: "    await this.#parts.executor.recorded(key);\n",
    replace: "",
    shownBy: plannedIn(
      "blind",
      20_000,
      { atMs: 500, fault: { kind: "node_drift", pick: 0, clearsAfterMs: null } },
      { atMs: 700, fault: { kind: "store_busy", upToMs: 1_500, forMs: 18_000 } },
      ...[4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000].map(
        (atMs, index): PlannedFault => ({ atMs, fault: { kind: "operator_drain", pick: (index * 0.31) % 1 } }),
      ),
    ),
  },
  // A modelled gateway only ever reaches the newest controller, so nobody offers it anything older. `src/gateway/membership.test.ts` shows it.
  {
    name: "membership-applied-backwards",
    rule: "I2/gateway: a gateway replica applies no older membership",
    file: "src/gateway/membership.ts",
    find: "    if (applied !== undefined && order < 0) {",
    replace: "    if (applied !== undefined && order < -9) {",
    shownBy: seeds("store_rewound", "node_drift", "gateway_silent"),
  },
  // What such a retry would do is refused by UID, by boot id or by the end of its step. `src/act/executor-tasks.test.ts` shows that it is not even tried.
  {
    name: "retries-are-not-confirmed",
    rule: "D5: before a retry it is asked whether the step is still wanted",
    file: "src/act/executor.ts",
    find: "if (!isFresh && !(await this.#confirm(task, bound)))",
    replace: "if (!isFresh && this.#closed && !(await this.#confirm(task, bound)))",
    shownBy: seeds("two_controllers", "driver_errors", "api_errors", "node_drift", "boot_failure", "spot_notice"),
  },
];
