/** Against objects in memory that keep the rules of patches: UID and resourceVersion are preconditions, null takes a field away. */
import { expect, test } from "vitest";
import { KubeApiError, type KubeApi, type KubeObject } from "../kube/api.ts";
import { poolSchema } from "../model/pool.ts";
import { pricePerMonth } from "../model/suspension.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { resume, statusOf, suspend, SUSPENDED_FROM, type SuspensionParts } from "./suspension.ts";

type Json = Record<string, unknown>;

function merged(into: Json, patch: Json): Json {
  const result = { ...into };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else if (typeof value === "object" && !Array.isArray(value)) result[name] = merged((result[name] ?? {}) as Json, value as Json);
    else result[name] = value;
  }
  return result;
}

const objectOf = (kind: string, name: string, spec: Json): KubeObject => ({
  apiVersion: "v1",
  kind,
  metadata: { name, namespace: "default", uid: `uid-${name}`, resourceVersion: "1", creationTimestamp: "2026-11-30T12:00:00Z" },
  spec,
});

const document = {
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "lab" },
  spec: {
    driver: "service",
    size: { desired: 2 },
    blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
    suspension: {
      owner: { kind: "TrinoCluster", name: "trino" },
      companions: [{ kind: "Deployment", name: "metastore" }],
      residue: [
        { what: "the cluster's fee", price: 63, currency: "EUR", per: "month" },
        { what: "node pool trino does not go below one", price: 0.1, currency: "EUR", per: "hour" },
      ],
    },
  },
};

function aWorld({ underWay = 0, operation = {} }: { readonly underWay?: number | null; readonly operation?: Json } = {}) {
  const objects = new Map<string, KubeObject>();
  for (const object of [
    objectOf("Pool", "lab", document.spec as unknown as Json),
    objectOf("TrinoCluster", "trino", { clusterOperation: operation }),
    objectOf("Deployment", "metastore", { replicas: 3 }),
  ])
    objects.set(object.metadata.name, object);
  const writes: string[] = [];
  const find = (name: string): KubeObject => {
    const object = objects.get(name);
    if (object === undefined) throw new KubeApiError({ code: 404, reason: "NotFound" }, name);
    return object;
  };
  const kube = {
    get: async ({ name }: { readonly name: string }) => find(name),
    patch: async ({ name }: { readonly name: string }, body: Json) => {
      const object = find(name);
      const { resourceVersion = object.metadata.resourceVersion } = (body["metadata"] ?? {}) as { readonly resourceVersion?: string };
      if (resourceVersion !== object.metadata.resourceVersion) throw new KubeApiError({ code: 409, reason: "Conflict" }, name);
      const version = { metadata: { resourceVersion: String(Number(resourceVersion) + 1) } };
      const next = merged(merged(object as unknown as Json, body), version) as unknown as KubeObject;
      objects.set(name, next);
      writes.push(name);
      return next;
    },
  } as unknown as KubeApi;
  const entry = (): PoolEntry => ({
    key: "default/lab",
    uid: "uid-lab",
    resourceVersion: "1",
    generation: 1,
    createdAt: "",
    isDeleting: false,
    finalizers: [],
    document: poolSchema.parse({ ...document, spec: find("lab")["spec"] }),
    blueprintHash: "b",
  });
  let instances: Awaited<ReturnType<SuspensionParts["work"]>> = [{ instance: "lab-a", underWay, isServing: true }];
  const parts: SuspensionParts = { kube, work: async () => instances };
  const specOf = (name: string) => find(name)["spec"] as Json;
  return { parts, entry, objects, writes, specOf, find, gone: () => (instances = []) };
}

test("a suspended pool wants none, its owner stands by its own field, and a companion goes to none (T19, T20)", async () => {
  const { parts, entry, specOf, find, gone, writes } = aWorld();
  expect((await suspend(parts, entry(), { drain: false })).phase).toBe("stopping");
  expect(entry().document.spec.size).toEqual({ desired: 0, floor: 0, max: 4 });
  expect(writes).toEqual(["lab"]);
  gone();
  expect((await suspend(parts, entry(), { drain: false })).phase).toBe("off");
  expect(specOf("trino")).toEqual({ clusterOperation: { stopped: true } });
  expect([specOf("metastore"), find("metastore").metadata.annotations]).toEqual([{ replicas: 0 }, { [SUSPENDED_FROM]: "3" }]);
  expect(await statusOf(parts, entry())).toMatchObject({ phase: "off", instances: 0, perMonth: { EUR: 136 } });
});

test("resumed it goes back to what it was, marks and all (T20)", async () => {
  const { parts, entry, specOf, find, gone } = aWorld();
  gone();
  await suspend(parts, entry(), { drain: false });
  // The document that is known is still the suspended one, which wants none: that it has them is no sign of serving.
  expect((await resume(parts, entry())).phase).toBe("starting");
  expect(entry().document.spec.size).toEqual({ desired: 2, floor: 1, max: 4 });
  expect(specOf("trino")).toEqual({ clusterOperation: { stopped: false } });
  expect([specOf("metastore"), find("metastore").metadata.annotations]).toEqual([{ replicas: 3 }, {}]);
  expect((await statusOf(parts, entry())).phase).toBe("starting");
});

test("done twice is done once: the former count is kept (I27)", async () => {
  const { parts, entry, find, writes, gone } = aWorld();
  gone();
  await suspend(parts, entry(), { drain: false });
  await suspend(parts, entry(), { drain: false });
  expect(find("metastore").metadata.annotations).toEqual({ [SUSPENDED_FROM]: "3" });
  expect(writes).toEqual(["lab", "trino", "metastore"]);
});

test("what somebody scaled meanwhile stays so, and what others stopped is theirs to start", async () => {
  const { parts, entry, specOf, gone } = aWorld({ operation: { stopped: true } });
  gone();
  await suspend(parts, entry(), { drain: false });
  await parts.kube.patch({ name: "metastore" } as never, { spec: { replicas: 7 } });
  await resume(parts, entry());
  expect([specOf("metastore"), specOf("trino")]).toEqual([{ replicas: 7 }, { clusterOperation: { stopped: true } }]);
});

test.each([[1], [null]])(
  "refused while %s is under way, with nothing changed, unless it is to drain: then its owner and companions go on for as long",
  async (underWay) => {
    const { parts, entry, writes } = aWorld({ underWay });
    await expect(suspend(parts, entry(), { drain: false })).rejects.toMatchObject({ code: "suspend_running" });
    expect(writes).toEqual([]);
    await suspend(parts, entry(), { drain: true });
    expect(writes).toEqual(["lab"]);
  },
);

test("a paused owner is refused: it would take the word and do nothing (T18)", async () => {
  const { parts, entry, writes } = aWorld({ operation: { reconciliationPaused: true } });
  await expect(suspend(parts, entry(), { drain: true })).rejects.toMatchObject({ code: "suspend_owner_paused" });
  expect(writes).toEqual([]);
});

test("a companion that is not there is told before anything is changed", async () => {
  const { parts, entry, objects, writes } = aWorld();
  objects.delete("metastore");
  await expect(suspend(parts, entry(), { drain: true })).rejects.toMatchObject({ code: "suspend_gone" });
  expect(writes).toEqual([]);
});

test("a price is by currency, per month (T20)", () => {
  expect(
    pricePerMonth([
      { what: "a", price: 0.1, currency: "EUR", per: "hour" },
      { what: "b", price: 5, currency: "USD", per: "month" },
    ]),
  ).toEqual({ EUR: 73, USD: 5 });
});
