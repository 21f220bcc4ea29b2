/** The adapter against a real Prometheus, which scrapes what the test says. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { type SignalOf, signalSchema } from "../../model/demand.ts";
import { type ConnectionOf, connectionSchema } from "../connections.ts";
import type { DemandSource } from "../port.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { prometheusAdapter } from "./adapter.ts";
import { freePort, listen } from "../../../test/ports.ts";

const PATIENT = { timeout: 60_000, interval: 100 };
const open: DemandSource[] = [];
let dir: string;
let target: Server;
let prometheus: ChildProcess | undefined;
let url: string;
let caFile: string;
/** What is scraped. */
let metrics = "";

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "relevo-prometheus-"));
  target = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4" });
    response.end(metrics);
  });
  const [targetPort, port] = [await listen(target), await freePort()];
  await writeFile(
    join(dir, "prometheus.yml"),
    `scrape_configs: [{ job_name: jobs, scrape_interval: 500ms, scrape_timeout: 500ms, static_configs: [{ targets: ["127.0.0.1:${targetPort}"] }] }]\n`,
  );
  url = `https://127.0.0.1:${port}`;
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  const subject = ["-subj", "/CN=prometheus", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  await writeFile(join(dir, "web.yml"), `tls_server_config: { cert_file: ${cert}, key_file: ${key} }\n`);
  caFile = cert;
  prometheus = start(port);
});

function start(port: number): ChildProcess {
  const files = [
    "--config.file",
    join(dir, "prometheus.yml"),
    "--web.config.file",
    join(dir, "web.yml"),
    "--storage.tsdb.path",
    join(dir, "data"),
  ];
  return spawn("prometheus", [...files, "--web.listen-address", `127.0.0.1:${port}`, "--log.level", "error"], { stdio: "ignore" });
}

async function kill(): Promise<void> {
  if (prometheus === undefined || prometheus.exitCode !== null || prometheus.signalCode !== null) return;
  const ended = once(prometheus, "exit");
  prometheus.kill("SIGKILL");
  await ended;
}

afterAll(async () => {
  await kill();
  target?.closeAllConnections();
  target?.close();
  await rm(dir, { recursive: true, force: true });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((source) => source.close()));
});

const never = (): never => {
  throw new Error("nobody asks the API server");
};

function sourceOf(query: string, ageQuery?: string, tls: object | undefined = { caFile }): DemandSource {
  const spec = { kind: "prometheus", connection: "metrics", query, flowLabel: "queue", ...(ageQuery === undefined ? {} : { ageQuery }) };
  const source = prometheusAdapter.open(
    signalSchema.parse(spec) as SignalOf<"prometheus">,
    connectionSchema.parse({ kind: "prometheus", name: "metrics", url, tls }) as ConnectionOf<"prometheus">,
    { clock: systemClock, kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

test("a gauge is the backlog with the time at which it was scraped, and follows it (K1)", async () => {
  metrics = 'jobs_waiting{queue="queue/orders"} 42\njobs_oldest_seconds{queue="queue/orders"} 9.5\n';
  const source = sourceOf("jobs_waiting # of all shards", "max by (queue) (jobs_oldest_seconds)");
  await expect
    .poll(() => look(source, { flow: "queue/orders" }), PATIENT)
    .toMatchObject({ backlog: 42, oldestAgeMs: 9_500, flow: "queue/orders" });
  const { valueAt, sourceNow } = await source.read(within(10_000));
  expect(Math.abs((sourceNow ?? 0) - (valueAt ?? 0))).toBeLessThan(5_000);
  metrics = 'jobs_waiting{queue="queue/orders"} 3\n';
  await expect.poll(() => look(source), PATIENT).toMatchObject({ backlog: 3, oldestAgeMs: null });
});

test("an aggregation keeps the label; without it, or over two flows, there is no backlog (K1, K11)", async () => {
  metrics =
    'jobs_waiting{queue="queue/orders",shard="a"} 40\njobs_waiting{queue="queue/orders",shard="b"} 2\njobs_waiting{queue="queue/other",shard="a"} 7\n';
  const orders = sourceOf('sum by (queue) (jobs_waiting{queue="queue/orders"})');
  await expect.poll(() => look(orders, { flow: "queue/orders" }), PATIENT).toMatchObject({ backlog: 42 });
  expect(await troubleOf(sourceOf("sum(jobs_waiting)"))).toBe("missing");
  expect(await troubleOf(sourceOf("sum by (queue) (jobs_waiting)"))).toBe("partial");
  expect(await troubleOf(sourceOf('sum by (queue) (jobs_waiting{queue="queue/other"})'), { flow: "queue/orders" })).toBe("other_flow");
});

test("NaN, infinite, negative, nothing, a scalar and nonsense are trouble, and then it is believed again (K11)", async () => {
  const source = sourceOf("jobs_waiting");
  for (const [value, trouble] of [
    ["NaN", "not_a_number"],
    ["+Inf", "infinite"],
    ["-Inf", "infinite"],
    ["-1", "negative"],
    ["5", "valid"],
  ] as const) {
    metrics = `jobs_waiting{queue="queue/orders"} ${value}\n`;
    await expect.poll(() => troubleOf(source), PATIENT).toBe(trouble);
  }
  metrics = "other_metric 1\n";
  await expect.poll(() => troubleOf(source), PATIENT).toBe("missing");
  expect(await troubleOf(sourceOf("scalar(other_metric)"))).toBe("type_changed");
  expect(await look(sourceOf("jobs_waiting{"))).toMatch(
    /^unreachable: Prometheus \(connection metrics\) answered with an error: 400 .*parse error/,
  );
});

test("an exporter that keeps its own old time is stale by that time, though Prometheus answers (K11)", async () => {
  metrics = `jobs_held{queue="queue/orders"} 8 ${systemClock.now() - 30_000}\n`;
  const source = sourceOf("jobs_held");
  await expect.poll(() => look(source, { maxAgeMs: 60_000 }), PATIENT).toMatchObject({ backlog: 8 });
  expect(await look(source, { maxAgeMs: 20_000 })).toMatch(/^stale: /);
});

test("a certificate of nobody's is refused; a Prometheus that was killed is unreachable, and is read again by itself", async () => {
  metrics = 'jobs_left{queue="queue/orders"} 4\n';
  const source = sourceOf("jobs_left");
  await expect.poll(() => look(source), PATIENT).toMatchObject({ backlog: 4 });
  expect(await look(sourceOf("jobs_left", undefined, {}))).toMatch(/^unreachable: .*self-signed certificate/);
  await kill();
  expect(await look(source)).toMatch(/^unreachable: .*ECONNREFUSED/);
  prometheus = start(Number(new URL(url).port));
  metrics = 'jobs_left{queue="queue/orders"} 5\n';
  await expect.poll(() => look(source), PATIENT).toMatchObject({ backlog: 5 });
});
