/** Against servers that answer as Prometheus does: one for each site that has one. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Connections } from "../../demand/availability.ts";
import { ConnectionFile } from "../../demand/connection-file.ts";
import { connectionsSchema } from "../../demand/connections.ts";
import { DEMAND_ADAPTERS } from "../../demand/registry.ts";
import { type HttpPeer, startHttpPeer } from "../../demand/testing/http-peer.ts";
import { systemClock } from "../../kernel/system.ts";
import { type KubeApi, KubeApiError, type KubeObject } from "../../kube/api.ts";
import { type PoolDocument, poolSchema } from "../../model/pool.ts";
import { preflight } from "./preflight.ts";

let common: HttpPeer;
let own: HttpPeer;

beforeEach(async () => {
  common = await startHttpPeer();
  own = await startHttpPeer();
});
afterEach(async () => {
  await Promise.all([common.close(), own.close()]);
});

const AT = 1_764_547_200;
const headers = { date: new Date(AT * 1_000).toUTCString() };
const vector = (metric: Readonly<Record<string, string>>, value: string) => ({
  status: "success",
  data: { resultType: "vector", result: [{ metric, value: [AT, value] }] },
});

/** Lets in who has this token, and tells this backlog, which was taken just now. */
function serve(peer: HttpPeer, token: string, value = "42", flow = "queue/captures"): void {
  peer.answer((path) => {
    if (peer.headers.at(-1)?.authorization !== `Bearer ${token}`) return { status: 401, body: "no" };
    return { headers, body: path.includes("timestamp(") ? vector({}, String(AT)) : vector({ queue: flow }, value) };
  });
}

const documentOf = (spec: Readonly<Record<string, unknown>> = {}): PoolDocument =>
  poolSchema.parse({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "capture" },
    spec: {
      driver: "worker",
      sites: ["east", "west", "north", "south"],
      size: { desired: 1, floor: 1, max: 6 },
      worker: { flow: "queue/captures" },
      scale: { signal: { kind: "prometheus", connection: "metrics", query: "backlog", flowLabel: "queue" }, target: 4 },
      blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
      ...spec,
    },
  });

/** `metrics` is at two of the four sites; at one of them with an address and a credential of its own. */
function connections({ west = "west-token" } = {}): Connections {
  const { connections: all } = connectionsSchema.parse({
    connections: [
      { name: "metrics", kind: "prometheus", url: common.url, bearerToken: "common-token", sites: ["east"] },
      { name: "metrics", kind: "prometheus", url: own.url, bearerToken: west, sites: ["west"] },
    ],
  });
  const file = new ConnectionFile({ read: () => all, clock: systemClock, log: () => undefined });
  file.stop();
  return file;
}

const kubeOf = (objects: Readonly<Record<string, readonly KubeObject[]>> = {}): Pick<KubeApi, "get" | "list"> => ({
  get: async ({ type, name }) => {
    const found = objects[type.plural]?.find(({ metadata }) => metadata.name === name);
    if (found === undefined) throw new KubeApiError({ code: 404, reason: "NotFound" }, `GET ${name}`);
    return found;
  },
  list: async ({ plural }) => ({ resourceVersion: "1", items: objects[plural] ?? [] }),
});

const check = async (document: PoolDocument, given: Connections, kube = kubeOf()) =>
  (await preflight(document, { connections: given, adapters: DEMAND_ADAPTERS, kube, clock: systemClock })).map(
    ({ site, check: what, state }) => `${site}: ${what} ${state}`,
  );

test("four sites, two without Prometheus, one with a credential route of its own: one table says of each what is so (K2, K8)", async () => {
  serve(common, "common-token");
  serve(own, "west-token");
  expect(await check(documentOf(), connections())).toEqual([
    "east: signal ok",
    "east: credentials ok",
    "east: flow ok",
    "east: value ok",
    "west: signal ok",
    "west: credentials ok",
    "west: flow ok",
    "west: value ok",
    "north: signal refused",
    "south: signal refused",
    "east, west, north, south: owner ok",
  ]);
});

test("what is missing at a site is named (K2)", async () => {
  serve(common, "common-token");
  const [row] = (
    await preflight(documentOf({ sites: ["north"] }), {
      connections: connections(),
      adapters: DEMAND_ADAPTERS,
      kube: kubeOf(),
      clock: systemClock,
    })
  ).filter(({ state }) => state === "refused");
  expect(row?.message).toMatch(/^connection metrics \(Prometheus.*\) does not exist at site north$/);
});

test("a broken credential of one site is caught there by a real call, before anything is taken over (K8)", async () => {
  serve(common, "common-token");
  serve(own, "west-token");
  expect(await check(documentOf({ sites: ["east", "west"] }), connections({ west: "expired" }))).toEqual([
    "east: signal ok",
    "east: credentials ok",
    "east: flow ok",
    "east: value ok",
    "west: signal ok",
    "west: credentials refused",
    "east, west: owner ok",
  ]);
  expect(own.headers.map(({ authorization }) => authorization)[0]).toBe("Bearer expired");
});

test("another flow's backlog is refused, however well it looks (K1)", async () => {
  serve(common, "common-token", "42", "queue/sibling");
  expect(await check(documentOf({ sites: ["east"] }), connections())).toEqual([
    "east: signal ok",
    "east: credentials ok",
    "east: flow refused",
    "east: owner ok",
  ]);
});

test("a value that cannot be believed, and a server that is not there, are told apart", async () => {
  serve(common, "common-token", "NaN");
  await own.close();
  expect(await check(documentOf({ sites: ["east", "west"] }), connections())).toEqual([
    "east: signal ok",
    "east: credentials ok",
    "east: value refused",
    "west: signal ok",
    "west: signal refused",
    "east, west: owner ok",
  ]);
});

test("a target whose count somebody else sets is refused, and who that is is said (K3)", async () => {
  serve(common, "common-token");
  const target = { blueprint: { objects: [] }, target: { kind: "Deployment", name: "web" }, sites: ["east"] };
  const metadata = { uid: "u", resourceVersion: "1", creationTimestamp: "2026-11-30T12:00:00Z", namespace: "default" };
  const deployment: KubeObject = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...metadata, name: "web" },
    spec: { replicas: 2 },
  };
  const hpa: KubeObject = {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { ...metadata, name: "web-by-cpu" },
    spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, minReplicas: 1, maxReplicas: 9 },
  };
  const ownerOf = async (objects: Readonly<Record<string, readonly KubeObject[]>>) => {
    const parts = { connections: connections(), adapters: DEMAND_ADAPTERS, kube: kubeOf(objects), clock: systemClock };
    const owner = (await preflight(documentOf(target), parts)).find((row) => row.check === "owner");
    return [owner?.state, owner?.message];
  };
  expect(await ownerOf({ deployments: [deployment], horizontalpodautoscalers: [hpa] })).toEqual([
    "refused",
    "Deployment default/web has another owner: HorizontalPodAutoscaler/web-by-cpu keeps it between 1 and 9 by metrics of its own",
  ]);
  expect(await ownerOf({ deployments: [deployment] })).toEqual(["ok", "nobody else sets the count of Deployment default/web"]);
  expect(await ownerOf({})).toEqual(["refused", "there is no Deployment default/web"]);
});

test("a pool whose size follows nothing needs no signal", async () => {
  const { scale: _, ...spec } = documentOf().spec;
  expect(await check({ ...documentOf(), spec: { ...spec, sites: ["east"] } }, connections())).toEqual(["east: signal ok"]);
});
