/** Faults of the store and of the controller's own state. */
import type { PlannedFault } from "../../../src/sim/faults.ts";
import { type Mutant, planned, plannedIn, seeds } from "../mutant.ts";

export const STORE: readonly Mutant[] = [
  {
    name: "stale-epoch-commits",
    rule: "I4: no write of a stale leader commits",
    file: "src/store/pools.ts",
    find: "    if (row.epoch !== used) throw staleEpoch(pool, row.epoch, used);\n",
    replace: "",
    shownBy: planned(
      { atMs: 500, fault: { kind: "node_drift", pick: 0.1, clearsAfterMs: null } },
      { atMs: 600, fault: { kind: "deposed" } },
      { atMs: 4_000, fault: { kind: "node_drift", pick: 0.6, clearsAfterMs: null } },
      { atMs: 4_100, fault: { kind: "two_controllers", pausedMs: 6_000, bothMs: 5_000 } },
      { atMs: 4_200, fault: { kind: "node_drift", pick: 0.9, clearsAfterMs: null } },
    ),
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
  {
    name: "brake-ignored",
    rule: "D12/brake: the brake holds while the observer is suspected",
    file: "src/control/brake.ts",
    find: "  return suspect > watched.length * BRAKE_SHARE ? { suspect, total: watched.length } : null;",
    replace: "  return suspect > watched.length ? { suspect, total: watched.length } : null;",
    shownBy: plannedIn(
      "blind",
      20_000,
      { atMs: 500, fault: { kind: "prober_cut", forMs: 15_000 } },
      { atMs: 500, fault: { kind: "gateway_silent", pick: 0.1, forMs: 15_000 } },
      { atMs: 500, fault: { kind: "gateway_silent", pick: 0.9, forMs: 15_000 } },
    ),
  },
  {
    name: "moves-without-a-comparison",
    rule: "D5/move: an instance moves on from the phase that it is in",
    file: "src/store/pool-transaction.ts",
    find: "    if (record.phase !== phase) throw storeConflict(`instance ${instance} is in another phase`, record.phase, phase);\n",
    replace: "    void phase;\n",
    shownBy: plannedIn(
      "hasty",
      20_000,
      { atMs: 500, fault: { kind: "node_drift", pick: 0.1, clearsAfterMs: null } },
      { atMs: 500, fault: { kind: "node_drift", pick: 0.9, clearsAfterMs: null } },
      { atMs: 900, fault: { kind: "driver_errors", share: 0.7, forMs: 15_000 } },
      { atMs: 2_000, fault: { kind: "api_errors", share: 0.9, forMs: 12_000 } },
    ),
  },
  // It shows when something becomes known, while a drain is being recorded, that makes another one go first.
  {
    name: "pass-does-not-wait-for-records",
    rule: "I5: the same spare instance is not spent twice",
    file: "src/control/controller.ts",
    find: "    await this.#parts.executor.recorded(key);\n",
    replace: "",
    shownBy: plannedIn(
      "blind",
      20_000,
      { atMs: 300, fault: { kind: "store_busy", upToMs: 1_500, forMs: 19_000 } },
      ...[1_000, 6_000, 11_000, 16_000].flatMap((atMs, index): readonly PlannedFault[] => [
        { atMs, fault: { kind: "resize", by: -1, forMs: 4_000 } },
        { atMs, fault: { kind: "operator_drain", pick: 0.1 + index * 0.2 } },
      ]),
    ),
  },
];
