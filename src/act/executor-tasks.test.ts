import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NODES } from "../kube/resources.ts";
import { reason } from "../model/reasons.ts";
import { STEP_KINDS } from "./registry.ts";
import { done } from "./step-kind.ts";
import { aCreate, aKind, API_DOWN, draftOf, MINUTES, useHarness } from "./testing/executor-harness.ts";
import { faulty } from "./testing/fuse.ts";
import { aRunningInstance, INSTANCE, POOL, recordOf, storedInstance } from "./testing/world.ts";

const h = useHarness();

test("under a newer authority nothing more is done, and the step stays unknown (I4)", async () => {
  const draft = await h.aCordon();
  const kube = faulty(h.world.kube, ({ method, number }) =>
    method === "get" && number === 1 ? { error: API_DOWN, side: "before" } : undefined,
  );
  const executor = h.anExecutor({ kube });
  void executor.start(h.authority, draft);
  await h.world.clock.settle();

  await h.world.store.claim(POOL, "controller-2", h.world.clock.now());
  await h.world.clock.advance(MINUTES);

  expect(await h.stepsAs()).toEqual([`${draft.id} unknown kube_service_unavailable`]);
  expect(h.world.effects).toEqual([]);
  expect(executor.inFlight(POOL)).toEqual(new Set());
  expect(h.settled).toBe(0);
});

