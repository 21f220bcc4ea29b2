/** A store that was restored from an old backup: it is seen, nothing is done from it, and it is gone on with above all that was seen. Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { compareEpochs, epochParts, type Epoch } from "../../src/kernel/epoch.ts";
import { DEPLOYMENTS } from "../../src/kube/resources.ts";
import { LABELS } from "../../src/model/marks.ts";
import { storeView } from "../../src/server/views.ts";
import { Harness, ordersPool } from "./harness.ts";
import { isWrite, lineOf, serverAway } from "./observed-kube.ts";
import { Rewindable } from "./rewindable.ts";

let harness: Harness;
afterEach(() => harness.close());

interface Rewound {
  readonly rewindable: Rewindable;
  /** Known to the backup and gone since. */
  readonly former: string;
  /** Not known to the backup, and serving. */
  readonly current: string;
  /** Serves throughout. */
  readonly staying: string;
  readonly generation: Epoch;
}

/** A backup is taken, then an instance is replaced, then the store is what it was. With `downMs` the controller was away meanwhile. */
async function rewound(
  options: { readonly downMs?: number; readonly gateways?: number; readonly pool?: Parameters<typeof ordersPool>[0] } = {},
) {
  const rewindable = new Rewindable();
  harness = await Harness.start({ gateways: options.gateways ?? 1, store: (store) => rewindable.over(store) });
  const [victim, other] = await harness.serve(ordersPool(options.pool));
  await harness.pass(10_000);
  const backup = rewindable.backUp();
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it was replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  await harness.untilServing(2);
  const { generation } = await harness.pool();
  const current = (await harness.serving()).find(({ id }) => id !== other?.id)?.id ?? "";
  const made: Rewound = { rewindable, former: victim?.id ?? "", current, staying: other?.id ?? "", generation };

  if (options.downMs === undefined) await rewindable.rewindTo(backup);
  else await harness.restartController(options.downMs, () => rewindable.rewindTo(backup));
  return made;
}

async function check() {
  return storeView.parse((await harness.http.inject({ url: "/v1/store" })).json());
}

async function recover(body: Record<string, unknown> = { why: "yesterday's backup was restored", by: "alice" }) {
  const answer = await harness.http.inject({ method: "POST", url: "/v1/store/recover", payload: body });
  return { status: answer.statusCode, body: answer.json() as { readonly error?: { readonly code: string } } };
}

/** What was asked of the cluster, status and Events apart. */
function deeds(): readonly string[] {
  return harness.kube.calls.filter((call) => isWrite(call) && call.verb !== "patchStatus" && call.kind !== "Event").map(lineOf);
}

async function deployments(): Promise<readonly string[]> {
  const { items } = await harness.cluster.api.list(DEPLOYMENTS, { namespace: "default" });
  return items.flatMap(({ metadata }) => metadata.labels?.[LABELS.instance] ?? []).toSorted();
}

async function isHeld(): Promise<boolean> {
  return (await check()).pools.some((pool) => pool.rewound !== null);
}

test.each([
  ["the controller itself, which goes on", undefined, "this controller"],
  ["a gateway replica, after a restart of the controller", 1_000, "gateway gw-1"],
])("is seen by %s: the pool is held, and its traffic goes on", async (_, downMs, witness) => {
  const { former, current, staying, generation } = await rewound(downMs === undefined ? {} : { downMs });
  await harness.until("it is held", isHeld);
  const before = { deeds: deeds().length, rows: await harness.store.readPool("default/orders"), routed: harness.gateways[0]?.routed() };

  // Whatever happens meanwhile: nodes go, an operator asks, the pool is to grow.
  await harness.drift((await harness.instance(staying)).incarnation.nodeName ?? "");
  await harness.shrink(4);
  const drain = await harness.http.inject({ method: "POST", url: `/v1/instances/${staying}/drain`, payload: { by: "alice", why: "now" } });
  await harness.pass(120_000);

  expect((await check()).pools).toMatchObject([{ pool: "default/orders", rewound: { witness } }]);
  expect([drain.statusCode, drain.json()]).toMatchObject([409, { error: { code: "store_rewound" } }]);
  expect(deeds().slice(before.deeds)).toEqual([]);
  expect(await harness.store.readPool("default/orders")).toEqual(before.rows);
  expect(harness.gateways[0]?.routed()).toEqual(before.routed);
  expect(harness.gateways[0]?.routed().toSorted()).toEqual([current, staying].toSorted());
  expect(harness.gateways[0]?.member(former)).toBeUndefined();
  expect((await harness.pool()).reasons.map(({ reason }) => reason.code)).toEqual(["store_rewound"]);
  const explained = await harness.http.inject({ url: "/v1/explain?subject=default/orders" });
  expect(explained.json()).toMatchObject({ reasons: [{ code: "store_rewound" }] });
  expect(compareEpochs((await harness.pool()).generation, generation)).toBeLessThan(0);
});

test("a controller that has just begun goes on with no step of the backup before the gateways have spoken", async () => {
  const rewindable = new Rewindable();
  harness = await Harness.start({ store: (store) => rewindable.over(store) });
  const [victim] = await harness.serve();
  harness.kube.failing = ({ verb, kind }) => (verb === "create" && kind === "Deployment" ? serverAway() : undefined);
  await harness.drift(victim?.incarnation.nodeName ?? "");
  const rows = async () => await harness.store.readPool("default/orders");
  await harness.until("a create is open", async () => (await rows())?.openSteps.some(({ kind }) => kind === "create_instance/1") === true);
  const backup = rewindable.backUp();
  const then = await rows();
  harness.kube.failing = () => undefined;
  await harness.until("it was replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");

  await harness.restartController(0, () => rewindable.rewindTo(backup));
  await harness.until("it is held", isHeld);

  expect(await rows()).toEqual({ ...then, authorityEpoch: expect.anything(), owner: expect.anything() });
});

