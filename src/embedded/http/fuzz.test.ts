import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { request } from "undici";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { NODES, PODS, POOLS, STATEFUL_SETS } from "../../kube/resources.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { aPod, storeForTest } from "../store/store-for-test.ts";
import { type EmbeddedApi, startEmbeddedApi } from "./server.ts";

let store: ObjectStore;
let server: EmbeddedApi;
beforeAll(async () => {
  const clock = new VirtualClock();
  store = storeForTest({ clock });
  server = await startEmbeddedApi({ store, clock, podLogs: { read: async function* () {} } });
});
afterAll(() => server.close());

/** What an earlier request deleted or spoilt is there again. */
function restock(): void {
  const drafts = [
    [PODS, aPod("p")],
    [NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "p" } }],
    [POOLS, { apiVersion: "relevo.dev/v1alpha1", kind: "Pool", metadata: { name: "p", namespace: "default" }, spec: {} }],
    [STATEFUL_SETS, aStatefulSet],
  ] as const;
  for (const [type, draft] of drafts) {
    const ref = { type, namespace: "default", name: "p" };
    const found = store.find(ref);
    if (found) store.modify(ref, (before) => ({ ...before, metadata: { ...before.metadata, finalizers: [] } }));
    if (store.find(ref)) store.delete(ref, { gracePeriodSeconds: 0 });
    store.create(type, draft);
  }
}

const aStatefulSet = {
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: "p", namespace: "default" },
  spec: { selector: { matchLabels: { a: "b" } }, template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "main" }] } } },
};

/** Values that hit the places where code expects another type. */
const junk: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(null, true, 0, -1, 1e308, "", "p", "$patch", "delete", "2030-01-01T00:00:00Z"),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.dictionary(
    fc.constantFrom(
      ..."metadata spec status name namespace labels annotations finalizers ownerReferences containers template selector matchLabels matchExpressions replicas conditions ports env $patch $retainKeys $setElementOrder/containers $deleteFromPrimitiveList/finalizers data stringData tolerations value op path from target deleteOptions preconditions dryRun versions names group".split(
        " ",
      ),
    ),
    tie("value"),
    { maxKeys: 5 },
  ),
})).value;

const path = fc.constantFrom(
  "/api/v1/namespaces/default/pods/p",
  "/api/v1/namespaces/default/pods",
  "/api/v1/namespaces/default/pods/p/status",
  "/api/v1/namespaces/default/pods/p/eviction",
  "/api/v1/namespaces/default/pods/p/binding",
  "/api/v1/namespaces/default/pods/p/log",
  "/api/v1/namespaces/default/secrets",
  "/api/v1/namespaces/default/services",
  "/api/v1/nodes/p",
  "/api/v1/namespaces/default/finalize",
  "/apis/apps/v1/namespaces/default/deployments",
  "/apis/apps/v1/namespaces/default/statefulsets/p/scale",
  "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
  "/apis/relevo.dev/v1alpha1/namespaces/default/pools/p",
  "/apis/relevo.dev/v1alpha1/namespaces/default/pools/p/status",
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  "/apis",
  "/openapi/v3/%zz",
  "//",
);
const contentType = fc.constantFrom(
  "application/json",
  "application/yaml",
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
  "",
);
const query = fc.constantFrom(
  "",
  "?fieldManager=f&force=true",
  "?dryRun=All",
  "?labelSelector=a%3Db,!c,d%20in%20(e)",
  "?fieldSelector=metadata.name%3Dp",
  "?limit=1&continue=x",
  "?fieldValidation=Strict",
  "?resourceVersion=9",
  "?tailLines=x",
);

