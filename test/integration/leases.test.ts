/** Writer leases: at most one accepted writer per place of a pool, and traffic never before fencing (I1, I2, S10). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { InstanceRecord } from "../../src/model/instance.ts";
import type { Workload } from "../../src/model/writer.ts";
import { type Store, storeUnavailable } from "../../src/store/port.ts";
import { Harness, ordersPool } from "./harness.ts";
import { intercept } from "./intercept.ts";

const TTL_MS = 3_000;

let harness: Harness;
afterEach(() => harness.close());

function leasedPool(desired: number, more: Parameters<typeof ordersPool>[0] = {}): ReturnType<typeof ordersPool> {
  return ordersPool({ desired, lease: "3s", ...more });
}

async function workloads(): Promise<readonly Workload[]> {
  return (await harness.store.readPool("default/orders"))?.workloads ?? [];
}

async function writes(instance: string): Promise<boolean> {
  return (await workloads()).some(({ holder, renewals }) => holder?.instance === instance && renewals > 0);
}

/** Applies the pool and waits until each instance writes. */
async function serveWriting(pool = leasedPool(2)): Promise<readonly InstanceRecord[]> {
  const serving = await harness.serve(pool);
  for (const { id } of serving) await harness.until(`${id} writes`, () => writes(id));
  return serving;
}

/** What was committed of the two, in order. */
function history(commits: readonly string[], ...about: readonly string[]): readonly string[] {
  return commits.filter((line) => about.some((each) => line.startsWith(each)));
}

/** One line for each change, those of one commit joined; the store as it is otherwise. */
function recorded(commits: string[]): (store: Store) => Store {
  return (store) =>
    intercept(store, async ({ name, input }, go) => {
      const result = await go();
      if (name !== "commit") return result;
      const lines = (input[1] as readonly Record<string, never>[]).flatMap((change) => {
        const { kind, instance, from, to } = change as unknown as Record<string, string> & { to: { instance: string } | string | null };
        if (kind === "set_trust") return [`${instance} ${String(to)}`];
        if (kind === "move_instance") return [`${instance} ${from}→${String(to)}`];
        if (kind === "pass_writer") return [`lease to ${to === null ? "nobody" : (to as { instance: string }).instance}`];
        return kind === "record_evidence" ? [`evidence ${(change as unknown as { evidence: { reason: string } }).evidence.reason}`] : [];
      });
      if (lines.length > 0) commits.push(lines.join(" + "));
      return result;
    });
}

test("each instance gets the lease of its place once it takes traffic, renews it, and alone writes there (I1)", async () => {
  harness = await Harness.start();
  const serving = await serveWriting();
  await harness.pass(60_000);

  const rows = await workloads();
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
  harness = await Harness.start({ store: recorded(commits) });
  const [victim, other] = await serveWriting();
  const id = victim?.id ?? "";
  const before = commits.length;

  harness.writers.silent.add(id);
  const silentAt = harness.clock.now();
  await harness.until("it stops itself", () => harness.writers.writing().every(({ instance }) => instance !== id));
  expect(harness.clock.now() - silentAt).toBeLessThanOrEqual(TTL_MS + 100);
  expect((await harness.instance(id)).trust, "who stops itself does so before it is suspected").toBe("ok");

  await harness.until("it is suspect", async () => (await harness.instance(id)).trust === "suspect");
  expect(harness.clock.now() - silentAt).toBeLessThanOrEqual(TTL_MS * 1.5);
  await harness.pass(100);
  expect(harness.gateways[0]?.routed(), "nothing new for it").toEqual([other?.id]);
  expect(harness.gateways[0]?.member(id)?.state).toBe("suspect");

  await harness.until("another writes in its place", async () => {
    const [row] = (await workloads()).filter(({ ordinal }) => ordinal === victim?.ordinal);
    return row !== undefined && row.holder !== null && row.holder.instance !== id && row.renewals > 0;
  });
  const successor = (await workloads()).find(({ ordinal }) => ordinal === victim?.ordinal)?.holder?.instance ?? "";
  const tail = commits.slice(before);
  expect(history(tail, id, successor, "lease", "evidence")).toEqual([
    `${id} suspect`,
    "evidence lease_expired",
    `${id} fenced + lease to nobody`,
    `${id} serving→draining`,
    ...history(tail, `${successor} `, `${id} `, "lease").slice(3),
  ]);
  const fencedAt = tail.findIndex((line) => line.includes("lease to nobody"));
  const admittedAt = tail.findIndex((line) => line.includes(`${successor} validating→admitted`));
  expect([fencedAt > 0, admittedAt > fencedAt]).toEqual([true, true]);

  const [row] = (await workloads()).filter(({ ordinal }) => ordinal === victim?.ordinal);
  expect(row).toMatchObject({ writerEpoch: "0.2", minAcceptedEpoch: "0.2" });
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
  expect((await workloads()).map(({ writerEpoch, minAcceptedEpoch }) => [writerEpoch, minAcceptedEpoch]).toSorted()).toEqual([
    ["0.1", "0.1"],
    ["0.2", "0.2"],
  ]);
});
