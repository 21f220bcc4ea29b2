/** Several controllers against a real API server: their Leases, hand-over, and an API server that stands still. Level: real API server, real processes and database. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { systemClock as clock } from "../../src/kernel/system.ts";
import { LEASES, POOLS } from "../../src/kube/resources.ts";
import type { Store } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";
import { type Relevo, spawnRelevo } from "../end-to-end/controllers.ts";
import { ordersPool } from "../end-to-end/fleet.ts";
import { History, violationsOf } from "../end-to-end/history.ts";
import { PostgresCluster } from "../postgres/cluster.ts";
import { startKubernetes } from "./cluster.ts";

const NAMESPACE = "relevo-system";
const NAMES = ["controller-a", "controller-b", "controller-c"];
const KEYS = ["one", "two", "three", "four", "five", "six"].map((name) => `default/${name}`);
/** Longer than a Lease lasts. */
const API_AWAY_MS = 9_000;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of closing.splice(0).toReversed()) await end();
});

test("pools are spread by Leases on a real API server; a replica that is killed is replaced within 5 s, one that is paused beyond its Lease commits nothing when it goes on, and while the API server stands still nobody is replaced (I4)", async () => {
  const cluster = await startKubernetes({ parts: [] });
  closing.push(() => cluster.stop());
  await cluster.kubectl("apply", "-k", join(import.meta.dirname, "../../deploy/crds"));
  await cluster.kubectl("create", "namespace", NAMESPACE);
  const postgres = await PostgresCluster.start();
  closing.push(() => postgres.stop());
  const url = (name: string): string => postgres.url("relevo", `&application_name=${name}`);
  const store = await openStore({ path: url("test") });
  closing.push(() => store.close());
  const history = await History.install(url("test"));
  closing.push(() => history.close());
  const dir = await mkdtemp(join(tmpdir(), "controllers-"));
  closing.push(() => rm(dir, { recursive: true, force: true }));
  const replicas = new Map<string, Relevo>();
  const start = async (name: string): Promise<void> => {
    // As in a Pod of a Deployment.
    const env = { POD_NAME: name, POD_NAMESPACE: NAMESPACE, RELEVO_STORE: url(name) };
    const replica = await spawnRelevo(dir, name, ["controller", "--kubeconfig", cluster.kubeconfig, "--port", "0"], env);
    replicas.set(name, replica);
    closing.push(() => replica.signal("SIGCONT").then(() => (replica.isAlive ? replica.signal("SIGKILL") : undefined)));
  };
  await Promise.all(NAMES.map(start));
  for (const key of KEYS) await cluster.api.create(POOLS, await emptyPool(key), { namespace: "default" });
  await until("each pool is somebody's", async () => [...(await ownersOf(store)).values()].every((owner) => owner !== null));

  const leases = async () => (await cluster.api.list(LEASES, { namespace: NAMESPACE })).items;
  await until("each has its Lease", async () => (await leases()).length === NAMES.length);
  const items = await leases();
  expect(items.map(({ metadata }) => metadata.name).toSorted()).toEqual(NAMES.map((name) => `relevo-controller-${name}`));
  expect(items.map((lease) => (lease["spec"] as { renewTime: string }).renewTime)).toEqual(
    items.map(() => expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)),
  );

  const before = await settledOwners(store);
  const victim = [...before.values()][0] ?? "";
  const from = clock.monotonic();
  await replicas.get(victim)?.signal("SIGKILL");
  const areOthers = async () => [...(await ownersOf(store)).values()].every((owner) => owner !== null && owner !== victim);
  const areAsBefore = async () => JSON.stringify([...(await ownersOf(store))]) === JSON.stringify([...before]);
  await until("his pools are others'", areOthers);
  const tookMs = clock.monotonic() - from;
  console.log(`SIGKILL to ${victim}: ${Math.round(tookMs)} ms`);
  expect(tookMs).toBeLessThan(5_000);
  await start(victim);
  await until("he has his pools again", areAsBefore);

  await replicas.get(victim)?.signal("SIGSTOP");
  await until("the pools of the paused one are others'", areOthers);
  await replicas.get(victim)?.signal("SIGCONT");
  await until("he has his pools again after his pause", areAsBefore);

  const epochs = await store.poolEpochs();
  cluster.pieces.pause("apiserver");
  await clock.sleep(API_AWAY_MS);
  cluster.pieces.resume("apiserver");
  await clock.sleep(API_AWAY_MS);
  expect(await store.poolEpochs()).toEqual(epochs);
  expect(violationsOf(await history.read())).toEqual([]);
}, 300_000);

/** Of no instance: only whose it is matters here. */
async function emptyPool(key: string) {
  const name = key.split("/")[1] ?? "";
  const pool = await ordersPool("http://127.0.0.1:1", 0, { spec: { size: { desired: 0, floor: 0, max: 2 }, traffic: { route: name } } });
  return { ...pool, metadata: { ...pool.metadata, name } };
}

async function ownersOf(store: Store): Promise<ReadonlyMap<string, string | null>> {
  return new Map(await Promise.all(KEYS.map(async (key) => [key, (await store.readPool(key))?.owner ?? null] as const)));
}

/** Once nothing has changed for two seconds. */
async function settledOwners(store: Store): Promise<ReadonlyMap<string, string | null>> {
  let owners = await ownersOf(store);
  for (let quietSince = clock.monotonic(); clock.monotonic() - quietSince < 2_000; await clock.sleep(100)) {
    const now = await ownersOf(store);
    if (JSON.stringify([...now]) !== JSON.stringify([...owners])) quietSince = clock.monotonic();
    owners = now;
  }
  return owners;
}

async function until(sentence: string, holds: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const end = clock.monotonic() + limitMs;
  while (!(await holds())) {
    if (clock.monotonic() > end) throw new Error(`not within ${limitMs} ms: ${sentence}`);
    await clock.sleep(20);
  }
}
