/** Worker pools whose size follows their own backlog, in a whole controller under a virtual clock. Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { POOLS } from "../../src/kube/resources.ts";
import { capturePool, Harness, ordersPool } from "./harness.ts";
import { unreachable } from "./modelled-work.ts";

const POOL = "default/capture";

let harness: Harness;
afterEach(() => harness.close());

async function start(pool = capturePool(), { pushes = true, gateways = 0 } = {}): Promise<void> {
  harness = await Harness.start({ gateways, work: { pushes } });
  await harness.apply(pool);
}

const desired = async () => (await harness.store.readPool(POOL))?.scale?.desired;
const isDrained = (): boolean => harness.work.backlog.length === 0 && harness.work.taken === 0;
/** A new controller cannot judge slots at once, and does not grow blindly. */
const settle = () => harness.pass(10_000);

test("a worker pool serves without any gateway, grows with its backlog within a second, and shrinks without an interrupted job (K1)", async () => {
  await start();
  await harness.untilServing(1, POOL);
  await settle();

  const addedAt = harness.clock.now();
  harness.work.add(40);
  await harness.until("its size is decided", async () => (await desired()) === 6, 1_000);
  expect(harness.clock.now() - addedAt).toBeLessThanOrEqual(1_000);
  await harness.untilServing(6, POOL);
  await harness.until("the backlog is drained", isDrained, 60_000);
  await harness.until("only the floor is left", async () => (await harness.records(POOL)).length === 1, 120_000);

  expect(harness.work).toMatchObject({ done: 40, interrupted: 0 });
  const seals = (await harness.store.listInstances(POOL, 100)).flatMap(({ seal }) => (seal === null ? [] : [seal]));
  expect(seals).toEqual(["confirmed", "confirmed", "confirmed", "confirmed", "confirmed"]);
  const changes = await harness.store.listScaleChanges(POOL, 100);
  expect(changes.at(-1)).toMatchObject({ from: 1, to: 6, reason: "scale_up" });
  expect(changes[0]).toMatchObject({ to: 1 });
});

test("a signal that is none changes nothing, is told as a reason, and is followed again when it returns (K11)", async () => {
  await start();
  harness.work.add(200);
  await harness.untilServing(6, POOL);

  const troubles: [string, () => never | number][] = [
    ["not_a_number", () => Number.NaN],
    ["negative", () => -1],
    ["type_changed", () => null as unknown as number],
    ["unreachable", unreachable],
  ];
  for (const [code, backlog] of troubles) {
    harness.work.answer = (reading) => ({ ...reading, backlog: backlog() });
    await harness.until(`it is told: ${code}`, () => harness.demand(POOL)?.trouble?.code === code, 30_000);
    await harness.pass(3_000);
    expect(await harness.reasons(POOL)).toContain("scale_demand_invalid");
    expect(await desired()).toBe(6);
  }
  harness.work.answer = undefined;
  await harness.until("it is followed again", () => harness.demand(POOL)?.trouble === null, 40_000);
});

test("from zero and to zero: nothing is there without work, and the first job brings an instance", async () => {
  await start(capturePool({}, { size: { desired: 0, floor: 0, max: 6 } }));
  await settle();
  expect(await harness.records(POOL)).toEqual([]);

  harness.work.add(1);
  await harness.untilServing(1, POOL, 10_000);
  await harness.until("the job is done", isDrained);
  await harness.until("nothing is there any more", async () => (await harness.records(POOL)).length === 0, 60_000);
  expect(harness.work).toMatchObject({ done: 1, interrupted: 0 });
});

test("a polled signal is followed within its interval and half a second", async () => {
  await start(capturePool({ pollEvery: "5s" }), { pushes: false });
  await harness.untilServing(1, POOL);
  await settle();

  const addedAt = harness.clock.now();
  harness.work.add(40);
  await harness.until("its size is decided", async () => (await desired()) === 6, 6_000);
  expect(harness.clock.now() - addedAt).toBeLessThanOrEqual(5_500);
});

