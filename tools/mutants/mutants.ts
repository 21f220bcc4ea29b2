/** The faults. Each breaks one rule of the program; equivalent ones, which change nothing that anybody could see, are not here. */
import type { FaultKind } from "../../src/sim/faults.ts";
import type { Mutant, Stage } from "./mutant.ts";

const seeds = (...faults: FaultKind[]): Stage => ({ kind: "seeds", faults });

export const MUTANTS: readonly Mutant[] = [
  {
    name: "cordon-without-uid",
    rule: "I6: a cordon implies a matching UID",
    file: "src/act/steps/cordon-node.ts",
    find: "        uid: node.uid,\n        resourceVersion",
    replace: "        resourceVersion",
    shownBy: seeds("node_drift"),
  },
  {
    name: "cordon-without-version",
    rule: "I6: a cordon implies a matching resourceVersion",
    file: "src/act/steps/cordon-node.ts",
    find: "        resourceVersion: seen.metadata.resourceVersion,\n",
    replace: "",
    shownBy: seeds("node_drift"),
  },
  {
    name: "delete-without-uid",
    rule: "I8: every delete carries a UID",
    file: "src/act/steps/delete-instance.ts",
    find: "preconditions: { uid: object.uid }, ",
    replace: "",
    shownBy: seeds("node_drift"),
  },
  {
    name: "create-without-mark",
    rule: "I8: what is deleted was made by a step",
    file: "src/act/steps/create-instance.ts",
    find: "marked(object, step.id)",
    replace: "object as KubeObjectDraft",
    shownBy: seeds("node_drift"),
  },
  {
    name: "effect-before-record",
    rule: "D5/journal: a step is recorded before its effect",
    file: "src/act/executor.ts",
    find: "    const recording = await this.#record(task, draft, bound);",
    replace:
      "    const { kube, driver } = this.#options;\n    await bound.act({ kube, driver, step: { id: task.id } }).catch(() => undefined);\n    const recording = await this.#record(task, draft, bound);",
    shownBy: seeds("node_drift"),
  },
  {
    name: "stale-epoch-commits",
    rule: "I4: no write of a stale leader commits",
    file: "src/store/pools.ts",
    find: "    if (row.epoch !== used) throw staleEpoch(pool, row.epoch, used);\n",
    replace: "",
    shownBy: seeds("deposed", "node_drift"),
  },
  {
    name: "seal-without-confirmation",
    rule: "D5: a confirmed seal implies that no gateway replica holds anything",
    file: "src/plan/lifecycle.ts",
    find: "  if (behind.length > 0)\n    return draft.hold(",
    replace: "  if (behind.length > 99)\n    return draft.hold(",
    shownBy: seeds("node_drift"),
  },
  {
    name: "seal-ignores-silent-replica",
    rule: "D5: a silent replica's word is not assumed",
    file: "src/plan/lifecycle.ts",
    find: "  if (isDone && silent.length === 0) {",
    replace: "  if (isDone) {",
    shownBy: seeds("gateway_silent", "node_drift"),
  },
  {
    name: "spare-off-by-one",
    rule: "I5: a voluntary drain implies more serving than desired",
    file: "src/plan/budget.ts",
    find: "return this.#spare > 0;",
    replace: "return this.#spare >= 0;",
    shownBy: seeds("node_drift"),
  },
  {
    name: "mode-off-ignored",
    rule: "I26: flag off, no mutation",
    file: "src/plan/evidence.ts",
    find: '  if (pool.spec.disruption.mode === "Off") return undefined;\n',
    replace: "",
    shownBy: seeds("mode_off", "node_drift"),
  },
];
