import { afterEach, beforeEach, expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import { KubeApiError } from "../kube/api.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NODES } from "../kube/resources.ts";
import { reason } from "../model/reasons.ts";
import type { StepDraft } from "../model/step.ts";
import { type Authority, storeUnavailable } from "../store/port.ts";
import { createExecutor, type ExecutorOptions } from "./executor.ts";
import { registryOf, type StepRegistry } from "./registry.ts";
import { renderBlueprint } from "./render-blueprint.ts";
import { NOT_HAPPENED, done, register, type StepKind } from "./step-kind.ts";
import { type Fault, faulty } from "./testing/fuse.ts";
import { aNode, aRunningInstance, aWorld, BLUEPRINT, INSTANCE, POOL, recordOf, storedInstance, type World } from "./testing/world.ts";
import { z } from "zod";

const API_DOWN = new KubeApiError({ code: 503, reason: "ServiceUnavailable" }, "the API server is away");
const MINUTES = 60_000;

let world: World;
let authority: Authority;
let settled: number;

beforeEach(async () => {
  world = await aWorld();
  authority = await world.store.claim(POOL, "controller-1", world.clock.now());
  settled = 0;
});
afterEach(() => world.store.close());

function anExecutor(overrides: Partial<ExecutorOptions> = {}) {
  const quiet = { info: () => {}, warn: () => {}, error: () => {} };
  return createExecutor({
    store: world.store,
    kube: world.kube,
    driver: world.instances,
    clock: world.clock,
    random: { next: () => 0.5 },
    log: quiet,
    onSettled: () => void settled++,
    ...overrides,
  });
}

const steps = () => world.store.listSteps(POOL, 100);
const stepsAs = async () => (await steps()).map(({ id, state, outcome }) => `${id} ${state} ${outcome}`).toReversed();

async function aCordon(name = "a"): Promise<StepDraft> {
  const node = await aNode(world.kube, name);
  const { uid } = node.metadata;
  world.effects.length = 0;
  return draftOf(`cordon/${uid}/e1`, "cordon_node/1", { node: { name, uid }, evidence: "e1" });
}

function draftOf(id: string, kind: string, payload: unknown): StepDraft {
  return { id, operation: "op", pool: POOL, instance: INSTANCE, kind, payload, reason: reason("created") };
}

function aCreate(): StepDraft {
  const objects = renderBlueprint(BLUEPRINT, { instance: INSTANCE, pool: "orders", site: "local", namespace: "default" });
  const createdBy = `create/${INSTANCE}`;
  return draftOf(createdBy, "create_instance/1", { instance: INSTANCE, namespace: "default", createdBy, objects });
}

test("a step is recorded, acts, and ends with its consequences; then the planner is asked again", async () => {
  await storedInstance(world.store, authority, 0, "pending");

  await anExecutor().start(authority, aCreate());

  expect(await stepsAs()).toEqual([`create/${INSTANCE} done created`]);
  const record = await recordOf(world.store);
  expect(record?.phase).toBe("preparing");
  expect(record?.objects.map(({ kind }) => kind)).toEqual(["Deployment", "ConfigMap"]);
  expect(settled).toBe(1);
});

test("ten minutes of API errors are survived, with a back-off of at most 30 s and every attempt in the journal", async () => {
  let away = true;
  const down: Fault = () => (away ? { error: API_DOWN, side: "before" } : undefined);
  const executor = anExecutor({ kube: faulty(world.kube, down) });
  await storedInstance(world.store, authority, 0, "pending");

  void executor.start(authority, aCreate());
  await world.clock.advance(10 * MINUTES);

  const [open] = await steps();
  expect(open).toMatchObject({ state: "unknown", outcome: "kube_service_unavailable" });
  expect(open?.attempts).toBeGreaterThan(20);
  expect(executor.inFlight(POOL)).toEqual(new Set([`create/${INSTANCE}`]));
  away = false;
  await world.clock.advance(30_000);

  expect(await stepsAs()).toEqual([`create/${INSTANCE} done created`]);
  expect(world.effects).toHaveLength(2);
  expect(executor.inFlight(POOL)).toEqual(new Set());
});

test("a conflict is answered by reading again at once", async () => {
  const draft = await aCordon();
  const conflict = new KubeApiError({ code: 409, reason: "Conflict" }, "changed meanwhile");
  const kube = faulty(world.kube, ({ method, number }) =>
    method === "patch" && number <= 2 ? { error: conflict, side: "before" } : undefined,
  );

  await anExecutor({ kube }).start(authority, draft);

  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
  expect((await steps())[0]?.attempts).toBe(0);
});

test("conflicts without an end are backed off from and recorded like other faults", async () => {
  const draft = await aCordon();
  const conflict = new KubeApiError({ code: 409, reason: "Conflict" }, "changed meanwhile");
  let patches = 0;
  const kube = faulty(world.kube, ({ method }) => (method === "patch" && ++patches > 0 ? { error: conflict, side: "before" } : undefined));

  void anExecutor({ kube }).start(authority, draft);
  await world.clock.advance(1_000);

  expect((await steps())[0]).toMatchObject({ state: "unknown", outcome: "kube_conflict" });
  expect(patches).toBeLessThan(30);
});

test("a lost reply of the cluster is settled by the probe, and the effect is there once (I27)", async () => {
  const draft = await aCordon();
  const kube = faulty(world.kube, ({ method, number }) =>
    method === "patch" && number === 1 ? { error: API_DOWN, side: "after" } : undefined,
  );

  void anExecutor({ kube }).start(authority, draft);
  await world.clock.advance(1_000);

  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
  expect(world.effects).toEqual(["patch nodes/a"]);
});

test("a terminal error ends the step as failed with its code, and the candidate with it (D14)", async () => {
  await storedInstance(world.store, authority, 0, "pending");
  const forbidden = new KubeApiError({ code: 403, reason: "Forbidden" }, "not allowed");
  const kube = faulty(world.kube, ({ method }) => (method === "create" ? { error: forbidden, side: "before" } : undefined));

  await anExecutor({ kube }).start(authority, aCreate());

  expect(await stepsAs()).toEqual([`create/${INSTANCE} failed kube_forbidden`]);
  expect(await recordOf(world.store)).toMatchObject({ phase: "failed", failure: "kube_forbidden" });
});

test("a decision that cannot be recorded (disk full) does nothing, and the planner is asked again later", async () => {
  const draft = await aCordon();
  let full = true;
  const store = faulty(world.store, ({ method }) =>
    method === "commit" && full ? { error: storeUnavailable("database or disk is full", null), side: "before" } : undefined,
  );
  const executor = anExecutor({ store });

  const first = executor.start(authority, draft);
  await world.clock.advance(1_000);
  await first;

  expect(world.effects).toEqual([]);
  expect(await steps()).toEqual([]);
  expect(settled).toBe(1);
  full = false;
  await executor.start(authority, draft);
  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("while the store cannot be written, an open step does not act again", async () => {
  const draft = await aCordon();
  let full = false;
  let patches = 0;
  const store = faulty(world.store, ({ method }) =>
    method === "commit" && full ? { error: storeUnavailable("full", null), side: "before" } : undefined,
  );
  const kube = faulty(world.kube, ({ method }) => {
    if (method !== "patch") return undefined;
    full = ++patches === 1;
    return patches === 1 ? { error: API_DOWN, side: "before" } : undefined;
  });

  void anExecutor({ store, kube }).start(authority, draft);
  await world.clock.advance(10 * MINUTES);
  expect(patches).toBe(1);
  full = false;
  await world.clock.advance(MINUTES);

  expect(patches).toBe(2);
  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("a lost reply of the commit that ends a step is repeated until it is known", async () => {
  await storedInstance(world.store, authority, 0, "pending");
  const store = faulty(world.store, ({ method, number }) =>
    method === "commit" && number >= 2 && number <= 4 ? { error: storeUnavailable("i/o", null), side: "after" } : undefined,
  );

  void anExecutor({ store }).start(authority, aCreate());
  await world.clock.advance(MINUTES);

  expect(await stepsAs()).toEqual([`create/${INSTANCE} done created`]);
  expect((await recordOf(world.store))?.phase).toBe("preparing");
  expect(settled).toBe(1);
});

test("a lost reply of the commit that records a step leaves it for the next pass, which finishes it", async () => {
  const draft = await aCordon();
  const store = faulty(world.store, ({ method, number }) =>
    method === "commit" && number === 1 ? { error: storeUnavailable("i/o", null), side: "after" } : undefined,
  );
  const executor = anExecutor({ store });

  void executor.start(authority, draft);
  await world.clock.advance(1_000);
  expect(await stepsAs()).toEqual([`${draft.id} unknown null`]);
  executor.resume(authority, (await world.store.readPool(POOL))?.openSteps ?? []);
  await world.clock.settle();

  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("under a newer authority nothing more is done, and the step stays unknown (I4)", async () => {
  const draft = await aCordon();
  const kube = faulty(world.kube, ({ method, number }) =>
    method === "get" && number === 1 ? { error: API_DOWN, side: "before" } : undefined,
  );
  const executor = anExecutor({ kube });
  void executor.start(authority, draft);
  await world.clock.settle();

  await world.store.claim(POOL, "controller-2", world.clock.now());
  await world.clock.advance(MINUTES);

  expect(await stepsAs()).toEqual([`${draft.id} unknown kube_service_unavailable`]);
  expect(world.effects).toEqual([]);
  expect(executor.inFlight(POOL)).toEqual(new Set());
  expect(settled).toBe(0);
});

test("the same process under a newer epoch goes on with what is under way", async () => {
  const draft = await aCordon();
  const kube = faulty(world.kube, ({ method, number }) =>
    method === "get" && number === 1 ? { error: API_DOWN, side: "before" } : undefined,
  );
  const executor = anExecutor({ kube });
  void executor.start(authority, draft);
  await world.clock.settle();

  const newer = await world.store.claim(POOL, "controller-1", world.clock.now());
  executor.resume(newer, (await world.store.readPool(POOL))?.openSteps ?? []);
  await world.clock.advance(MINUTES);

  expect(newer.epoch).not.toBe(epoch(0, 0));
  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("an instance that moved on meanwhile supersedes the end of its create, and the delete finds what was made by label", async () => {
  await storedInstance(world.store, authority, 0, "pending");
  const kube = faulty(world.kube, ({ method, number }) => {
    if (method === "create" && number === 2)
      void world.store.commit(
        authority,
        [{ kind: "move_instance", instance: INSTANCE, from: "creating", to: "failed", set: { failure: "given_up" } }],
        0,
      );
    return undefined;
  });
  const executor = anExecutor({ kube });

  await executor.start(authority, aCreate());

  expect(await stepsAs()).toEqual([`create/${INSTANCE} superseded overtaken`]);
  expect(await recordOf(world.store)).toMatchObject({ phase: "failed", failure: "given_up", objects: [] });
  const payload = { instance: INSTANCE, namespace: "default", from: "failed", objects: [], createdBy: `create/${INSTANCE}` };
  await executor.start(authority, draftOf(`delete/${INSTANCE}`, "delete_instance/1", payload));
  expect((await recordOf(world.store))?.phase).toBe("retired");
  expect((await world.kube.list(DEPLOYMENTS, { namespace: "default" })).items).toEqual([]);
  expect((await world.kube.list(CONFIG_MAPS, { namespace: "default" })).items).toEqual([]);
});

test("a delete waits for the create of its instance, wakes it from its back-off, and nothing is left behind", async () => {
  await storedInstance(world.store, authority, 0, "pending");
  let away = true;
  const kube = faulty(world.kube, ({ method, number }) =>
    method === "create" && number > 1 && away ? { error: API_DOWN, side: "before" } : undefined,
  );
  const executor = anExecutor({ kube });
  void executor.start(authority, aCreate());
  await world.clock.advance(5 * MINUTES);
  await world.store.commit(
    authority,
    [{ kind: "move_instance", instance: INSTANCE, from: "creating", to: "failed", set: { failure: "given_up" } }],
    0,
  );

  const payload = { instance: INSTANCE, namespace: "default", from: "failed", objects: [], createdBy: `create/${INSTANCE}` };
  const before = world.clock.now();
  away = false;
  void executor.start(authority, draftOf(`delete/${INSTANCE}`, "delete_instance/1", payload));
  await world.clock.settle();

  expect(world.clock.now()).toBe(before);
  expect(await stepsAs()).toEqual([`create/${INSTANCE} superseded overtaken`, `delete/${INSTANCE} done absent`]);
  expect((await world.kube.list(CONFIG_MAPS, { namespace: "default" })).items).toEqual([]);
});

test("one decision is worked on once, however often it is made", async () => {
  const draft = await aCordon();
  const executor = anExecutor();

  await Promise.all([executor.start(authority, draft), executor.start(authority, draft), executor.start(authority, draft)]);
  await executor.start(authority, draft);

  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
  expect(world.effects).toEqual(["patch nodes/a"]);
  expect(settled).toBe(1);
});

test("a decision whose last attempt ended in vain gets the next number, after a cool-down that grows", async () => {
  const draft = { ...(await aCordon()), payload: { node: { name: "a", uid: "another" }, evidence: "e1" } };
  const executor = anExecutor();
  const until = async (count: number) => {
    while ((await steps()).length < count) {
      void executor.start(authority, draft);
      await world.clock.advance(50);
    }
    return world.clock.now();
  };

  const [first, second, third, fourth] = [await until(1), await until(2), await until(3), await until(4)];

  expect((await steps()).map(({ id }) => id).toReversed()).toEqual([draft.id, `${draft.id}#2`, `${draft.id}#3`, `${draft.id}#4`]);
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(250);
  expect((fourth ?? 0) - (third ?? 0)).toBeGreaterThanOrEqual(1_000);
});

test("a kind from a newer version is left unknown and held with a reason", async () => {
  const draft = draftOf("split/x", "split_instance/7", {});
  await world.store.commit(authority, [{ kind: "record_step", step: draft }], 0);

  const holds = anExecutor().resume(authority, (await world.store.readPool(POOL))?.openSteps ?? []);

  expect(holds).toEqual([
    { kind: "hold", subject: INSTANCE, reason: reason("step_from_newer_version", { step: "split/x", kind: "split_instance/7" }) },
  ]);
  expect(await stepsAs()).toEqual(["split/x unknown null"]);
});

test("an open step whose payload cannot be understood is held", async () => {
  const executor = anExecutor();
  await world.store.commit(authority, [{ kind: "record_step", step: draftOf("cordon/x", "cordon_node/1", { nodes: [] }) }], 0);

  executor.resume(authority, (await world.store.readPool(POOL))?.openSteps ?? []);
  await world.clock.settle();

  expect(await stepsAs()).toEqual(["cordon/x held step_payload_invalid"]);
  expect(() => executor.start(authority, draftOf("cordon/y", "cordon_node/1", {}))).toThrow("not what that kind takes");
  expect(() => executor.start(authority, draftOf("z", "none/1", {}))).toThrow("No step of kind none/1");
});

function aKind(overrides: Partial<StepKind<unknown>>): StepRegistry {
  return registryOf([
    register({
      kind: "try/1",
      schema: z.unknown(),
      act: async () => done("tried"),
      probe: async () => NOT_HAPPENED,
      settle: () => [],
      ...overrides,
    }),
  ]);
}

test("what no probe can tell is held, after a bounded number of probes", async () => {
  let probes = 0;
  let acts = 0;
  const kinds = aKind({
    act: async () => {
      acts++;
      throw new RelevoError("lost", "lost", { class: "retryable" });
    },
    probe: async () => ({ answer: "cannot_tell", why: `doubt ${++probes}` }),
  });

  void anExecutor({ kinds }).start(authority, draftOf("try/x", "try/1", {}));
  await world.clock.advance(10 * MINUTES);

  expect(await stepsAs()).toEqual(["try/x held doubt 5"]);
  expect(acts).toBe(1);
});

test("a fault of the program is no failed step: it is tried again and logged", async () => {
  const errors: string[] = [];
  let acts = 0;
  const kinds = aKind({
    act: async () => {
      if (++acts < 3) throw new TypeError("undefined is not a function");
      return done("tried");
    },
  });

  const log = { info: () => {}, warn: () => {}, error: (_: object, message: string) => void errors.push(message) };
  void anExecutor({ kinds, log }).start(authority, draftOf("try/x", "try/1", {}));
  await world.clock.advance(MINUTES);

  expect(await stepsAs()).toEqual(["try/x done tried"]);
  expect(errors).toHaveLength(2);
});

test("at most 16 steps of a pool act at once, and one that backs off takes no place (I15)", async () => {
  let atOnce = 0;
  let most = 0;
  const kinds = aKind({
    act: async () => {
      most = Math.max(most, ++atOnce);
      await world.clock.sleep(10);
      atOnce--;
      if (world.clock.now() % 3 === 0) throw new RelevoError("later", "later", { class: "retryable" });
      return done("tried");
    },
  });
  const executor = anExecutor({ kinds });

  const all = Array.from({ length: 100 }, (_, index) => executor.start(authority, draftOf(`try/${index}`, "try/1", {})));
  await world.clock.advance(10 * MINUTES);
  await Promise.all(all);

  expect(most).toBe(16);
  expect((await steps()).every(({ state }) => state === "done")).toBe(true);
});

test("a step that was to be tried again later waits for its time after a restart, at most 30 s", async () => {
  const draft = await aCordon();
  await world.store.commit(authority, [{ kind: "record_step", step: draft }], world.clock.now());
  await world.store.commit(
    authority,
    [{ kind: "retry_step", step: draft.id, notBefore: world.clock.now() + 20_000, error: "kube_timeout" }],
    world.clock.now(),
  );
  const executor = anExecutor();

  executor.resume(authority, (await world.store.readPool(POOL))?.openSteps ?? []);
  await world.clock.advance(19_000);
  expect(world.effects).toEqual([]);
  await world.clock.advance(1_000);

  expect(await stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("after close nothing new begins, and what sleeps is left unknown", async () => {
  const draft = await aCordon();
  const kube = faulty(world.kube, () => ({ error: API_DOWN, side: "before" }));
  const executor = anExecutor({ kube });
  void executor.start(authority, draft);
  await world.clock.settle();

  await executor.close();
  await executor.start(authority, await aCordon("b"));
  await world.clock.advance(MINUTES);

  expect(await stepsAs()).toEqual([`${draft.id} unknown kube_service_unavailable`]);
  expect(settled).toBe(0);
  expect(world.clock.pendingTimers).toBe(0);
});

test("an open drain ends once its instance has left the drain, although the process cannot be reached", async () => {
  const { process } = await aRunningInstance(world, "a");
  await storedInstance(world.store, authority, 0, "serving");
  world.instances.processes.clear();
  const executor = anExecutor();
  const payload = { instance: INSTANCE, incarnation: 1, from: "serving", loss: "voluntary", deadline: null, process };
  void executor.start(authority, draftOf(`drain/${INSTANCE}/1/voluntary`, "drain_instance/1", payload));
  await world.clock.advance(MINUTES);
  expect(await recordOf(world.store)).toMatchObject({ phase: "draining", drainLoss: "voluntary" });

  await world.store.commit(
    authority,
    [{ kind: "move_instance", instance: INSTANCE, from: "draining", to: "sealed", set: { seal: "forced" } }],
    0,
  );
  await world.clock.advance(MINUTES);

  expect(await stepsAs()).toEqual([`drain/${INSTANCE}/1/voluntary superseded overtaken`]);
});

test("a begin that is not possible any more records nothing and does nothing", async () => {
  await storedInstance(world.store, authority, 0, "failed");
  const executor = anExecutor();

  void executor.start(authority, aCreate());
  await world.clock.advance(1_000);

  expect(await steps()).toEqual([]);
  expect(world.effects).toEqual([]);
  expect(settled).toBe(1);
});

test("foreign cordon: the step is done and says whose it is (I7)", async () => {
  const draft = await aCordon();
  await world.kube.patch({ type: NODES, name: "a" }, { spec: { unschedulable: true } });
  world.effects.length = 0;

  await anExecutor().start(authority, draft);

  expect(await stepsAs()).toEqual([`${draft.id} done already_unschedulable`]);
  expect(world.effects).toEqual([]);
});

test("a step that ended since the caller read it is not gone on with", async () => {
  const draft = await aCordon();
  const executor = anExecutor();
  await world.store.commit(authority, [{ kind: "record_step", step: draft }], world.clock.now());
  const read = (await world.store.readPool(POOL))?.openSteps ?? [];
  await world.store.commit(authority, [{ kind: "end_step", step: draft.id, state: "superseded", outcome: "node_gone" }], world.clock.now());

  executor.resume(authority, read);
  await world.clock.advance(MINUTES);

  expect(world.effects).toEqual([]);
  expect(settled).toBe(0);
});