test("the same process under a newer epoch goes on with what is under way", async () => {
  const draft = await h.aCordon();
  const kube = faulty(h.world.kube, ({ method, number }) =>
    method === "get" && number === 1 ? { error: API_DOWN, side: "before" } : undefined,
  );
  const executor = h.anExecutor({ kube });
  void executor.start(h.authority, draft);
  await h.world.clock.settle();

  const newer = await h.world.store.claim(POOL, "controller-1", h.world.clock.now());
  executor.resume(newer, (await h.world.store.readPool(POOL))?.openSteps ?? []);
  await h.world.clock.advance(MINUTES);

  expect(newer.epoch).not.toBe(epoch(0, 0));
  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("an instance that moved on meanwhile supersedes the end of its create, and the delete finds what was made by label", async () => {
  await storedInstance(h.world.store, h.authority, 0, "pending");
  const kube = faulty(h.world.kube, ({ method, number }) => {
    if (method === "create" && number === 2)
      void h.world.store.commit(
        h.authority,
        [{ kind: "move_instance", instance: INSTANCE, from: "creating", to: "failed", set: { failure: "given_up" } }],
        0,
      );
    return undefined;
  });
  const executor = h.anExecutor({ kube });

  await executor.start(h.authority, aCreate());

  expect(await h.stepsAs()).toEqual([`create/${INSTANCE} superseded overtaken`]);
  expect(await recordOf(h.world.store)).toMatchObject({ phase: "failed", failure: "given_up", objects: [] });
  const payload = { instance: INSTANCE, namespace: "default", from: "failed", objects: [], createdBy: `create/${INSTANCE}` };
  await executor.start(h.authority, draftOf(`delete/${INSTANCE}`, "delete_instance/1", payload));
  expect((await recordOf(h.world.store))?.phase).toBe("retired");
  expect((await h.world.kube.list(DEPLOYMENTS, { namespace: "default" })).items).toEqual([]);
  expect((await h.world.kube.list(CONFIG_MAPS, { namespace: "default" })).items).toEqual([]);
});

test("a delete waits for the create of its instance, wakes it from its back-off, and nothing is left behind", async () => {
  await storedInstance(h.world.store, h.authority, 0, "pending");
  let away = true;
  const kube = faulty(h.world.kube, ({ method, number }) =>
    method === "create" && number > 1 && away ? { error: API_DOWN, side: "before" } : undefined,
  );
  const executor = h.anExecutor({ kube });
  void executor.start(h.authority, aCreate());
  await h.world.clock.advance(5 * MINUTES);
  await h.world.store.commit(
    h.authority,
    [{ kind: "move_instance", instance: INSTANCE, from: "creating", to: "failed", set: { failure: "given_up" } }],
    0,
  );

  const payload = { instance: INSTANCE, namespace: "default", from: "failed", objects: [], createdBy: `create/${INSTANCE}` };
  const before = h.world.clock.now();
  away = false;
  void executor.start(h.authority, draftOf(`delete/${INSTANCE}`, "delete_instance/1", payload));
  await h.world.clock.settle();

  expect(h.world.clock.now()).toBe(before);
  expect(await h.stepsAs()).toEqual([`create/${INSTANCE} superseded overtaken`, `delete/${INSTANCE} done absent`]);
  expect((await h.world.kube.list(CONFIG_MAPS, { namespace: "default" })).items).toEqual([]);
});

test("one decision is worked on once, however often it is made", async () => {
  const draft = await h.aCordon();
  const executor = h.anExecutor();

  await Promise.all([executor.start(h.authority, draft), executor.start(h.authority, draft), executor.start(h.authority, draft)]);
  await executor.start(h.authority, draft);

  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
  expect(h.world.effects).toEqual(["patch nodes/a"]);
  expect(h.settled).toBe(1);
});

test("a decision whose last attempt ended in vain gets the next number, after a cool-down that grows", async () => {
  const draft = { ...(await h.aCordon()), payload: { node: { name: "a", uid: "another" }, evidence: "e1" } };
  const executor = h.anExecutor();
  const until = async (count: number) => {
    while ((await h.steps()).length < count) {
      void executor.start(h.authority, draft);
      await h.world.clock.advance(50);
    }
    return h.world.clock.now();
  };

  const [first, second, third, fourth] = [await until(1), await until(2), await until(3), await until(4)];

  expect((await h.steps()).map(({ id }) => id).toReversed()).toEqual([draft.id, `${draft.id}#2`, `${draft.id}#3`, `${draft.id}#4`]);
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(250);
  expect((fourth ?? 0) - (third ?? 0)).toBeGreaterThanOrEqual(1_000);
});

test("a kind from a newer version is left unknown and held with a reason", async () => {
  const draft = draftOf("split/x", "split_instance/7", {});
  await h.world.store.commit(h.authority, [{ kind: "record_step", step: draft }], 0);

  const holds = h.anExecutor().resume(h.authority, (await h.world.store.readPool(POOL))?.openSteps ?? []);

  expect(holds).toEqual([
    { kind: "hold", subject: INSTANCE, reason: reason("step_from_newer_version", { step: "split/x", kind: "split_instance/7" }) },
  ]);
  expect(await h.stepsAs()).toEqual(["split/x unknown null"]);
});

test("at most 16 steps of a pool act at once, and one that backs off takes no place (I15)", async () => {
  let atOnce = 0;
  let most = 0;
  const kinds = aKind({
    act: async () => {
      most = Math.max(most, ++atOnce);
      await h.world.clock.sleep(10);
      atOnce--;
      if (h.world.clock.now() % 3 === 0) throw new RelevoError("later", "later", { class: "retryable" });
      return done("tried");
    },
  });
  const executor = h.anExecutor({ kinds });

  const all = Array.from({ length: 100 }, (_, index) => executor.start(h.authority, draftOf(`try/${index}`, "try/1", {})));
  await h.world.clock.advance(10 * MINUTES);
  await Promise.all(all);

  expect(most).toBe(16);
  expect((await h.steps()).every(({ state }) => state === "done")).toBe(true);
});

test("a cordon waits for no place that steps of other kinds hold", async () => {
  const hung = aKind({ act: () => new Promise(() => undefined) });
  const executor = h.anExecutor({ kinds: new Map([...STEP_KINDS, ...hung]) });
  for (let index = 0; index < 17; index++) void executor.start(h.authority, draftOf(`try/${index}`, "try/1", {}));
  await h.world.clock.settle();

  await executor.start(h.authority, await h.aCordon());

  expect(h.world.effects).toEqual(["patch nodes/a"]);
});

test("a step that was to be tried again later waits for its time after a restart, at most 30 s", async () => {
  const draft = await h.aCordon();
  await h.world.store.commit(h.authority, [{ kind: "record_step", step: draft }], h.world.clock.now());
  await h.world.store.commit(
    h.authority,
    [{ kind: "retry_step", step: draft.id, notBefore: h.world.clock.now() + 20_000, error: "kube_timeout" }],
    h.world.clock.now(),
  );
  const executor = h.anExecutor();

  executor.resume(h.authority, (await h.world.store.readPool(POOL))?.openSteps ?? []);
  await h.world.clock.advance(19_000);
  expect(h.world.effects).toEqual([]);
  await h.world.clock.advance(1_000);

  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("after close nothing new begins, and what sleeps is left unknown", async () => {
  const draft = await h.aCordon();
  const kube = faulty(h.world.kube, () => ({ error: API_DOWN, side: "before" }));
  const executor = h.anExecutor({ kube });
  void executor.start(h.authority, draft);
  await h.world.clock.settle();

  await executor.close();
  await executor.start(h.authority, await h.aCordon("b"));
  await h.world.clock.advance(MINUTES);

  expect(await h.stepsAs()).toEqual([`${draft.id} unknown kube_service_unavailable`]);
  expect(h.settled).toBe(0);
  expect(h.world.clock.pendingTimers).toBe(0);
});

test("an open drain ends once its instance has left the drain, although the process cannot be reached", async () => {
  const { process } = await aRunningInstance(h.world, "a");
  await storedInstance(h.world.store, h.authority, 0, "serving");
  h.world.instances.processes.clear();
  const executor = h.anExecutor();
  const payload = { instance: INSTANCE, incarnation: 1, from: "serving", loss: "voluntary", deadline: null, process };
  void executor.start(h.authority, draftOf(`drain/${INSTANCE}/1/voluntary`, "drain_instance/1", payload));
  await h.world.clock.advance(MINUTES);
  expect(await recordOf(h.world.store)).toMatchObject({ phase: "draining", drainLoss: "voluntary" });

  await h.world.store.commit(
    h.authority,
    [{ kind: "move_instance", instance: INSTANCE, from: "draining", to: "sealed", set: { seal: "forced" } }],
    0,
  );
  await h.world.clock.advance(MINUTES);

  expect(await h.stepsAs()).toEqual([`drain/${INSTANCE}/1/voluntary superseded overtaken`]);
});

test("a begin that is not possible any more records nothing and does nothing", async () => {
  await storedInstance(h.world.store, h.authority, 0, "failed");
  const executor = h.anExecutor();

  void executor.start(h.authority, aCreate());
  await h.world.clock.advance(1_000);

  expect(await h.steps()).toEqual([]);
  expect(h.world.effects).toEqual([]);
  expect(h.settled).toBe(1);
});

test("foreign cordon: the step is done and says whose it is (I7)", async () => {
  const draft = await h.aCordon();
  await h.world.kube.patch({ type: NODES, name: "a" }, { spec: { unschedulable: true } });
  h.world.effects.length = 0;

  await h.anExecutor().start(h.authority, draft);

  expect(await h.stepsAs()).toEqual([`${draft.id} done already_unschedulable`]);
  expect(h.world.effects).toEqual([]);
});

test("a step that ended since the caller read it is not gone on with", async () => {
  const draft = await h.aCordon();
  const executor = h.anExecutor();
  await h.world.store.commit(h.authority, [{ kind: "record_step", step: draft }], h.world.clock.now());
  const read = (await h.world.store.readPool(POOL))?.openSteps ?? [];
  await h.world.store.commit(
    h.authority,
    [{ kind: "end_step", step: draft.id, state: "superseded", outcome: "node_gone" }],
    h.world.clock.now(),
  );

  executor.resume(h.authority, read);
  await h.world.clock.advance(MINUTES);

  expect(h.world.effects).toEqual([]);
  expect(h.settled).toBe(0);
});

test("a first attempt that waited long for its turn asks whether the pool is still ours (I4)", async () => {
  const acted: string[] = [];
  const kinds = aKind({
    async act(_, { step }) {
      await h.world.clock.sleep(5_000);
      acted.push(step.id);
      return done("tried");
    },
  });
  const executor = h.anExecutor({ kinds });
  for (let index = 0; index < 20; index++) void executor.start(h.authority, draftOf(`try/${index}`, "try/1", {}));
  await h.world.clock.advance(1);

  await h.world.store.claim(POOL, "controller-2", h.world.clock.now());
  await h.world.clock.advance(MINUTES);

  expect(acted).toHaveLength(16);
  expect((await h.steps()).map(({ state }) => state)).toEqual(Array.from({ length: 20 }, () => "unknown"));
});

test("a first attempt that hears late that it is recorded asks whether the pool is still ours: it may have stood still meanwhile (I4)", async () => {
  const draft = await h.aCordon();
  const { store } = h.world;
  const late = {
    listSteps: store.listSteps.bind(store),
    commit: async (...input: Parameters<typeof store.commit>) => {
      const result = await store.commit(...input);
      if (input[1].some(({ kind }) => kind === "record_step")) await h.world.clock.sleep(15_000);
      return result;
    },
  };
  void h.anExecutor({ store: late }).start(h.authority, draft);
  await h.world.clock.advance(1_000);

  await store.claim(POOL, "controller-2", h.world.clock.now());
  await h.world.clock.advance(MINUTES);

  expect(h.world.effects).toEqual([]);
  expect(await h.stepsAs()).toEqual([`${draft.id} unknown null`]);
});

test("after close, what waits for its turn does not act", async () => {
  let acts = 0;
  const kinds = aKind({
    async act() {
      acts++;
      await h.world.clock.sleep(500);
      return done("tried");
    },
  });
  const executor = h.anExecutor({ kinds });
  for (let index = 0; index < 20; index++) void executor.start(h.authority, draftOf(`try/${index}`, "try/1", {}));
  await h.world.clock.advance(1);

  const closed = executor.close();
  await h.world.clock.advance(MINUTES);
  await closed;

  expect(acts).toBe(16);
  expect((await h.steps()).filter(({ state }) => state === "done")).toHaveLength(16);
});

test("close does not wait for ever for an attempt that hangs", async () => {
  const executor = h.anExecutor({ kinds: aKind({ act: () => new Promise(() => {}) }) });
  void executor.start(h.authority, draftOf("try/x", "try/1", {}));
  await h.world.clock.advance(1);

  let isClosed = false;
  void executor.close().then(() => (isClosed = true));
  await h.world.clock.advance(4_999);
  expect(isClosed).toBe(false);
  await h.world.clock.advance(1);

  expect(isClosed).toBe(true);
});
