/**
 * Faults that some sixty seeds did not show: each is a hole to close, or something else keeps the rule too. `npm run mutants -- --unshown` runs them; one that
 * is caught goes to the others.
 */
import { type Mutant, planned, plannedIn, seeds } from "../mutant.ts";

export const UNSHOWN: readonly Mutant[] = [
  {
    name: "pass-does-not-wait-for-records",
    rule: "I5: the same spare instance is not spent twice",
    file: "src/control/controller.ts",
    find: "    await this.#parts.executor.recorded(key);\n",
    replace: "",
    shownBy: plannedIn(
      "spacious",
      20_000,
      { atMs: 500, fault: { kind: "node_drift", pick: 0, clearsAfterMs: null } },
      { atMs: 500, fault: { kind: "node_drift", pick: 0.9, clearsAfterMs: null } },
      { atMs: 1_000, fault: { kind: "store_busy", upToMs: 1_500, forMs: 15_000 } },
    ),
  },
  {
    name: "cordon-on-an-incomplete-inventory",
    rule: "I6: a cordon implies a complete inventory",
    file: "src/plan/disruption.ts",
    find: '    if (pool.inventory.state === "incomplete") {',
    replace: '    if (pool.inventory.state === "incomplete" && pool.inventory.missing === "") {',
    shownBy: plannedIn(
      "no_nodes",
      20_000,
      { atMs: 500, fault: { kind: "capacity_exhausted", pick: 0.1, why: "insufficient_capacity", zones: 2, forMs: 18_000 } },
      { atMs: 12_000, fault: { kind: "node_drift", pick: 0.9, clearsAfterMs: null } },
    ),
  },
  {
    name: "traffic-before-the-fence",
    rule: "I1/fence: nobody takes traffic in the place of a lost writer before that one is fenced",
    file: "src/plan/writer.ts",
    find: '  return reason("waiting_for_fence", { holder: holder.instance, ordinal });',
    replace: "  return undefined;",
    also: [
      {
        file: "src/store/pool-transaction.ts",
        find: '    if (to === "admitted") await this.#requireNoLostWriter(record);\n',
        replace: "",
      },
    ],
    shownBy: seeds("node_drift", "node_death", "writer_isolated", "store_busy", "spot_notice"),
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
    shownBy: seeds("writer_isolated", "process_pause", "node_drift", "store_rewound"),
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
    name: "moves-without-a-comparison",
    rule: "D5/move: an instance moves on from the phase that it is in",
    file: "src/store/pool-transaction.ts",
    find: "    if (record.phase !== phase) throw storeConflict(`instance ${instance} is in another phase`, record.phase, phase);\n",
    replace: "    void phase;\n",
    shownBy: seeds("driver_errors", "node_drift", "process_sick", "spot_notice", "store_busy", "two_controllers"),
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
    name: "condemned-in-any-order",
    rule: "I17: the outcome does not depend on the order in which things are seen",
    file: "src/plan/disruption.ts",
    find: "pool.instances.filter(isCondemned).toSorted(compareUrgency))",
    replace: "pool.instances.filter(isCondemned))",
    shownBy: planned(
      { atMs: 500, fault: { kind: "node_drift", pick: 0, clearsAfterMs: null } },
      { atMs: 500, fault: { kind: "node_drift", pick: 0.9, clearsAfterMs: null } },
      { atMs: 9_000, fault: { kind: "node_drift", pick: 0.5, clearsAfterMs: null } },
    ),
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