test("hanging jobs hold every slot: the size does not grow, the reason is told; once they are reaped it grows and drains (K6, I23)", async () => {
  await start();
  await harness.untilServing(1, POOL);
  await settle();
  harness.work.add(2, true);
  await harness.pass(12_000);
  harness.work.add(40);
  await harness.pass(60_000);

  expect(await desired()).toBeUndefined();
  expect(await harness.reasons(POOL)).toContain("scale_held_stuck");
  const explained = (await harness.controlPlane.explain(POOL)).scale;
  expect(explained).toMatchObject({
    isGrowthHeld: true,
    slots: { total: 2, stuck: 2, free: 0 },
    desired: 1,
    max: 6,
    proof: "nothing_proven",
  });

  harness.work.reapAll();
  await harness.untilServing(6, POOL, 30_000);
  await harness.until("the backlog is drained", isDrained, 60_000);
  expect(harness.work).toMatchObject({ done: 40, interrupted: 0 });
});

test("workers that take from another flow than the pool says are told, and their pool's size stays (K1)", async () => {
  await start();
  harness.work.workersFlow = "queue/captures-eu";
  await harness.untilServing(1, POOL);
  await settle();
  harness.work.add(40);
  await harness.pass(20_000);

  expect(await desired()).toBeUndefined();
  expect(harness.demand(POOL)?.trouble).toMatchObject({ code: "other_flow" });
  expect(harness.demand(POOL)?.trouble?.detail).toMatch(/takes from queue\/captures-eu, and worker\.flow is queue\/captures$/);
});

test("another controller goes on from the size that was decided, also while the signal is away", async () => {
  await start();
  await harness.untilServing(1, POOL);
  await settle();
  harness.work.add(400);
  await harness.untilServing(6, POOL);
  harness.work.answer = unreachable;

  await harness.restartController(5_000);
  await harness.pass(60_000);

  expect(await desired()).toBe(6);
  expect((await harness.serving(POOL)).length).toBe(6);
  expect(harness.demand(POOL)).toMatchObject({ reading: null, trouble: { code: "unreachable" } });
  harness.work.answer = undefined;
  await harness.until("it is followed again", () => harness.demand(POOL)?.trouble === null, 40_000);
  expect((await harness.serving(POOL)).length).toBe(6);
});

test("a connection that nobody configured changes nothing and is told by its name (K2)", async () => {
  await start(capturePool({ signal: { kind: "queue", connection: "elsewhere", queue: "captures" } }));
  await harness.untilServing(1, POOL);
  await settle();

  const status = (await harness.cluster.api.get({ type: POOLS, namespace: "default", name: "capture" }))["status"] as Status;
  expect(status.conditions.find(({ type }) => type === "ScaleReady")).toMatchObject({
    status: "False",
    reason: "DemandNotAvailable",
    message: "no connection elsewhere is configured (relevo controller --connections): relevo queue",
  });
});

interface Status {
  readonly desired: number;
  readonly demand: Readonly<Record<string, unknown>>;
  readonly slots: Readonly<Record<string, unknown>>;
  readonly capacity: Readonly<Record<string, unknown>>;
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }[];
}

test("status, metrics and explain tell the same; configured and proven stand beside each other (K7)", async () => {
  await start();
  await harness.untilServing(1, POOL);
  await settle();
  harness.work.add(400);
  await harness.untilServing(6, POOL);
  await harness.controlPlane.recordProven(
    POOL,
    { instances: 4, throughputPerInstance: 1, stuckShare: 0.2, recoveryMs: 30_000, jobs: 500, evidence: "loadtest.json" },
    "ann",
  );
  await harness.pass(20_000);

  const status = (await harness.cluster.api.get({ type: POOLS, namespace: "default", name: "capture" }))["status"] as Status;
  expect(status).toMatchObject({
    desired: 6,
    demand: { inFlight: 12 },
    slots: { total: 12, free: 0, progressing: 12, stuck: 0 },
    capacity: { configured: 6, proven: 4 },
  });
  expect(status.conditions.find(({ type }) => type === "WithinProven")).toMatchObject({
    status: "False",
    reason: "AboveProven",
    message: "6 desired, 6 configured at most, 4 proven: run relevo loadtest",
  });
  const metrics = await harness.metrics.registry.metrics();
  for (const line of [
    'relevo_desired{pool="default/capture"} 6',
    'relevo_slots{pool="default/capture",state="progressing"} 12',
    'relevo_proven{pool="default/capture"} 4',
    'relevo_scale_held{pool="default/capture"} 0',
    'relevo_scale_changes_total{pool="default/capture",direction="up"} 1',
  ])
    expect(metrics).toContain(line);
  const scale = (await harness.controlPlane.explain(POOL)).scale;
  expect(scale).toMatchObject({ desired: 6, max: 6, proof: "above_proven", owner: "relevo, pool default/capture", otherOwners: [] });
  expect(scale?.jobs?.done).toBeGreaterThan(10);
  expect(scale?.changes).toMatchObject([{ from: 1, to: 6 }]);
});

