/** The store's contract: evidence, steps, losses and reasons. */
import { expect } from "vitest";
import type { Change, StandingReason } from "../../src/store/port.ts";
import {
  claimed,
  evidenceOf,
  instanceIn,
  instanceOf,
  move,
  NOON,
  picture,
  POOL,
  recordStep,
  refused,
  step,
  type StoreTest,
} from "./store-fixtures.ts";

function record(id: string, ...draft: Parameters<typeof evidenceOf>): Change {
  return { kind: "record_evidence", id, evidence: evidenceOf(...draft) };
}

function end(id: string, state: "done" | "failed" | "superseded" | "held", outcome = "cordoned"): Change {
  return { kind: "end_step", step: id, state, outcome };
}

export function storeJournalContract(it: StoreTest): void {
  evidence(it);
  steps(it);
  lossesAndReasons(it);
}

function evidence(it: StoreTest): void {
  it("evidence is first write wins per instance and class of loss, and never changes (I3)", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, instanceIn("serving", "i-1"), NOON);
    await store.commit(owner, [record("e-1", "i-1", { nodeClaimName: "c", nodeClaimUid: "c-uid", noticeId: "n-1", incarnation: 2 })], NOON);
    await store.commit(owner, [record("e-2", "i-1", { reason: "operator_drain" })], NOON + 1);
    await store.commit(owner, [record("e-1", "i-1", { reason: "node_deleting" })], NOON + 1);
    const next = await claimed(store);
    await store.commit(next, [record("e-3", "i-1", { loss: "deadline", reason: "spot_interruption", deadline: NOON + 9 })], NOON + 2);
    await store.commit(next, [record("e-4", "i-1", { loss: "deadline", reason: "spot_interruption", deadline: NOON + 5 })], NOON + 3);

    const first = {
      ...evidenceOf("i-1", { nodeClaimName: "c", nodeClaimUid: "c-uid", noticeId: "n-1", incarnation: 2 }),
      id: "e-1",
      pool: POOL,
      firstSeen: NOON,
      authorityEpoch: "0.1",
    };
    const second = {
      ...evidenceOf("i-1", { loss: "deadline", reason: "spot_interruption", deadline: NOON + 9 }),
      id: "e-3",
      pool: POOL,
      firstSeen: NOON + 2,
      authorityEpoch: "0.2",
    };
    expect((await store.readPool(POOL))?.evidence).toEqual([first, second]);
    expect(await store.listEvidence(POOL, 10)).toEqual([second, first]);
    expect(await store.listEvidence(POOL, 1)).toEqual([second]);
  });

  it("evidence is about an instance that is there, and its id is its own", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...instanceIn("serving", "i-1"), ...instanceIn("serving", "i-2")], NOON);
    await store.commit(owner, [record("e-1", "i-1")], NOON);

    await refused(store.commit(owner, [record("e-9", "i-9")], NOON), "store_conflict");
    await refused(store.commit(owner, [record("e-1", "i-2")], NOON), "store_conflict");
    await refused(store.commit(owner, [record("e-1", "i-1", { loss: "forced", reason: "node_lost" })], NOON), "store_conflict");
  });

  it("evidence of a deleted instance is history: listed, but no matter of the planner's", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, instanceIn("retired", "i-1"), NOON);
    await store.commit(owner, [record("e-1", "i-1"), move("i-1", "retired", "deleted")], NOON);

    expect(await store.readPool(POOL)).toMatchObject({ instances: [], evidence: [] });
    expect((await store.listEvidence(POOL, 10)).map(({ id }) => id)).toEqual(["e-1"]);
    expect((await instanceOf(store, "i-1")).phase).toBe("deleted");
  });
}