test("a store that was put back to before it knew the pool is no new one: what it does not know bears our mark, and nothing is made in its place", async () => {
  const rewindable = new Rewindable();
  harness = await Harness.start({ store: (store) => rewindable.over(store) });
  await harness.serve(ordersPool({ desired: 2, lease: "3s" }));
  await harness.until("all write", () => harness.writers.writing().length === 2);
  const before = { deeds: deeds().length, deployments: await deployments() };
  const gateway = harness.gateways[0];

  await harness.restartController(
    0,
    async () => {
      await rewindable.rewindTo(0);
      gateway?.cutOff();
    },
    { gateways: false },
  );
  await harness.pass(1_500);
  expect(deeds().slice(before.deeds)).toEqual([]);
  await gateway?.connect(harness.controlPlane);
  await harness.until("it is held", isHeld);
  await harness.pass(30_000);

  expect(deeds().slice(before.deeds)).toEqual([]);
  expect(await deployments()).toEqual(before.deployments);
});

test("is gone on with above all that was seen: what it knows and is gone is replaced, what it does not know is deleted once no gateway sends there", async () => {
  const { former, current, staying, generation } = await rewound({ downMs: 1_000 });
  await harness.until("it is held", isHeld);
  const lost = (await harness.store.readPool("default/orders"))?.authorityEpoch;

  expect((await recover()).status).toBe(200);
  await harness.until("the pool is whole", async () => {
    const ids = (await harness.serving()).map(({ id }) => id);
    return ids.length === 2 && !ids.includes(former);
  });
  await harness.until("what was not known is gone", async () => !(await deployments()).includes(current));

  const after = await harness.pool();
  expect(after.generation.split(".")[0]).toBe("1");
  expect(compareEpochs(after.generation, generation)).toBeGreaterThan(0);
  expect(compareEpochs(after.authorityEpoch, lost ?? after.authorityEpoch)).toBeGreaterThan(0);
  const serving = (await harness.serving()).map(({ id }) => id).toSorted();
  expect(serving).toContain(staying);
  expect(harness.gateways[0]?.routed().toSorted()).toEqual(serving);
  expect(await deployments()).toEqual(serving);
  expect(await harness.phase(former)).toBe("deleted");
  // By UID, and by a step of its own.
  const deleted = harness.kube.calls.filter(({ verb, name }) => verb === "delete" && name === current);
  expect(deleted.map(({ body }) => body)).toMatchObject([{ preconditions: { uid: expect.any(String) } }]);
  expect((await harness.steps()).find(({ id }) => id === `delete-stranger/${current}`)).toMatchObject({ state: "done", outcome: "absent" });
  expect(await check()).toMatchObject({
    era: 1,
    recovered: { from: 0, why: "yesterday's backup was restored", by: "alice" },
    pools: [{ rewound: null, strangers: [] }],
  });
});

test("what it does not know is not touched while a gateway replica may still send there, and is told", async () => {
  const { current } = await rewound({ gateways: 2 });
  await harness.until("it is held", isHeld);
  harness.gateways[1]?.cutOff();
  expect((await recover()).status).toBe(200);
  await harness.pass(60_000);

  expect(await deployments()).toContain(current);
  expect(await harness.reasons()).toContain(`${current} stranger_waits`);
  expect((await check()).pools).toMatchObject([{ strangers: [current] }]);
  // Until it is given up.
  await harness.until("what was not known is gone", async () => !(await deployments()).includes(current), 180_000);
});

test("a store that nobody has seen more of is not recovered, unless an operator knows better", async () => {
  const rewindable = new Rewindable();
  harness = await Harness.start({ store: (store) => rewindable.over(store) });
  await harness.serve();
  expect(await isHeld()).toBe(false);

  expect(await recover()).toMatchObject({ status: 409, body: { error: { code: "store_not_rewound" } } });
  expect((await check()).era).toBe(0);
  expect((await recover({ why: "the gateways are new too", by: "alice", force: true })).status).toBe(200);

  await harness.pass(30_000);
  expect(await check()).toMatchObject({ era: 1, pools: [{ rewound: null }] });
  expect((await harness.serving()).length).toBe(2);
});

test("an instance that was given a later epoch is a witness too: it is not told that it is fenced, and nobody writes under its epoch a second time (I1)", async () => {
  const rewindable = new Rewindable();
  harness = await Harness.start({ store: (store) => rewindable.over(store) });
  const pool = ordersPool({ desired: 2, lease: "3s" });
  await harness.serve(pool);
  await harness.pass(5_000);
  const backup = rewindable.backUp();
  const [victim] = await harness.serving();
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it was replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  await harness.until("all write", () => harness.writers.writing().length === 2);
  const given = new Set(harness.writers.writing().map(({ epoch }) => epoch));
  const gateway = harness.gateways[0];
  await harness.restartController(
    0,
    async () => {
      await rewindable.rewindTo(backup);
      gateway?.cutOff();
    },
    { gateways: false },
  );

  await harness.until("it is held", isHeld);
  expect((await check()).pools[0]?.rewound).toMatchObject({ witness: expect.stringMatching(/^instance /), what: "writer epoch" });
  expect(harness.writers.writing().length).toBeGreaterThan(0);
  await gateway?.connect(harness.controlPlane);
  expect((await recover()).status).toBe(200);
  await harness.until("all write again", () => harness.writers.writing().length === 2, 180_000);
  for (const { epoch } of harness.writers.writing()) {
    expect(given.has(epoch)).toBe(false);
    expect(epochParts(epoch as Epoch).era).toBe(1);
  }
});
