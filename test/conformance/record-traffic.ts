/**
 * `node test/conformance/record-traffic.ts`: writes `traffic.json`, what the product and the usual commands of kubectl ask of an API server. The product: a
 * fleet of real processes through drift, loss and return. kubectl: through a recording proxy, on the same cluster.
 */
import { execFile } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as forward } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startFleet } from "../end-to-end/fleet.ts";
import { PODS } from "../../src/kube/resources.ts";
import { trafficLine } from "./traffic.ts";

const WORKLOAD = JSON.stringify({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "default" },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "main", image: "any", command: ["sleep", "1000"] }] },
    },
  },
});
const SET = WORKLOAD.replace("Deployment", "StatefulSet").replaceAll('"web"', '"db"');
const BUDGET = JSON.stringify({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "web", namespace: "default" },
  spec: { maxUnavailable: 1, selector: { matchLabels: { app: "web" } } },
});

const settings = (a: string): string =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings", namespace: "default" }, data: { a } });

/** The usual ones, with what they read from stdin. */
const COMMANDS: readonly (readonly [string, string?])[] = [
  ["get pools,nodes,pods,deployments,nodeclaims,nodepools,sites"],
  ["get pods -A -o wide"],
  ["get pods -l relevo.dev/pool=orders -o yaml"],
  ["get pods --field-selector status.phase=Running"],
  ["get pods --watch --request-timeout 1s"],
  ["get pods --chunk-size 1"],
  ["get events --sort-by .lastTimestamp"],
  [
    "get leases,configmaps,services,secrets,serviceaccounts,replicasets,statefulsets,daemonsets,poddisruptionbudgets,persistentvolumeclaims -A",
  ],
  ["describe pod POD"],
  ["describe node NODE"],
  ["describe pool orders"],
  ["apply -f -", WORKLOAD],
  ["apply -f -", WORKLOAD.replace('"replicas":1', '"replicas":2')],
  ["apply --server-side -f -", SET],
  ["create -f -", BUDGET],
  ["apply --dry-run=server -f -", WORKLOAD],
  ["rollout status deployment/web --timeout 10s"],
  ["rollout restart deployment/web"],
  ["rollout history deployment/web"],
  ["scale deployment/web --replicas 2"],
  ["scale statefulset/db --replicas 1"],
  ["wait --for condition=Available --timeout 10s deployment/web"],
  ["label node NODE example.com/a=b"],
  ["annotate pod POD example.com/a=b"],
  ["taint node NODE example.com/a=b:NoSchedule"],
  ["taint node NODE example.com/a-"],
  ['patch deployment web --type merge -p {"metadata":{"labels":{"a":"b"}}}'],
  ['patch deployment web --type json -p [{"op":"add","path":"/metadata/labels/c","value":"d"}]'],
  ['patch pool orders --subresource status --type merge -p {"status":{"serving":1}}'],
  ["create -f -", settings("b")],
  ["create -f -", JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "elsewhere" } })],
  ["replace -f -", settings("c")],
  ["cordon NODE"],
  ["drain NODE --ignore-daemonsets --delete-emptydir-data --force --timeout 10s"],
  ["uncordon NODE"],
  ["delete configmap settings"],
  ["delete pod -l app=web --wait=false"],
  ["delete pods --all -n elsewhere"],
  ["delete deployment web --cascade=foreground --timeout 10s"],
  ["delete statefulset db"],
  ["delete pdb web"],
  ["delete namespace elsewhere --wait=false"],
  ["logs POD --tail 1"],
  ["explain pod.spec"],
  ["api-resources"],
  ["auth can-i list pods"],
];

const kubectl = new Set<string>();
const asked: { readonly origin: string; readonly line: string }[] = [];
// Before anything starts: lists and watches of the beginning count too.
subscribe("undici:request:create", (message) => {
  const { request } = message as { readonly request: { method: string; path: string; origin: string; headers: readonly string[] } };
  const type = request.headers[request.headers.indexOf("content-type") + 1];
  const line = trafficLine(request.method, request.path, type, undefined);
  if (line !== undefined) asked.push({ origin: String(request.origin), line });
});
const fleet = await startFleet();

const dir = mkdtempSync(join(tmpdir(), "relevo-traffic-"));
try {
  await recordProduct();
  await recordKubectl();
} finally {
  rmSync(dir, { recursive: true, force: true });
  await fleet.close();
}
const product = new Set(asked.filter(({ origin }) => fleet.cluster.url.startsWith(origin)).map(({ line }) => line));
const recorded = { product: [...product].toSorted(), kubectl: [...kubectl].toSorted() };
writeFileSync(join(import.meta.dirname, "traffic.json"), `${JSON.stringify(recorded, undefined, 2)}\n`);
process.stdout.write(`${recorded.product.length} of the product, ${recorded.kubectl.length} of kubectl\n`);

async function recordProduct(): Promise<void> {
  await fleet.gateway();
  const { provisioner } = fleet.cluster;
  await fleet.until("three serve", async () => (await fleet.serving()).length === 3);
  const [first, second, third] = await fleet.serving();
  const gone = (id: string | undefined) => async (): Promise<boolean> => (await fleet.instance(id ?? "")).phase === "deleted";
  await provisioner.drift(first?.incarnation.nodeName ?? "");
  await fleet.until("drift was answered", gone(first?.id), 60_000);
  provisioner.interrupt(second?.incarnation.nodeName ?? "", { deadlineMs: 5_000 });
  await fleet.until("the interruption was answered", gone(second?.id), 60_000);
  await provisioner.kill(third?.incarnation.nodeName ?? "");
  await fleet.until("the loss was answered", gone(third?.id), 60_000);
}

async function recordKubectl(): Promise<void> {
  const proxy = createServer((request, response) => {
    const line = trafficLine(request.method ?? "", request.url ?? "", request.headers["content-type"], request.headers.accept);
    if (line !== undefined) kubectl.add(line);
    const { hostname, port } = new URL(fleet.cluster.url);
    const onward = forward({ hostname, port, method: request.method, path: request.url, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const server = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  for (const command of COMMANDS) await run(server, command);
  proxy.closeAllConnections();
  await new Promise((resolve) => proxy.close(resolve));
}

async function run(server: string, [line, stdin]: readonly [string, string?]): Promise<void> {
  const node = fleet.cluster.provisioner.nodes()[0]?.name ?? "";
  const pod = fleet.cluster.store.list(PODS, { namespace: "default" }).items[0]?.metadata.name ?? "";
  const words = line.replace("NODE", node).replace("POD", pod).split(" ");
  const running = promisify(execFile)("kubectl", ["--server", server, "--cache-dir", join(dir, "cache"), ...words], { timeout: 60_000 });
  running.child.stdin?.end(stdin ?? "");
  const failure = await running.then(
    () => undefined,
    (error: unknown) => (error as { readonly stderr: string }).stderr,
  );
  if (failure !== undefined) process.stderr.write(`kubectl ${line}: ${failure}`);
}