test("gateways hear nothing of a pool of workers, and a service may have its name as a route", async () => {
  await start(capturePool(), { gateways: 1 });
  await harness.apply(ordersPool({ name: "web", route: "capture" }));
  await harness.untilServing(2, "default/web");
  await harness.untilServing(1, POOL);

  const [gateway] = harness.gateways;
  expect(gateway?.routed("capture").every((instance) => instance.startsWith("web-"))).toBe(true);
  expect(gateway?.routed("capture")).toHaveLength(2);
  expect(await harness.reasons(POOL)).not.toContain("route_taken");
});

test("a lost worker's jobs are counted, and another takes them", async () => {
  await start(capturePool({ target: 100 }));
  await harness.untilServing(1, POOL);
  await settle();
  const [first] = await harness.serving(POOL);
  harness.work.jobMs = 600_000;
  harness.work.add(2);
  await harness.until("both are taken", () => harness.work.taken === 2);
  await harness.pass(3_000);
  harness.crash(first?.incarnation.host ?? null);
  await harness.until("another process has them", () => harness.work.interrupted === 2 && harness.work.taken === 2, 120_000);

  const lost = await harness.store.countLosses(POOL);
  expect(lost).toMatchObject([{ loss: "forced", obligations: 2 }]);
});

test("a stuck worker in a scale-in: it goes first, nobody cuts its slot, it holds up no other, and it is gone once its child was reaped (K5, I22)", async () => {
  await start();
  await harness.untilServing(1, POOL);
  await settle();
  harness.work.add(400);
  await harness.untilServing(6, POOL);
  harness.work.backlog.length = 0;
  harness.work.backlog.push(true);
  await harness.until("one hangs", () => harness.work.hanging().length === 1 && harness.work.taken === 1, 20_000);
  const [host] = harness.work.hanging();
  const stuck = (await harness.serving(POOL)).find(({ incarnation }) => incarnation.host === host);
  expect(stuck).toBeDefined();

  const left = async () => (await harness.records(POOL)).map(({ id, phase }) => `${id} ${phase}`).toSorted();
  await harness.until("all others that are too many have gone", async () => (await left()).length === 2, 300_000);
  await harness.pass(120_000);
  expect(await left()).toContain(`${stuck?.id} draining`);
  expect(harness.work).toMatchObject({ interrupted: 0, taken: 1 });

  harness.work.reapAll();
  await harness.until("it is gone", async () => (await harness.phase(stuck?.id ?? "", POOL)) === "deleted", 30_000);
  expect((await harness.instance(stuck?.id ?? "", POOL)).seal).toBe("confirmed");
  expect((await harness.serving(POOL)).length).toBe(1);
  expect(harness.work.interrupted).toBe(0);
});

test("84 may be made for 42 jobs, and 42 are; those that are still coming are counted, and no job asks for a second one (K1)", async () => {
  await start(
    capturePool({ target: 0.5, tolerance: 0, up: { step: { instances: 100, per: "5s" } } }, { size: { desired: 1, floor: 1, max: 84 } }),
  );
  await harness.untilServing(1, POOL);
  await settle();
  harness.work.jobMs = 600_000;
  harness.work.add(42);
  await harness.until("its size is decided", async () => (await desired()) === 42, 1_000);
  await harness.until("all are made", async () => (await harness.records(POOL)).length === 42);
  expect((await harness.serving(POOL)).length).toBeLessThan(42);
  await harness.pass(120_000);
  expect([await desired(), (await harness.records(POOL)).length, harness.work.interrupted]).toEqual([42, 42, 0]);
  expect((await harness.store.listInstances(POOL, 200)).length).toBe(42);
});
