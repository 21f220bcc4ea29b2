/**
 * Faults that some sixty seeds did not show: each is a hole to close, or something else keeps the rule too. `npm run mutants -- --unshown` runs them; one that
 * is caught goes to the others.
 */
import type { PlannedFault } from "../../../src/sim/faults.ts";
import { type Mutant, plannedIn, seeds } from "../mutant.ts";

export const UNSHOWN: readonly Mutant[] = [
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
  {
    name: "membership-applied-backwards",
    rule: "I2/gateway: a gateway replica applies no older membership",
    file: "src/gateway/membership.ts",
    find: "    if (applied !== undefined && order < 0) {",
    replace: "    if (applied !== undefined && order < -9) {",
    shownBy: seeds("store_rewound", "node_drift", "gateway_silent"),
  },
  {
    name: "stale-answers-are-passed-on",
    rule: "I2/gateway: no answer is passed on under an epoch that is over",
    file: "src/gateway/stale.ts",
    find: "  return !EPOCH_PATTERN.test(epoch) || !isAcceptedWriter(epoch as Epoch, minAccepted);",
    replace: "  return !EPOCH_PATTERN.test(epoch) && !isAcceptedWriter(epoch as Epoch, minAccepted);",
    also: [
      {
        file: "src/gateway/membership.ts",
        find: 'if (offered.state === "sealed" || offered.state === "fenced") this.#loseMember',
        replace: 'if (offered.state === "sealed") this.#loseMember',
      },
      {
        file: "src/gateway/membership.ts",
        find: 'if (!kept.has(old)) this.#loseMember(old, instances.has(old.instance) ? "replaced" : "removed", effects);',
        replace: 'if (!kept.has(old) && old.gone) this.#loseMember(old, instances.has(old.instance) ? "replaced" : "removed", effects);',
      },
    ],
    shownBy: plannedIn(
      "leased",
      20_000,
      { atMs: 2_000, fault: { kind: "process_pause", pick: 0.1, forMs: 15_000 } },
      { atMs: 2_000, fault: { kind: "process_pause", pick: 0.9, forMs: 15_000 } },
    ),
  },
  {
    name: "a-gateway-lowers-its-tombstone",
    rule: "I2/gateway: no answer is passed on under an epoch that is over",
    file: "src/gateway/stale.ts",
    find: "  return compareEpochs(offered.minAccepted, known.minAccepted) > 0 ? offered : known;",
    replace: "  return compareEpochs(offered.minAccepted, known.minAccepted) > 9 ? offered : known;",
    shownBy: seeds("writer_isolated", "process_pause", "node_drift", "store_rewound"),
  },
  {
    name: "replay-with-another-payload",
    rule: "D5/journal: a step is one and the same",
    file: "src/store/steps.ts",
    find: "    if (known !== undefined) return requireSameStep(known, step, payload);",
    replace: "    if (known !== undefined) return;\n    void requireSameStep;",
    also: [
      {
        file: "src/act/executor.ts",
        find: '      if (newest?.step.state === "unknown") return { open: newest.step };\n',
        replace: "",
      },
      {
        file: "src/act/executor.ts",
        find: "withAttempt(draft.id, (newest?.attempt ?? 0) + 1)",
        replace: "withAttempt(draft.id, Math.max(1, newest?.attempt ?? 0))",
      },
    ],
    shownBy: seeds("store_lost_replies", "node_drift", "controller_crash", "spot_notice", "capacity_exhausted"),
  },
  {
    name: "retries-are-not-confirmed",
    rule: "D5: before a retry it is asked whether the step is still wanted",
    file: "src/act/executor.ts",
    find: "if (!isFresh && !(await this.#confirm(task, bound)))",
    replace: "if (!isFresh && this.#closed && !(await this.#confirm(task, bound)))",
    shownBy: seeds("two_controllers", "driver_errors", "api_errors", "node_drift", "boot_failure", "spot_notice"),
  },
  {
    name: "one-standby-for-two",
    rule: "D5/move: a standby is taken once",
    file: "src/store/pool-transaction.ts",
    find: '    if (purpose !== "standby") throw storeConflict(`standby ${instance} was taken already`, purpose, "standby");\n',
    replace: "    void purpose;\n",
    also: [
      {
        file: "src/plan/standby.ts",
        find: ".filter((instance) => isWarm(pool, instance) && !draft.hasDecisionFor(idOf(instance)))",
        replace: ".filter((instance) => isWarm(pool, instance) && draft !== undefined)",
      },
    ],
    shownBy: seeds("spot_notice", "node_drift", "node_death", "operator_drain"),
  },
];
