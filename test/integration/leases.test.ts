/** Writer leases: at most one accepted writer per place of a pool, and traffic never before fencing (I1, I2, S10). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { Epoch } from "../../src/kernel/epoch.ts";
import { PODS, POOLS } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";
import { history, leasedPool, recordedIn, renew, serveWriting, TTL_MS, workloadsOf, writes } from "./leased.ts";

let harness: Harness;
afterEach(() => harness.close());

test("each instance gets the lease of its place once it takes traffic, renews it, and alone writes there (I1)", async () => {
  harness = await Harness.start();
  const serving = await serveWriting(harness);
  await harness.pass(60_000);

  const rows = await workloadsOf(harness);
  expect(
    rows.map(({ ordinal, holder, writerEpoch, minAcceptedEpoch }) => [ordinal, holder?.instance, writerEpoch, minAcceptedEpoch]),
  ).toEqual(serving.toSorted((a, b) => a.ordinal - b.ordinal).map(({ id, ordinal }) => [ordinal, id, "0.1", "0.1"]));
  expect(rows.every(({ renewals }) => renewals > 50)).toBe(true);
  expect(
    harness.writers
      .writing()
      .map(({ instance }) => instance)
      .toSorted(),
  ).toEqual(serving.map(({ id }) => id).toSorted());
  for (const { id, ordinal } of serving)
    expect(harness.gateways[0]?.member(id)).toMatchObject({ state: "serving", writer: { ordinal, minAccepted: "0.1" } });
  expect(await harness.reasons()).toEqual([...serving.map(({ id }) => `${id} serving`), "nothing_to_do"].toSorted());
  expect((await harness.http.inject({ url: "/v1/workloads" })).json()).toMatchObject({
    items: [
      { pool: "default/orders", ordinal: 0, writerEpoch: "0.1", minAccepted: "0.1", lease: "renewed", incarnation: 1 },
      { ordinal: 1 },
    ],
  });
});

test("a holder that is silent is suspected, then fenced, and only after its tombstone its successor is admitted (S10)", async () => {
  const commits: string[] = [];
  harness = await Harness.start({ store: recordedIn(commits) });
  const [victim, other] = await serveWriting(harness);
  const id = victim?.id ?? "";
  const before = commits.length;

  harness.writers.silent.add(id);
  const silentAt = harness.clock.now();
  await harness.until("it is suspect", async () => (await harness.instance(id)).trust === "suspect");
  expect(
    harness.writers.writing().map(({ instance }) => instance),
    "it stopped itself before",
  ).toEqual([other?.id]);
  expect(harness.clock.now() - silentAt).toBeLessThanOrEqual(TTL_MS * 1.5);
  await harness.pass(100);
  expect(harness.gateways[0]?.routed(), "nothing new for it").toEqual([other?.id]);
  expect(harness.gateways[0]?.member(id)?.state).toBe("suspect");

  await harness.until("another writes in its place", async () => {
    const [row] = (await workloadsOf(harness)).filter(({ ordinal }) => ordinal === victim?.ordinal);
    return row !== undefined && row.holder !== null && row.holder.instance !== id && row.renewals > 0;
  });
  const successor = (await workloadsOf(harness)).find(({ ordinal }) => ordinal === victim?.ordinal)?.holder?.instance ?? "";
  const tail = commits.slice(before);
  expect(history(tail, id, "lease", "evidence")).toEqual([
    `${id} suspect`,
    "evidence lease_expired",
    `${id} fenced + lease to nobody`,
    `${id} serving→draining`,
    `${id} draining→sealed`,
    `${id} sealed→retiring`,
    `${id} retiring→retired`,
    `lease to ${successor}`,
  ]);
  expect(history(tail, `${id} fenced`, `${successor} validating`, `lease to ${successor}`)).toEqual([
    `${id} fenced + lease to nobody`,
    `${successor} validating→admitted`,
    `lease to ${successor}`,
  ]);

  const [row] = (await workloadsOf(harness)).filter(({ ordinal }) => ordinal === victim?.ordinal);
  expect(row).toMatchObject({ writerEpoch: "0.2", minAcceptedEpoch: "0.2" });
  expect((await harness.http.inject({ url: "/metrics" })).body).toContain(
    'relevo_writer_leases_total{pool="default/orders",to="nobody"} 1',
  );
  // It comes back: nothing of it is accepted, and it hears so.
  harness.writers.silent.delete(id);
  await harness.pass(5_000);
  expect(
    harness.writers
      .writing()
      .map(({ instance }) => instance)
      .toSorted(),
  ).toEqual([other?.id, successor].toSorted());
  await harness.until("it is gone", async () => (await harness.phase(id)) === "deleted");
  expect((await workloadsOf(harness)).map(({ writerEpoch, minAcceptedEpoch }) => [writerEpoch, minAcceptedEpoch]).toSorted()).toEqual([
    ["0.1", "0.1"],
    ["0.2", "0.2"],
  ]);
});

test("a process that takes the place of the holder's gets the next epoch; the former one's renewals are refused for ever", async () => {
  const commits: string[] = [];
  harness = await Harness.start({ store: recordedIn(commits) });
  const [victim] = await serveWriting(harness, leasedPool(1));
  const id = victim?.id ?? "";
  const former = harness.writers.of(id);
  if (!former) throw new Error("it has no lease");
  const before = commits.length;

  harness.crash(victim?.incarnation.host ?? null);
  await harness.until("its next process writes", async () => {
    const [row] = await workloadsOf(harness);
    return row?.holder !== undefined && row.holder !== null && row.holder.incarnation > 1 && row.renewals > 0;
  });

  expect((await workloadsOf(harness))[0]).toMatchObject({ writerEpoch: "0.2", minAcceptedEpoch: "0.2", holder: { instance: id } });
  const [fence] = commits.slice(before).filter((line) => line.includes("lease to"));
  expect(fence, "in the commit that says that its process is another").toBe(`${id} serving→preparing + lease to nobody`);
  const renewUnder = (epoch: Epoch | null) => renew(harness, { ...former.access, bootId: former.bootId, epoch }, former.access.token);
  for (const epoch of [null, "0.1" as Epoch])
    expect(await renewUnder(epoch)).toMatchObject({ status: 410, body: { error: { code: "lease_fenced" } } });
  // Never given to it: with a proof that would mean that the store was rewound.
  expect(await renewUnder("0.2" as Epoch)).toMatchObject({ status: 503, body: { error: { code: "lease_epoch_unproven" } } });
});

test("at a voluntary replacement the lease passes at the seal, not before: until then the predecessor writes", async () => {
  const commits: string[] = [];
  harness = await Harness.start({ store: recordedIn(commits) });
  const [victim] = await serveWriting(harness, leasedPool(1));
  const id = victim?.id ?? "";
  harness.gateways[0]?.hold(id, { sessions: 1 });

  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it drains", async () => (await harness.phase(id)) === "draining");
  await harness.pass(30_000);
  const [successor] = await harness.serving();
  expect(harness.writers.writing()).toEqual([{ instance: id, epoch: "0.1" }]);
  expect(await harness.reasons()).toContain(`${successor?.id} waiting_for_writer`);

  harness.gateways[0]?.release(id);
  await harness.until("its successor writes", () => writes(harness, successor?.id ?? ""));
  expect(harness.writers.writing()).toEqual([{ instance: successor?.id, epoch: "0.2" }]);
  expect(commits.filter((line) => line.includes("lease to")).at(-1)).toBe(`${id} draining→sealed + lease to ${successor?.id}`);
  expect(await harness.evidence()).toMatchObject([{ reason: "node_drifted" }]);
});

test("a writer whose node is lost is fenced before its replacement is admitted, though its process goes on (D13)", async () => {
  const commits: string[] = [];
  harness = await Harness.start({ store: recordedIn(commits) });
  const [victim] = await serveWriting(harness, leasedPool(1));
  const id = victim?.id ?? "";
  await harness.cluster.api.delete(
    { type: PODS, namespace: "default", name: victim?.incarnation.podName ?? "" },
    { gracePeriodSeconds: 0 },
  );
  await harness.until("another process writes", async () => {
    const [row] = await workloadsOf(harness);
    return row !== undefined && row.writerEpoch !== "0.1" && row.renewals > 0;
  });
  const order = commits.flatMap((line) => [
    ...(line.includes("lease to nobody") ? ["fence"] : []),
    ...(line.includes("→admitted") ? ["admission"] : []),
    ...(line.includes("lease to orders") ? ["pass"] : []),
  ]);
  expect(order).toEqual(["admission", "pass", "fence", "admission", "pass"]);
  expect(commits.some((line) => line.startsWith(`${id} `))).toBe(true);
});

test("a warm standby takes over from a writer that is lost: it is admitted after the tombstone, with the epoch of that place", async () => {
  const commits: string[] = [];
  harness = await Harness.start({ store: recordedIn(commits) });
  const [victim] = await serveWriting(harness, leasedPool(1, { standby: 1 }));
  await harness.until("a standby is warm", async () => (await harness.records()).some(({ phase }) => phase === "standby"));
  const standby = (await harness.records()).find(({ phase }) => phase === "standby")?.id ?? "";
  const before = commits.length;

  harness.instances.unreachable.add(victim?.incarnation.host ?? "");
  await harness.until("the standby writes", () => writes(harness, standby));

  expect(history(commits.slice(before), `${victim?.id} fenced`, `${standby} standby`, "lease")).toEqual([
    `${victim?.id} fenced + lease to nobody`,
    `${standby} standby→admitted`,
    `lease to ${standby}`,
  ]);
  expect((await workloadsOf(harness)).map(({ ordinal, writerEpoch }) => [ordinal, writerEpoch])).toEqual([[victim?.ordinal, "0.2"]]);
});

test("at an announced interruption the lease passes when the old one has drained; nobody is fenced", async () => {
  const commits: string[] = [];
  harness = await Harness.start({ store: recordedIn(commits) });
  const [victim] = await serveWriting(harness, leasedPool(1));
  const id = victim?.id ?? "";
  await harness.warn(harness.machineOf(victim?.incarnation.nodeName ?? ""));
  await harness.until("another writes", () => harness.writers.writing().some(({ instance }) => instance !== id));
  const [successor] = harness.writers.writing();

  expect(successor?.epoch).toBe("0.2");
  expect(commits.filter((line) => line.includes("lease to") || line.includes("fenced"))).toEqual([
    `lease to ${id}`,
    `${id} draining→sealed + lease to ${successor?.instance}`,
  ]);
});

test("a frozen pool still fences whom it lost, and lets nobody on in its place until it is thawed", async () => {
  harness = await Harness.start();
  const [victim] = await serveWriting(harness, leasedPool(1));
  await harness.controlPlane.freeze("default/orders", { until: harness.clock.now() + 600_000, why: "audit", by: "me" });
  harness.instances.unreachable.add(victim?.incarnation.host ?? "");
  await harness.until("it is fenced", async () => (await workloadsOf(harness))[0]?.holder === null);
  await harness.pass(60_000);

  expect((await workloadsOf(harness))[0]).toMatchObject({ holder: null, writerEpoch: "0.1", minAcceptedEpoch: "0.2" });
  expect((await harness.instance(victim?.id ?? "")).trust).toBe("fenced");
  expect(harness.gateways[0]?.member(victim?.id ?? "")?.state).toBe("fenced");
  expect((await harness.records()).length).toBe(1);

  await harness.controlPlane.unfreeze("default/orders", "me");
  await harness.until("another writes", () => harness.writers.writing().length === 1);
  expect(harness.writers.writing()[0]?.epoch).toBe("0.2");
});

test("a pool that is deleted and made again goes on counting: no tombstone falls (I2)", async () => {
  harness = await Harness.start();
  const pool = leasedPool(1, { name: "orders" });
  const spec = { ...(pool.spec as object), deletion: "drain" };
  await serveWriting(harness, { ...pool, spec });
  const former = harness.writers.all.values().next().value;
  await harness.cluster.api.delete({ type: POOLS, namespace: "default", name: "orders" });
  await harness.until("it is forgotten", async () => (await harness.store.readPool("default/orders")) === undefined);

  await serveWriting(harness, { ...pool, spec });
  expect((await workloadsOf(harness)).map(({ writerEpoch, minAcceptedEpoch }) => [writerEpoch, minAcceptedEpoch])).toEqual([
    ["0.2", "0.2"],
  ]);
  if (!former) throw new Error("there was no writer");
  expect((await renew(harness, { ...former.access, bootId: former.bootId, epoch: "0.1" as Epoch }, former.access.token)).status).toBe(410);
});

test("an instance that knows nothing of leases serves on, writes nothing, and is never fenced for it; the pool says why", async () => {
  harness = await Harness.start();
  const { namespace, name } = await harness.apply(ordersPool({ desired: 1 }));
  await harness.untilServing(1);
  const [old] = await harness.serving();
  await harness.cluster.api.patch({ type: POOLS, namespace, name }, { spec: { state: { lease: { ttl: "3s" } } } });
  await harness.pass(10 * TTL_MS);

  expect(await harness.evidence()).toEqual([]);
  expect((await harness.serving()).map(({ id, trust }) => [id, trust])).toEqual([[old?.id, "ok"]]);
  expect(await harness.reasons()).toContain(`${old?.id} lease_unasked`);

  // Whoever comes after it was told.
  await harness.drift(old?.incarnation.nodeName ?? "");
  await harness.until("its successor writes", () => harness.writers.writing().length === 1);
  expect(harness.writers.writing()).toMatchObject([{ epoch: "0.2" }]);
});

test("a lease that is taken from the document stays with its holder until it goes, and is given to nobody else", async () => {
  harness = await Harness.start();
  const [holder] = await serveWriting(harness, leasedPool(1));
  await harness.cluster.api.patch({ type: POOLS, namespace: "default", name: "orders" }, { spec: { state: { lease: null } } });
  await harness.pass(5_000);
  expect(harness.writers.writing()).toEqual([{ instance: holder?.id, epoch: "0.1" }]);
  await harness.drift(holder?.incarnation.nodeName ?? "");
  await harness.until("it is gone", async () => (await harness.phase(holder?.id ?? "")) === "deleted");
  expect((await harness.evidence()).map(({ reason }) => reason)).toEqual(["node_drifted"]);
  expect(await workloadsOf(harness)).toMatchObject([{ holder: null, writerEpoch: "0.1", minAcceptedEpoch: "0.2" }]);
});

test("only the process that a token was issued to renews with it; no token is in a log, in the journal or in an answer", async () => {
  harness = await Harness.start();
  const [one, other] = await serveWriting(harness);
  const [writer, stranger] = [harness.writers.of(one?.id ?? ""), harness.writers.of(other?.id ?? "")];
  if (!writer || !stranger) throw new Error("there are no writers");
  const own = { pool: writer.access.pool, instance: writer.access.instance, bootId: writer.bootId, epoch: "0.1" as Epoch };

  expect(await renew(harness, own, writer.access.token)).toEqual({
    status: 200,
    body: { pool: "default/orders", ordinal: one?.ordinal, writerEpoch: "0.1", ttlMs: TTL_MS, proof: expect.any(String) },
  });
  for (const [body, token] of [
    [own, stranger.access.token],
    [own, undefined],
    [{ ...own, bootId: "boot-99" }, writer.access.token],
    [{ ...own, instance: stranger.access.instance }, writer.access.token],
    [{ ...own, pool: "default/other" }, writer.access.token],
  ] as const)
    expect(await renew(harness, body, token)).toMatchObject({ status: 401, body: { error: { code: "lease_token_invalid" } } });
  expect(await renew(harness, { ...own, epoch: "x" as Epoch }, writer.access.token)).toMatchObject({ status: 400 });

  const answers = await Promise.all(Array.from({ length: 40 }, () => renew(harness, own, writer.access.token)));
  expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(10);
  expect(answers.find(({ status }) => status === 429)?.body).toMatchObject({ error: { code: "lease_too_often" } });

  const said = JSON.stringify([harness.log, await harness.steps(), await harness.controlPlane.explain(one?.id ?? ""), answers]);
  for (const { access } of [writer, stranger]) expect(said).not.toContain(access.token);
});