function steps(it: StoreTest): void {
  it("a step is unknown before its effect, and ends with what came of it", async (store) => {
    const owner = await claimed(store);
    const draft = step("s-1", {
      instance: "i-1",
      payload: { z: [1, { b: null, a: "x" }], a: true },
      reason: { code: "gone", params: { n: 1 } },
    });
    await store.commit(owner, [{ kind: "record_step", step: draft }], NOON);

    const unknown = {
      ...draft,
      state: "unknown",
      attempts: 0,
      notBefore: NOON,
      recordedAt: NOON,
      endedAt: null,
      outcome: null,
      result: null,
      authorityEpoch: "0.1",
    };
    expect((await store.readPool(POOL))?.openSteps).toEqual([unknown]);

    const next = await claimed(store);
    await store.commit(next, [{ kind: "retry_step", step: "s-1", notBefore: NOON + 100, error: "api_timeout" }], NOON + 1);
    const retried = { ...unknown, attempts: 1, notBefore: NOON + 100, outcome: "api_timeout" };
    expect((await store.readPool(POOL))?.openSteps).toEqual([retried]);

    await store.commit(next, [{ kind: "end_step", step: "s-1", state: "done", outcome: "cordoned", result: { uid: "u" } }], NOON + 200);
    expect((await store.readPool(POOL))?.openSteps).toEqual([]);
    expect(await store.listSteps(POOL, 10)).toEqual([
      { ...retried, state: "done", endedAt: NOON + 200, outcome: "cordoned", result: { uid: "u" } },
    ]);
  });

  it("the same step again changes nothing, whatever became of it and in whatever order its payload is written", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [recordStep("s-1", { payload: { a: 1, b: { c: 2, d: 3 } } })], NOON);
    const same = recordStep("s-1", { payload: { b: { d: 3, c: 2 }, a: 1 }, reason: { code: "gone", params: {} } });

    const open = await picture(store);
    await store.commit(owner, [same], NOON + 1);
    expect(await picture(store)).toEqual(open);

    await store.commit(owner, [end("s-1", "done")], NOON + 2);
    const ended = await picture(store);
    await store.commit(owner, [same], NOON + 3);
    expect(await picture(store)).toEqual(ended);
  });

  it("the same id with another payload is a conflict", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [recordStep("s-1", { payload: { node: "a" } })], NOON);
    const before = await picture(store);

    for (const other of [{ payload: { node: "b" } }, { payload: null }, { kind: "cordon_node/2" }, { instance: "i-1" }])
      await refused(store.commit(owner, [recordStep("s-1", other)], NOON), "store_conflict");

    expect(await picture(store)).toEqual(before);
  });

  it("a step leaves unknown once", async (store) => {
    const owner = await claimed(store);
    for (const state of ["done", "failed", "superseded"] as const) {
      await store.commit(owner, [recordStep(`s-${state}`), end(`s-${state}`, state)], NOON);
      for (const again of ["done", "failed", "superseded", "held"] as const)
        await expect(store.commit(owner, [end(`s-${state}`, again)], NOON + 1)).rejects.toMatchObject({
          code: "store_conflict",
          found: state,
        });
      await refused(store.commit(owner, [{ kind: "retry_step", step: `s-${state}`, notBefore: NOON, error: "x" }], NOON), "store_conflict");
    }
    await refused(store.commit(owner, [end("s-none", "done")], NOON), "store_conflict");
    expect((await store.listSteps(POOL, 10)).map(({ state, endedAt }) => [state, endedAt])).toEqual([
      ["superseded", NOON],
      ["failed", NOON],
      ["done", NOON],
    ]);
  });

  it("a held step stays open until somebody ends it", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [recordStep("s-1"), end("s-1", "held", "cannot_tell")], NOON);

    expect((await store.readPool(POOL))?.openSteps).toMatchObject([{ id: "s-1", state: "held", endedAt: null, outcome: "cannot_tell" }]);
    await refused(store.commit(owner, [end("s-1", "held")], NOON), "store_conflict");
    await refused(store.commit(owner, [{ kind: "retry_step", step: "s-1", notBefore: NOON, error: "x" }], NOON), "store_conflict");

    await store.commit(owner, [end("s-1", "superseded", "released_by_operator")], NOON + 1);
    expect((await store.readPool(POOL))?.openSteps).toEqual([]);
  });
}

function lossesAndReasons(it: StoreTest): void {
  it("losses count each instance once per class, its obligations as often as they are found (D18)", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...instanceIn("draining", "i-1"), ...instanceIn("draining", "i-2")], NOON);
    const count = (
      instance: string,
      loss: "deadline" | "forced",
      obligations: number,
      seal: "confirmed" | "forced" | "assumed",
    ): Change => ({
      kind: "count_loss",
      instance,
      loss,
      obligations,
      seal,
    });

    await store.commit(owner, [count("i-1", "forced", 3, "forced"), count("i-1", "forced", 2, "assumed")], NOON);
    await store.commit(owner, [count("i-1", "forced", 0, "assumed"), count("i-1", "forced", 1, "forced")], NOON);
    await store.commit(owner, [count("i-2", "forced", 1, "forced"), count("i-2", "deadline", 4, "assumed")], NOON);
    await refused(store.commit(owner, [count("i-9", "forced", 1, "forced")], NOON), "store_conflict");

    expect(await store.countLosses(POOL)).toEqual([
      { loss: "deadline", instances: 1, obligations: 4, assumedSeals: 1 },
      { loss: "forced", instances: 2, obligations: 7, assumedSeals: 1 },
    ]);
    expect(await store.countLosses("shop/other")).toEqual([]);
  });

  it("the standing reasons are the last that were set (D11)", async (store) => {
    const owner = await claimed(store);
    const reasons: StandingReason[] = [
      { subject: "i-1", reason: { code: "waiting_for_pods", params: { ready: 1, wanted: 2 } }, since: NOON },
      { subject: "", reason: { code: "surge_used", params: { surge: 1 } }, since: NOON - 5 },
    ];
    await store.commit(owner, [{ kind: "set_reasons", reasons }], NOON);
    await store.commit(owner, [{ kind: "set_reasons", reasons }], NOON);
    expect((await store.readPool(POOL))?.reasons).toEqual(reasons);

    await store.commit(
      owner,
      [
        { kind: "set_reasons", reasons: reasons.slice(1) },
        { kind: "set_reasons", reasons: [] },
      ],
      NOON,
    );
    expect((await store.readPool(POOL))?.reasons).toEqual([]);
  });
}
