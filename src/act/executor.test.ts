import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { KubeApiError } from "../kube/api.ts";
import { reason } from "../model/reasons.ts";
import { storeUnavailable } from "../store/port.ts";
import { done } from "./step-kind.ts";
import { aCreate, aKind, API_DOWN, draftOf, MINUTES, useHarness } from "./testing/executor-harness.ts";
import { faulty, type Fault } from "./testing/fuse.ts";
import { INSTANCE, POOL, recordOf, storedInstance } from "./testing/world.ts";

const h = useHarness();

test("a step is recorded, acts, and ends with its consequences; then the planner is asked again", async () => {
  await storedInstance(h.world.store, h.authority, 0, "pending");

  await h.anExecutor().start(h.authority, aCreate());

  expect(await h.stepsAs()).toEqual([`create/${INSTANCE} done created`]);
  const record = await recordOf(h.world.store);
  expect(record?.phase).toBe("preparing");
  expect(record?.objects.map(({ kind }) => kind)).toEqual(["Deployment", "ConfigMap"]);
  expect(h.settled).toBe(2); // when it was recorded with a change, and at its end
});

test("ten minutes of API errors are survived, with a back-off of at most 30 s and every attempt in the journal", async () => {
  let away = true;
  const down: Fault = () => (away ? { error: API_DOWN, side: "before" } : undefined);
  const executor = h.anExecutor({ kube: faulty(h.world.kube, down) });
  await storedInstance(h.world.store, h.authority, 0, "pending");

  void executor.start(h.authority, aCreate());
  await h.world.clock.advance(10 * MINUTES);

  const [open] = await h.steps();
  expect(open).toMatchObject({ state: "unknown", outcome: "kube_service_unavailable" });
  expect(open?.attempts).toBeGreaterThan(20);
  expect(executor.inFlight(POOL)).toEqual(new Set([`create/${INSTANCE}`]));
  away = false;
  await h.world.clock.advance(30_000);

  expect(await h.stepsAs()).toEqual([`create/${INSTANCE} done created`]);
  expect(h.world.effects).toHaveLength(2);
  expect(executor.inFlight(POOL)).toEqual(new Set());
});

test("a conflict is answered by reading again at once", async () => {
  const draft = await h.aCordon();
  const conflict = new KubeApiError({ code: 409, reason: "Conflict" }, "changed meanwhile");
  const kube = faulty(h.world.kube, ({ method, number }) =>
    method === "patch" && number <= 2 ? { error: conflict, side: "before" } : undefined,
  );

  await h.anExecutor({ kube }).start(h.authority, draft);

  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
  expect((await h.steps())[0]?.attempts).toBe(0);
});

test("conflicts without an end are backed off from and recorded like other faults", async () => {
  const draft = await h.aCordon();
  const conflict = new KubeApiError({ code: 409, reason: "Conflict" }, "changed meanwhile");
  let patches = 0;
  const kube = faulty(h.world.kube, ({ method }) =>
    method === "patch" && ++patches > 0 ? { error: conflict, side: "before" } : undefined,
  );

  void h.anExecutor({ kube }).start(h.authority, draft);
  await h.world.clock.advance(1_000);

  expect((await h.steps())[0]).toMatchObject({ state: "unknown", outcome: "kube_conflict" });
  expect(patches).toBeLessThan(30);
});

test("a lost reply of the cluster is settled by the probe, and the effect is there once (I27)", async () => {
  const draft = await h.aCordon();
  const kube = faulty(h.world.kube, ({ method, number }) =>
    method === "patch" && number === 1 ? { error: API_DOWN, side: "after" } : undefined,
  );

  void h.anExecutor({ kube }).start(h.authority, draft);
  await h.world.clock.advance(1_000);

  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
  expect(h.world.effects).toEqual(["patch nodes/a"]);
});

test("a terminal error ends the step as failed with its code, and the candidate with it (D14)", async () => {
  await storedInstance(h.world.store, h.authority, 0, "pending");
  const invalid = new KubeApiError({ code: 422, reason: "Invalid" }, "not valid");
  const kube = faulty(h.world.kube, ({ method }) => (method === "create" ? { error: invalid, side: "before" } : undefined));

  await h.anExecutor({ kube }).start(h.authority, aCreate());

  expect(await h.stepsAs()).toEqual([`create/${INSTANCE} failed kube_invalid`]);
  expect(await recordOf(h.world.store)).toMatchObject({ phase: "failed", failure: "kube_invalid" });
});

test("a missing permission fails no candidate: it is named as the reason, and the step goes on once it is given (D11, D12)", async () => {
  await storedInstance(h.world.store, h.authority, 0, "pending");
  const message =
    'deployments.apps is forbidden: User "system:serviceaccount:default:relevo-instances" cannot create resource "deployments"';
  const forbidden = new KubeApiError({ code: 403, reason: "Forbidden", message }, "POST");
  let isForbidden = true;
  const kube = faulty(h.world.kube, ({ method }) =>
    isForbidden && method === "create" ? { error: forbidden, side: "before" } : undefined,
  );
  const executor = h.anExecutor({ kube });

  const over = executor.start(h.authority, aCreate());
  await h.world.clock.advance(10_000);

  const holds = executor.resume(h.authority, (await h.world.store.readPool(h.authority.pool))?.openSteps ?? []);
  expect(holds).toEqual([
    { kind: "hold", subject: INSTANCE, reason: reason("step_forbidden", { step: `create/${INSTANCE}`, found: message }) },
  ]);
  isForbidden = false;
  await h.world.clock.advance(60_000);
  await over;
  expect(await h.stepsAs()).toEqual([`create/${INSTANCE} done created`]);
});

