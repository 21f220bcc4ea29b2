/** What operators overrule: freezes by ConfigMap, released steps, forced seals. Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";

const MINUTE = 60_000;
const POOL = "default/orders";

let harness: Harness;
afterEach(() => harness.close());

async function freezeBy(data: Readonly<Record<string, string>>, namespace = "default"): Promise<void> {
  const config = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "relevo-freeze", namespace }, data };
  await harness.cluster.api.create(CONFIG_MAPS, config, { namespace });
  await harness.pass(500);
}

async function draining(): Promise<InstanceRecord> {
  const [victim] = await harness.serve();
  if (victim === undefined) throw new Error("none serves");
  for (const gateway of harness.gateways) gateway.hold(victim.id, { requests: 2, sessions: 1 });
  await harness.drift(victim.incarnation.nodeName ?? "");
  await harness.until("it drains", async () => (await harness.phase(victim.id)) === "draining");
  await harness.pass(2_000);
  return victim;
}

test("a ConfigMap in the pool's namespace freezes it while it is there, and it needs no store", async () => {
  harness = await Harness.start({ nodes: 6, freezesIn: "relevo-system" });
  const [victim] = await harness.serve();
  await freezeBy({ pool: "orders", until: "2100-01-01T00:00:00Z", reason: "a migration" });
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.pass(MINUTE);

  expect(await harness.phase(victim?.id ?? "")).toBe("serving");
  expect((await harness.pool()).freeze).toEqual({
    until: Date.UTC(2100, 0, 1),
    why: "a migration",
    by: "ConfigMap default/relevo-freeze",
  });
  expect((await harness.store.readPool(POOL))?.freeze).toBeNull();
  expect(await harness.reasons()).toContain("frozen");
  expect((await harness.node(victim?.incarnation.nodeName ?? "")).spec).not.toMatchObject({ unschedulable: true });

  await harness.cluster.api.delete({ type: CONFIG_MAPS, namespace: "default", name: "relevo-freeze" });
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
});

test("one that is not understood freezes too, one of another namespace does not, that of the controller's own does", async () => {
  harness = await Harness.start({ freezesIn: "relevo-system" });
  await harness.serve();
  for (const name of ["shop", "relevo-system"])
    await harness.cluster.api.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });

  await freezeBy({ pool: "*" }, "shop");
  expect((await harness.pool()).freeze).toBeNull();
  await freezeBy({ pool: POOL }, "relevo-system");
  expect((await harness.pool()).freeze?.by).toBe("ConfigMap relevo-system/relevo-freeze");
  await harness.cluster.api.delete({ type: CONFIG_MAPS, namespace: "relevo-system", name: "relevo-freeze" });
  await freezeBy({ pools: "orders" });
  expect((await harness.pool()).freeze?.why).toMatch(/^ConfigMap default\/relevo-freeze is not understood/);
});

test("the API lifts its own freeze only, and says what stays frozen", async () => {
  harness = await Harness.start({ freezesIn: "relevo-system" });
  await harness.serve();
  await freezeBy({ pool: "*", reason: "by hand" });
  const answer = await harness.http.inject({ method: "POST", url: "/v1/unfreeze", payload: { pool: POOL } });

  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    {
      pools: [POOL],
      stillFrozen: [{ pool: POOL, until: "9999-12-31T23:59:59.000Z", why: "by hand", by: "ConfigMap default/relevo-freeze" }],
    },
  ]);
});

test("a seal that an operator forces ends a drain that would not end; it is counted as forced, noted, and named until it is closed (D18)", async () => {
  harness = await Harness.start();
  const victim = await draining();
  const url = `/v1/instances/${victim.id}/force-seal`;
  const sealed = await harness.http.inject({ method: "POST", url, payload: { by: "ann", why: "its work was done elsewhere", for: "3m" } });

  const open = { pool: POOL, instance: victim.id, by: "ann", why: "its work was done elsewhere", obligations: 3 };
  expect([sealed.statusCode, sealed.json()]).toEqual([200, expect.objectContaining({ ...open, phase: "sealed" })]);
  await harness.until("it is gone", async () => (await harness.phase(victim.id)) === "deleted");
  expect(await harness.instance(victim.id)).toMatchObject({ seal: "forced", drainLoss: "forced" });
  expect((await harness.pool()).losses).toEqual([{ loss: "forced", instances: 1, obligations: 3, assumedSeals: 0 }]);
  expect((await harness.store.listSteps(POOL, 100)).find(({ kind }) => kind === "force_seal/1")).toMatchObject({
    state: "done",
    outcome: "forced",
    payload: { by: "ann", why: "its work was done elsewhere", obligations: 3 },
  });
  expect(await harness.controlPlane.listForcedSeals()).toEqual([expect.objectContaining({ ...open, phase: "deleted" })]);
  await harness.pass(3 * MINUTE);
  expect(await harness.controlPlane.listForcedSeals()).toEqual([]);
});

test("only one that drains is sealed by hand; one that is not there is not found", async () => {
  harness = await Harness.start();
  const [serving] = await harness.serve();
  const force = async (instance: string) => {
    const payload = { why: "because", for: "1h" };
    const answer = await harness.http.inject({ method: "POST", url: `/v1/instances/${instance}/force-seal`, payload });
    return [answer.statusCode, answer.json().error.code];
  };

  expect(await force(serving?.id ?? "")).toEqual([409, "instance_not_draining"]);
  expect(await force("orders-none")).toEqual([404, "instance_not_found"]);
});

test("a held step is released: it ends without consequences, and what is to be done is decided anew", async () => {
  harness = await Harness.start({ nodes: 6 });
  await harness.serve();
  const authority = { pool: POOL, epoch: (await harness.store.readPool(POOL))?.authorityEpoch ?? ("0.0" as never) };
  const step = {
    id: "cordon/x/y",
    operation: "replace/x",
    pool: POOL,
    instance: null,
    kind: "cordon_node/1",
    payload: {},
    reason: { code: "nothing_to_do", params: {} },
  } as const;
  const held = { kind: "end_step", step: step.id, state: "held", outcome: "step_payload_invalid" } as const;
  await harness.store.commit(authority, [{ kind: "record_step", step }, held], harness.clock.now());
  expect((await harness.pool()).heldSteps).toBe(1);
  const release = async (operation: string) => {
    const answer = await harness.http.inject({
      method: "POST",
      url: "/v1/release",
      payload: { operation, by: "ann", why: "looked at it" },
    });
    return [answer.statusCode, answer.json()];
  };

  expect(await release("replace/x")).toEqual([200, { steps: ["cordon/x/y"] }]);
  expect((await harness.pool()).heldSteps).toBe(0);
  expect((await harness.store.listSteps(POOL, 10, step.id))[0]).toMatchObject({
    state: "superseded",
    outcome: "released",
    result: { by: "ann", why: "looked at it", held: "step_payload_invalid" },
  });
  expect((await release("replace/x"))[0]).toBe(409);
});

test("a dry run of apply changes nothing, and is refused as the apply would be", async () => {
  harness = await Harness.start();
  const dryRun = async (pool: unknown) => {
    const answer = await harness.http.inject({ method: "POST", url: "/v1/apply?dryRun=true", payload: pool as object });
    await harness.pass(1_000);
    return [answer.statusCode, answer.json().result ?? answer.json().error.code];
  };

  expect(await dryRun(ordersPool())).toEqual([200, "created"]);
  await expect(harness.controlPlane.findPool(POOL)).resolves.toBeUndefined();
  await harness.serve();
  expect(await dryRun(ordersPool({ desired: 3 }))).toEqual([200, "configured"]);
  expect((await harness.pool()).document.spec.size.desired).not.toBe(3);
  expect(await dryRun(ordersPool({ desired: -1 }))).toEqual([422, "document_invalid"]);
});
