import { expect, test } from "vitest";
import type { Executor } from "../act/executor.ts";
import { aSnapshot } from "../act/testing/snapshot.ts";
import { BLUEPRINT, INSTANCE, POOL } from "../act/testing/world.ts";
import { epoch } from "../kernel/epoch.ts";
import { reason } from "../model/reasons.ts";
import type { Effect, Plan } from "../plan/decision.ts";
import { PassActs } from "./pass-acts.ts";

const AUTHORITY = { pool: POOL, epoch: epoch(0, 1) };
const CREATE: Effect = { kind: "create_instance", instance: INSTANCE, reason: reason("created") };
const CORDON: Effect = {
  kind: "cordon_node",
  instance: INSTANCE,
  node: { name: "a", uid: "node-uid" },
  evidence: "evidence-1",
  reason: reason("created"),
};

/** `started`: kinds of steps, in order. `goOn` lets the store answer the reads so far. */
function anActs() {
  const started: string[] = [];
  const reads: PromiseWithResolvers<unknown>[] = [];
  const acts = new PassActs({
    store: {
      commit: () => Promise.reject(new Error("nothing is committed")),
      getBlueprint: () => {
        const read = Promise.withResolvers<unknown>();
        reads.push(read);
        return read.promise;
      },
    },
    executor: { start: async (_, { kind }) => void started.push(kind) } as Pick<Executor, "start"> as Executor,
    ids: { next: (prefix) => prefix },
    log: () => undefined,
  });
  const begin = (...decisions: readonly Effect[]) =>
    acts.begin(AUTHORITY, {
      snapshot: aSnapshot(),
      plan: { decisions, holds: [], nextLookAt: null, recommendation: null } as unknown as Plan,
      at: 0,
    });
  return { started, reads, begin };
}

test("a cordon is begun before all else of its pass, and waits for no read of the store (D4)", async () => {
  const { started, reads, begin } = anActs();
  const over = begin(CREATE, CORDON);
  expect(started).toEqual(["cordon_node/1"]);

  reads[0]?.resolve(BLUEPRINT);
  await over;
  expect(started).toEqual(["cordon_node/1", "create_instance/1"]);
});

test("what many instances are made from is read once in a pass", async () => {
  const { started, reads, begin } = anActs();
  const over = begin(CREATE, CREATE, CREATE);
  reads[0]?.resolve(BLUEPRINT);
  await over;

  expect([started.length, reads.length]).toEqual([3, 1]);
});

test("a read that fails keeps back only what needs it (I15)", async () => {
  const { started, reads, begin } = anActs();
  const over = begin(CREATE, CORDON, CREATE);
  reads[0]?.reject(new Error("away"));
  await over;

  expect(started).toEqual(["cordon_node/1"]);
});
