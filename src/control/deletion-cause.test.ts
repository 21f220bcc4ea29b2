/** Whether a Pool that is being deleted goes by itself, or with its CRD or namespace. */
import { expect, test } from "vitest";
import { poolOf } from "../../test/builders/pool.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { type KubeApi, KubeApiError, type KubeObject } from "../kube/api.ts";
import { type DeletionCause, DeletionCauses, heldWhileUnknown } from "./deletion-cause.ts";
import type { PoolRows } from "../store/port.ts";
import type { PoolEntry } from "./pool-informer.ts";

type State = "there" | "terminating" | number;

interface Cluster {
  definition: State;
  namespace: State;
  /** The UID of the Pool of this name, or the code of the error. */
  served: string | number;
}

const WHOLE: Cluster = { definition: "there", namespace: "there", served: "uid-1" };
const CRD: DeletionCause = { kind: "container", container: "CustomResourceDefinition pools.relevo.dev" };
const NAMESPACE: DeletionCause = { kind: "container", container: "Namespace shop" };
const OWN: DeletionCause = { kind: "own" };

function unknown(found: string): DeletionCause {
  return { kind: "unknown", found };
}

function refused(code: number): KubeApiError {
  return new KubeApiError({ code, message: `answered ${code}` }, "test");
}

function objectIn(state: State, uid = "uid"): KubeObject {
  if (typeof state === "number") throw refused(state);
  const metadata = { name: "x", uid, resourceVersion: "1", creationTimestamp: "2030-01-01T00:00:00Z" };
  return {
    apiVersion: "v1",
    kind: "X",
    metadata: state === "there" ? metadata : { ...metadata, deletionTimestamp: "2030-01-01T00:00:01Z" },
  };
}

function entryOf(uid = "uid-1"): PoolEntry {
  return {
    key: "shop/orders",
    uid,
    resourceVersion: "7",
    generation: 1,
    createdAt: "2030-01-01T00:00:00Z",
    isDeleting: true,
    finalizers: [],
    document: {
      apiVersion: "relevo.dev/v1alpha1",
      kind: "Pool",
      metadata: { namespace: "shop", name: "orders" },
      spec: poolOf({}, []).spec,
    },
    blueprintHash: "hash",
  };
}

function causesIn(cluster: Cluster): { causes: DeletionCauses; clock: VirtualClock; asked: string[]; changes: string[] } {
  const [clock, asked, changes]: [VirtualClock, string[], string[]] = [new VirtualClock(), [], []];
  const kube: Pick<KubeApi, "get"> = {
    get: async ({ type, name }) => {
      asked.push(`${type.plural}/${name}`);
      if (type.plural === "pools") return objectIn(typeof cluster.served === "number" ? cluster.served : "there", String(cluster.served));
      return objectIn(type.plural === "namespaces" ? cluster.namespace : cluster.definition);
    },
  };
  const causes = new DeletionCauses({ kube, clock, onChange: (pool) => changes.push(pool), log: () => undefined });
  return { causes, clock, asked, changes };
}

test.each<[string, Partial<Cluster>, DeletionCause]>([
  ["both are there", {}, OWN],
  ["the CRD is terminating", { definition: "terminating" }, CRD],
  ["the namespace is terminating", { namespace: "terminating" }, NAMESPACE],
  ["the namespace is gone", { namespace: 404 }, NAMESPACE],
  ["the kind is served without a CRD, as in the embedded cluster", { definition: 404 }, OWN],
  ["the CRD is gone and the Pool with it", { definition: 404, served: 404 }, CRD],
  ["the CRD is gone and another Pool has the name", { definition: 404, served: "uid-2" }, CRD],
  ["the CRD may not be read", { definition: 403 }, unknown("test: answered 403 (kube_403)")],
  ["the CRD cannot be read", { definition: 503 }, unknown("test: answered 503 (kube_503)")],
  ["without a CRD, the Pools cannot be read", { definition: 404, served: 500 }, unknown("test: answered 500 (kube_500)")],
  ["the namespace may not be read", { namespace: 403 }, unknown("test: answered 403 (kube_403)")],
])("when %s the cause of a Pool's deletion is told", async (_, cluster, cause) => {
  expect(await causesIn({ ...WHOLE, ...cluster }).causes.of(entryOf())).toEqual(cause);
});

test("the API server is asked once, then every 5 s without a pass waiting for it; another answer wakes the pool", async () => {
  const cluster = { ...WHOLE };
  const { causes, clock, asked, changes } = causesIn(cluster);
  await causes.of(entryOf());
  await clock.advance(4_999);
  await causes.of(entryOf());
  expect(asked).toEqual(["customresourcedefinitions/pools.relevo.dev", "namespaces/shop"]);
  cluster.definition = "terminating";
  await clock.advance(1);
  expect(await causes.of(entryOf())).toEqual(OWN);
  await clock.settle();
  expect([changes, await causes.of(entryOf())]).toEqual([["shop/orders"], CRD]);
});

test("a Pool that is deleted by itself stays so while the API server is away; what was unknown is asked again", async () => {
  const cluster: Cluster = { ...WHOLE };
  const { causes, clock } = causesIn(cluster);
  await causes.of(entryOf());
  cluster.definition = 503;
  await clock.advance(5_000);
  await causes.of(entryOf());
  await clock.settle();
  expect(await causes.of(entryOf())).toEqual(OWN);

  causes.forget("shop/orders");
  expect((await causes.of(entryOf())).kind).toBe("unknown");
  cluster.definition = "there";
  await clock.advance(5_000);
  await causes.of(entryOf());
  await clock.settle();
  expect(await causes.of(entryOf())).toEqual(OWN);
});

test("what is known of a Pool says nothing of another one of its name", async () => {
  const cluster: Cluster = { ...WHOLE };
  const { causes } = causesIn(cluster);
  await causes.of(entryOf());
  cluster.definition = "terminating";
  expect(await causes.of(entryOf("uid-2"))).toEqual(CRD);
});

test("while the cause is unknown the pool is held as if it were frozen, for what was found; a known cause holds nothing", () => {
  const rows = { freeze: null } as PoolRows;
  const why =
    "it is being deleted, and whether its CRD or its namespace goes too cannot be read, so nothing of it is drained: test: answered 503 (kube_503)";
  expect(heldWhileUnknown(rows, unknown("test: answered 503 (kube_503)"), 0).freeze).toEqual({ until: 10_000, why, by: "relevo" });
  expect(heldWhileUnknown(rows, OWN, 0)).toBe(rows);
});