test("a decision that cannot be recorded (disk full) does nothing, and the planner is asked again later", async () => {
  const draft = await h.aCordon();
  let full = true;
  const store = faulty(h.world.store, ({ method }) =>
    method === "commit" && full ? { error: storeUnavailable("database or disk is full", null), side: "before" } : undefined,
  );
  const executor = h.anExecutor({ store });

  const first = executor.start(h.authority, draft);
  await h.world.clock.advance(1_000);
  await first;

  expect(h.world.effects).toEqual([]);
  expect(await h.steps()).toEqual([]);
  expect(h.settled).toBe(1);
  full = false;
  await executor.start(h.authority, draft);
  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("while the store cannot be written, an open step does not act again", async () => {
  const draft = await h.aCordon();
  let full = false;
  let patches = 0;
  const store = faulty(h.world.store, ({ method }) =>
    method === "commit" && full ? { error: storeUnavailable("full", null), side: "before" } : undefined,
  );
  const kube = faulty(h.world.kube, ({ method }) => {
    if (method !== "patch") return undefined;
    full = ++patches === 1;
    return patches === 1 ? { error: API_DOWN, side: "before" } : undefined;
  });

  void h.anExecutor({ store, kube }).start(h.authority, draft);
  await h.world.clock.advance(10 * MINUTES);
  expect(patches).toBe(1);
  full = false;
  await h.world.clock.advance(MINUTES);

  expect(patches).toBe(2);
  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("a lost reply of the commit that ends a step is repeated until it is known", async () => {
  await storedInstance(h.world.store, h.authority, 0, "pending");
  const store = faulty(h.world.store, ({ method, number }) =>
    method === "commit" && number >= 2 && number <= 4 ? { error: storeUnavailable("i/o", null), side: "after" } : undefined,
  );

  void h.anExecutor({ store }).start(h.authority, aCreate());
  await h.world.clock.advance(MINUTES);

  expect(await h.stepsAs()).toEqual([`create/${INSTANCE} done created`]);
  expect((await recordOf(h.world.store))?.phase).toBe("preparing");
  expect(h.settled).toBe(2); // when it was recorded with a change, and at its end
});

test("a lost reply of the commit that records a step leaves it for the next pass, which finishes it", async () => {
  const draft = await h.aCordon();
  const store = faulty(h.world.store, ({ method, number }) =>
    method === "commit" && number === 1 ? { error: storeUnavailable("i/o", null), side: "after" } : undefined,
  );
  const executor = h.anExecutor({ store });

  void executor.start(h.authority, draft);
  await h.world.clock.advance(1_000);
  expect(await h.stepsAs()).toEqual([`${draft.id} unknown null`]);
  executor.resume(h.authority, (await h.world.store.readPool(POOL))?.openSteps ?? []);
  await h.world.clock.settle();

  expect(await h.stepsAs()).toEqual([`${draft.id} done cordoned`]);
});

test("an open step whose payload cannot be understood is held", async () => {
  const executor = h.anExecutor();
  await h.world.store.commit(h.authority, [{ kind: "record_step", step: draftOf("cordon/x", "cordon_node/1", { nodes: [] }) }], 0);

  executor.resume(h.authority, (await h.world.store.readPool(POOL))?.openSteps ?? []);
  await h.world.clock.settle();

  expect(await h.stepsAs()).toEqual(["cordon/x held step_payload_invalid"]);
  expect(() => executor.start(h.authority, draftOf("cordon/y", "cordon_node/1", {}))).toThrow("not what that kind takes");
  expect(() => executor.start(h.authority, draftOf("z", "none/1", {}))).toThrow("No step of kind none/1");
});

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

  void h.anExecutor({ kinds }).start(h.authority, draftOf("try/x", "try/1", {}));
  await h.world.clock.advance(10 * MINUTES);

  expect(await h.stepsAs()).toEqual(["try/x held doubt 5"]);
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
  void h.anExecutor({ kinds, log }).start(h.authority, draftOf("try/x", "try/1", {}));
  await h.world.clock.advance(MINUTES);

  expect(await h.stepsAs()).toEqual(["try/x done tried"]);
  expect(errors).toHaveLength(2);
});

test("a store that is damaged says nothing about an open step: it is left, not failed", async () => {
  const draft = await h.aCordon();
  const damaged = new RelevoError("store_corrupt", "the store is damaged");
  const kube = faulty(h.world.kube, ({ method }) => (method === "patch" ? { error: API_DOWN, side: "before" } : undefined));
  const store = faulty(h.world.store, ({ method, number }) =>
    method === "commit" && number === 3 ? { error: damaged, side: "before" } : undefined,
  );

  void h.anExecutor({ kube, store }).start(h.authority, draft);
  await h.world.clock.advance(MINUTES);

  expect(await h.stepsAs()).toEqual([`${draft.id} unknown kube_service_unavailable`]);
});