test("whatever is sent, the answer is one of the API's, never an internal error", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE"),
      path,
      query,
      contentType,
      junk,
      fc.boolean(),
      async (method, at, search, type, value, asTable) => {
        restock();
        const body = method === "GET" ? undefined : JSON.stringify(value);
        const accept = asTable ? "application/json;as=Table;v=v1;g=meta.k8s.io" : "application/json";
        const response = await request(`${server.url}${at}${search}`, {
          method: method as "GET",
          headers: { accept, ...(type === "" ? {} : { "content-type": type }) },
          ...(body === undefined ? {} : { body }),
        });
        const text = await response.body.text();
        expect(response.statusCode, text).toBeLessThan(500);
        if (String(response.headers["content-type"]).startsWith("application/json")) JSON.parse(text);
      },
    ),
    { numRuns: 1_500 },
  );
  for (const kind of store.kinds.all()) expect(store.list(kind).items.every((item) => typeof item.metadata.name === "string")).toBe(true);
}, 60_000);

/** A good object with one place spoilt. */
const spoilt = fc
  .tuple(fc.constantFrom("pods", "statefulsets", "pools", "nodes"), fc.array(fc.nat(20), { minLength: 1, maxLength: 7 }), junk)
  .map(([plural, steps, value]) => {
    const [root, draft] = GOOD[plural] ?? ["", {}];
    return {
      collection: `${root}/${plural}`,
      object: replacedAt(structuredClone({ ...draft, metadata: { ...draft.metadata, name: "q" } }), steps, value),
    };
  });

const GOOD: Readonly<Record<string, readonly [string, { readonly metadata: object }]>> = {
  pods: ["/api/v1/namespaces/default", { ...aPod("p"), ...{ status: { conditions: [{ type: "Ready" }] } } }],
  statefulsets: ["/apis/apps/v1/namespaces/default", aStatefulSet],
  pools: [
    "/apis/relevo.dev/v1alpha1/namespaces/default",
    { metadata: { labels: { a: "b" }, annotations: {}, finalizers: ["a/b"] }, ...{ spec: { size: { desired: 1 } } } },
  ],
  nodes: [
    "/api/v1",
    {
      metadata: { labels: { a: "b" } },
      ...{ spec: { taints: [{ key: "a" }] }, status: { conditions: [{ type: "Ready", status: "True" }], addresses: [{}] } },
    },
  ],
};

/** Goes down by the numbers, each choosing a member, and replaces what is there. */
function replacedAt(value: unknown, steps: readonly number[], replacement: unknown): unknown {
  const [step, ...rest] = steps;
  if (step === undefined || typeof value !== "object" || value === null) return replacement;
  const keys = Object.keys(value);
  const key = keys[step % Math.max(1, keys.length)];
  if (key === undefined) return replacement;
  const holder = value as Record<string, unknown>;
  holder[key] = replacedAt(holder[key], rest, replacement);
  return holder;
}

test("whatever object is accepted can be listed, shown as a table, patched and deleted", async () => {
  const send = async (
    method: "GET" | "POST" | "PATCH" | "DELETE",
    url: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<number> => {
    const given = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await request(`${server.url}${url}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...given,
    });
    const text = await response.body.text();
    expect(response.statusCode, text).toBeLessThan(500);
    return response.statusCode;
  };
  const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
  await fc.assert(
    fc.asyncProperty(spoilt, async ({ collection, object }) => {
      const code = await send("POST", collection, object);
      await send("GET", collection, undefined, table);
      if (code !== 201) return;
      const url = `${collection}/q`;
      if ((await send("GET", url)) === 404) return; // the name was what was spoilt
      await send(
        "PATCH",
        url,
        { metadata: { labels: { c: "d" } } },
        { "content-type": collection.includes("relevo.dev") ? "application/merge-patch+json" : "application/strategic-merge-patch+json" },
      );
      await send("PATCH", `${url}/status`, { status: { x: 1 } }, { "content-type": "application/merge-patch+json" });
      expect(await send("PATCH", url, { metadata: { finalizers: null } }, { "content-type": "application/merge-patch+json" })).toBe(200);
      expect(await send("DELETE", url, { gracePeriodSeconds: 0 })).toBe(200);
      expect(await send("GET", url)).toBe(404);
    }),
    { numRuns: 400 },
  );
}, 60_000);
