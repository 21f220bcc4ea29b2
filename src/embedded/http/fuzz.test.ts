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
