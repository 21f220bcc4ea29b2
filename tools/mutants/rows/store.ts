/** Faults of the store and of the controller's own state. */
import { type Mutant, seeds } from "../mutant.ts";

export const STORE: readonly Mutant[] = [
  {
    name: "stale-epoch-commits",
    rule: "I4: no write of a stale leader commits",
    file: "src/store/pools.ts",
    find: "    if (row.epoch !== used) throw staleEpoch(pool, row.epoch, used);\n",
    replace: "",
    shownBy: seeds("deposed", "node_drift"),
  },
  {
    name: "evidence-is-overwritten",
    rule: "I3: recorded evidence never changes",
    file: "src/store/evidence.ts",
    find: ".onConflict((conflict) => conflict.doNothing())",
    replace: ".orReplace()",
    shownBy: seeds("node_drift", "operator_drain"),
  },
  {
    name: "generation-not-raised",
    rule: "I16: who may get traffic changes with the generation",
    file: "src/store/pool-transaction.ts",
    find: "const generation = isShared ? await this.#raiseGeneration() : this.#generation;",
    replace: 'const generation = isShared && to !== "draining" ? await this.#raiseGeneration() : this.#generation;',
    shownBy: seeds("node_drift"),
  },
  {
    name: "steps-end-twice",
    rule: "D5/journal: a step leaves unknown once",
    file: "src/store/steps.ts",
    find: 'end: prepare<End>((p) => ending(p).where("state", "in", ["unknown", "held"])),',
    replace: "end: prepare<End>((p) => ending(p)),",
    shownBy: seeds("node_drift", "store_lost_replies"),
  },
  {
    name: "silence-is-not-noticed",
    rule: "I16: a replica that is silent for its TTL holds up no seal",
    file: "src/control/gateways.ts",
    find: "    return this.#watched() - replica.seenAt > GATEWAY_TTL_MS;",
    replace: "    return this.#watched() - replica.seenAt > GATEWAY_TTL_MS * 1e6;",
    shownBy: seeds("gateway_silent", "gateway_restart", "node_drift"),
  },
  {
    name: "registered-replicas-are-forgotten",
    rule: "D5: a seal waits for every registered replica after a restart",
    file: "src/control/gateways.ts",
    find: "      if (!this.#replicas.has(id))\n",
    replace: '      if (id === "")\n',
    shownBy: seeds("gateway_silent", "controller_crash", "node_drift"),
  },
];
