/** The adapter through a real API server, whose aggregation layer asks a metrics server of the test, as it would ask KEDA's. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { externalMetricAdapter } from "../../src/demand/external-metric/adapter.ts";
import type { DemandSource } from "../../src/demand/port.ts";
import { look, within } from "../../src/demand/testing/look.ts";
import { formatInstant } from "../../src/kernel/clock.ts";
import { systemClock } from "../../src/kernel/system.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { type SignalOf, signalSchema } from "../../src/model/demand.ts";
import { type RealCluster, startKubernetes } from "../kubernetes/cluster.ts";

const GROUP = "/apis/external.metrics.k8s.io/v1beta1";
const PATIENT = { timeout: 60_000, interval: 250 };
const WHO = "the API of external metrics (APIService v1beta1.external.metrics.k8s.io)";
let cluster: RealCluster;
let adapter: Server;
let port: number;
let asked: string[] = [];
/** What the metrics server says of the metric; a status instead of items is an error. */
let answer: { readonly status: number; readonly message: string } | readonly object[] = [];

beforeAll(async () => {
  adapter = createServer(certificate(), (request, response) => {
    const path = decodeURIComponent(request.url ?? "");
    const send = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (path === GROUP)
      return send(200, { kind: "APIResourceList", apiVersion: "v1", groupVersion: "external.metrics.k8s.io/v1beta1", resources: [] });
    if (!path.startsWith(`${GROUP}/namespaces/`)) return send(200, { kind: "APIGroup", apiVersion: "v1" });
    asked.push(path);
    if ("status" in answer) return send(answer.status, { kind: "Status", apiVersion: "v1", code: answer.status, message: answer.message });
    send(200, { kind: "ExternalMetricValueList", apiVersion: "external.metrics.k8s.io/v1beta1", metadata: {}, items: answer });
  });
  adapter.listen(0, "127.0.0.1");
  await once(adapter, "listening");
  port = (adapter.address() as AddressInfo).port;
  cluster = await startKubernetes({ parts: [] });
});
afterAll(async () => {
  await cluster?.stop();
  adapter?.closeAllConnections();
  adapter?.close();
});
beforeEach(() => {
  asked = [];
});

function certificate(): { readonly key: string; readonly cert: string } {
  const dir = mkdtempSync(join(tmpdir(), "relevo-metrics-"));
  const [key, cert] = [join(dir, "key"), join(dir, "cert")];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert],
    {
      stdio: "ignore",
    },
  );
  const both = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  rmSync(dir, { recursive: true });
  return both;
}

function sourceOf(spec: Partial<SignalOf<"external-metric">> = {}, kube: KubeApi = cluster.api): DemandSource {
  return externalMetricAdapter.open(
    signalSchema.parse({ kind: "external-metric", metric: "s0-kafka-orders", ...spec }) as SignalOf<"external-metric">,
    undefined,
    { clock: systemClock, kube, namespace: "default" },
  );
}

const valueOf = (value: string, metricLabels: object | null = null): object => ({
  metricName: "s0-kafka-orders",
  metricLabels,
  timestamp: formatInstant(Math.floor(systemClock.now() / 1_000) * 1_000),
  value,
});

test("a cluster without a metrics server says which APIService is missing (K2)", async () => {
  expect(await look(sourceOf())).toBe("not_available: no APIService v1beta1.external.metrics.k8s.io is registered in this cluster");
});

/** A service that stands for a name outside the cluster: the API server calls it there. */
async function register(): Promise<void> {
  const metadata = { name: "metrics", namespace: "default" };
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata,
    spec: { type: "ExternalName", externalName: "localhost", ports: [{ port }] },
  };
  const apiService = {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: "v1beta1.external.metrics.k8s.io" },
    spec: {
      group: "external.metrics.k8s.io",
      version: "v1beta1",
      groupPriorityMinimum: 100,
      versionPriority: 100,
      insecureSkipTLSVerify: true,
      service: { ...metadata, port },
    },
  };
  await cluster.kubectlWith(JSON.stringify({ apiVersion: "v1", kind: "List", items: [service, apiService] }), "apply", "-f", "-");
}

test("through the API server a quantity of the metrics server is the backlog, by name, selector and label (K1)", async () => {
  await register();
  answer = [valueOf("42500m", { queue: "queue/orders" })];
  const spec = { selector: { "scaledobject.keda.sh/name": "orders" }, flowLabel: "queue" };
  await expect.poll(() => look(sourceOf(spec), { flow: "queue/orders" }), PATIENT).toMatchObject({ backlog: 42.5, flow: "queue/orders" });
  expect(asked.at(-1)).toBe(`${GROUP}/namespaces/default/s0-kafka-orders?labelSelector=scaledobject.keda.sh/name=orders`);
  const reading = await sourceOf(spec).read(within(10_000));
  expect(Math.abs((reading.valueAt ?? 0) - systemClock.now())).toBeLessThan(30_000);
  expect(await look(sourceOf({ ...spec, metric: "pubsub.googleapis.com|subscription/num_undelivered" }))).toMatchObject({ backlog: 42.5 });
  expect(asked.at(-1)).toContain("/namespaces/default/pubsub.googleapis.com|subscription/num_undelivered?");
});

test("no value, several, an unknown metric and a scaler's error are told apart, and none is zero (K11)", async () => {
  answer = [];
  expect(await look(sourceOf())).toBe("missing: there is no value of metric s0-kafka-orders of namespace default");
  answer = [valueOf("1"), valueOf("2")];
  expect(await look(sourceOf())).toMatch(/^partial: there are 2 values/);
  answer = { status: 404, message: "no metric of this name" };
  expect(await look(sourceOf())).toBe(`missing: ${WHO} knows no metric s0-kafka-orders of namespace default: no metric of this name`);
  answer = { status: 500, message: "error when getting metric values" };
  expect(await look(sourceOf())).toMatch(/^unreachable: .*500 .*error when getting metric values/);
  answer = [valueOf("0")];
  expect(await look(sourceOf())).toMatchObject({ backlog: 0, flow: "s0-kafka-orders" });
});

test("an account without the right is refused by name; list on this one group is enough (K8)", async () => {
  answer = [valueOf("3")];
  const kube = await cluster.apiOf("relevo");
  expect(await look(sourceOf({}, kube))).toMatch(
    /^credentials_refused: the API server does not let us list metric s0-kafka-orders of namespace default: .*cannot list/,
  );
  await cluster.kubectl("create", "role", "metrics", "--verb=list", "--resource=*.external.metrics.k8s.io");
  await cluster.kubectl("create", "rolebinding", "metrics", "--role=metrics", "--user=relevo");
  await expect.poll(() => look(sourceOf({}, kube)), PATIENT).toMatchObject({ backlog: 3 });
});

test("a metrics server that is gone is not available, with the API server's own words, and is read again when it is back", async () => {
  adapter.closeAllConnections();
  await new Promise((resolve) => adapter.close(resolve));
  await expect
    .poll(() => look(sourceOf()), PATIENT)
    .toMatch(/^unreachable: APIService v1beta1\.external\.metrics\.k8s\.io is not available: /);
  answer = [valueOf("6")];
  adapter.listen(port, "127.0.0.1");
  await expect.poll(() => look(sourceOf()), PATIENT).toMatchObject({ backlog: 6 });
});
