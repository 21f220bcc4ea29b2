/**
 * The gateway against HAProxy (Debian's) and http-proxy-3 (npm): the same backend, the same client, alternating rounds. Needs haproxy, wrk and taskset.
 * Prints one JSON document with all sides and the ratios.
 *
 *   node bench/gateway.ts [--only throughput,cpu,latency,rss] [--seconds 10] [--rounds 3] [--rate REQUESTS_PER_S]
 *
 * The proxy has core 0, the backend (another HAProxy that answers by itself) and the client share core 1. CPU is what the kernel accounted to the proxy's process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { systemClock } from "../src/kernel/system.ts";
import { SERVES_MUCH } from "../src/cli/processes/node-flags.ts";

const TARGETS = { ofHaproxy: 0.2, ofHttpProxy: 2.7, addedP99Ms: 2, rssGrowth: 1.2 };
const PORTS = { backend: 19_480, relevo: 19_481, haproxy: 19_482, "http-proxy-3": 19_483 };
const KINDS = ["relevo", "haproxy", "http-proxy-3"] as const;
type Kind = (typeof KINDS)[number];
/** The same for all three: below what the slowest can do. */
const EQUAL_RATE = 1_500;
const CONNECTIONS = 64;
const PACED_CONNECTIONS = 32;
const CLOCK_TICKS_PER_S = 100;

const { values } = parseArgs({
  options: { only: { type: "string" }, seconds: { type: "string" }, rounds: { type: "string" }, rate: { type: "string" } },
});
const parts = new Set((values.only ?? "throughput,cpu,latency,rss").split(","));
const seconds = Number(values.seconds ?? 10);
const rounds = Number(values.rounds ?? 3);
const folder = mkdtempSync(join(tmpdir(), "relevo-bench-gateway-"));
const children: ChildProcess[] = [];

try {
  await start("backend");
  const result: Record<string, unknown> = { bench: "gateway", seconds, rounds, load1: loadavg()[0], targets: TARGETS };
  const throughput = parts.has("throughput") || (parts.has("latency") && values.rate === undefined) ? await measureThroughput() : undefined;
  if (throughput !== undefined) result["throughput"] = throughput;
  if (parts.has("cpu")) result["cpu"] = await measureCpu();
  // Half of what it can do, unless a rate is given.
  if (parts.has("latency")) result["latency"] = await measureLatency(Number(values.rate ?? (throughput?.requestsPerS.relevo ?? 0) / 2));
  if (parts.has("rss")) result["rss"] = await measureRss();
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}

interface Round {
  readonly requestsPerS: number;
  /** Requests per second of the proxy's own processor time: what a core would give it if nothing else took time from it. */
  readonly perCpuS: number;
}

async function measureThroughput() {
  const subjects = new Map<Kind, ChildProcess>();
  for (const kind of KINDS) {
    subjects.set(kind, await start(kind));
    await wrk(kind, 5); // warm-up
  }
  const found: Record<Kind, Round>[] = [];
  for (let round = 0; round < rounds; round++) {
    const result = {} as Record<Kind, Round>;
    for (const [kind, subject] of subjects) {
      const before = cpuS(subject);
      const requestsPerS = await wrk(kind, seconds);
      result[kind] = { requestsPerS, perCpuS: Math.round((requestsPerS * seconds) / (cpuS(subject) - before)) };
    }
    found.push(result);
    progress(
      `round ${round + 1}: ${KINDS.map((kind) => `${kind} ${result[kind].requestsPerS} (${result[kind].perCpuS})`).join(", ")} requests/s (per CPU second)`,
    );
  }
  for (const subject of subjects.values()) await stop(subject);
  const requestsPerS = Object.fromEntries(KINDS.map((kind) => [kind, median(found.map((round) => round[kind].requestsPerS))])) as Record<
    Kind,
    number
  >;
  // Ratios are taken within a round, whose parts ran next to each other, then the middle one of the rounds.
  const ratio = (other: Kind, of: keyof Round) => median(found.map((round) => rounded(round.relevo[of] / round[other][of])));
  return {
    requestsPerS,
    ofHaproxy: ratio("haproxy", "requestsPerS"),
    ofHttpProxy: ratio("http-proxy-3", "requestsPerS"),
    perCpuS: { ofHaproxy: ratio("haproxy", "perCpuS"), ofHttpProxy: ratio("http-proxy-3", "perCpuS") },
    rounds: found,
  };
}

async function measureCpu() {
  const usPerRequest: Record<string, number> = {};
  for (const kind of KINDS) {
    const subject = await start(kind);
    await paced(PORTS[kind], EQUAL_RATE, 5); // warm-up
    const before = cpuS(subject);
    const { total } = await paced(PORTS[kind], EQUAL_RATE, seconds);
    usPerRequest[kind] = Math.round(((cpuS(subject) - before) * 1e6) / total);
    progress(`${kind}: ${usPerRequest[kind]} µs of CPU per request at ${EQUAL_RATE} requests/s`);
    await stop(subject);
  }
  return { ratePerS: EQUAL_RATE, usPerRequest };
}

async function measureLatency(rate: number) {
  const subject = await start("relevo");
  await wrk("relevo", 5); // warm-up
  const found: { direct: Paced; relevo: Paced; addedP99Ms: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const direct = await paced(PORTS.backend, rate, seconds);
    const relevo = await paced(PORTS.relevo, rate, seconds);
    found.push({ direct, relevo, addedP99Ms: rounded(relevo.p99Ms - direct.p99Ms) });
    progress(`half load: p99 ${relevo.p99Ms} ms, direct ${direct.p99Ms} ms`);
  }
  await stop(subject);
  return { ratePerS: Math.round(rate), addedP99Ms: median(found.map((round) => round.addedP99Ms)), rounds: found };
}

async function measureRss() {
  const subject = await start("relevo");
  const perS = await wrk("relevo", 5);
  let requests = perS * 5;
  const mb: Record<string, number> = {};
  for (const goal of [200_000, 1_000_000]) {
    while (requests < goal) {
      const part = Math.max(1, Math.min(20, Math.ceil((goal - requests) / perS)));
      requests += (await wrk("relevo", part)) * part;
    }
    mb[`after${goal}`] = rounded(rssMb(subject));
    progress(`RSS after ${Math.round(requests)} requests: ${rssMb(subject).toFixed(1)} MB`);
  }
  await stop(subject);
  return { mb, growth: rounded((mb["after1000000"] ?? 0) / (mb["after200000"] ?? 1)) };
}

// ---- processes

async function start(kind: Kind | "backend"): Promise<ChildProcess> {
  const core = kind === "backend" ? "1" : "0";
  const subject = fileURLToPath(new URL("gateway/subject.ts", import.meta.url));
  const command =
    kind === "backend" || kind === "haproxy"
      ? ["haproxy", "-db", "-f", configure(kind)]
      : [process.execPath, ...(kind === "relevo" ? SERVES_MUCH : []), subject, kind, String(PORTS[kind]), String(PORTS.backend)];
  const child = spawn("taskset", ["-c", core, ...command], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  if (kind === "relevo" || kind === "http-proxy-3") await new Promise((resolve) => child.stdout?.once("data", resolve));
  else await systemClock.sleep(500);
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

function configure(kind: "backend" | "haproxy"): string {
  const path = join(folder, `${kind}.cfg`);
  const answer = "http-request return status 200 content-type text/plain string 'a small answer, as a health check gives'";
  writeFileSync(
    path,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
  http-reuse always
frontend front
  bind 127.0.0.1:${PORTS[kind]}
  ${kind === "backend" ? answer : "default_backend back"}
${kind === "backend" ? "" : `backend back\n  server one 127.0.0.1:${PORTS.backend}\n`}`,
  );
  return path;
}

/** Requests per second at full load. */
async function wrk(kind: Kind, forS: number): Promise<number> {
  const text = await run("wrk", ["-t1", `-c${CONNECTIONS}`, `-d${forS}s`, `http://127.0.0.1:${PORTS[kind]}/`]);
  if (/Non-2xx|Socket errors/.test(text)) throw new Error(`${kind}: ${text}`);
  return Math.round(Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]));
}

interface Paced {
  readonly sent: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly late: number;
}

async function paced(port: number, rate: number, forS: number): Promise<Paced & { total: number }> {
  const client = fileURLToPath(new URL("gateway/load.ts", import.meta.url));
  const text = await run(process.execPath, [client, String(port), String(rate), String(forS), String(PACED_CONNECTIONS)]);
  const answer = JSON.parse(text) as Paced;
  return { ...answer, total: rate * forS };
}

function run(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("taskset", ["-c", "1", command, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(text) : reject(new Error(`${command} ended with ${code}`))));
  });
}

/** User and system time that the kernel accounted to the process, in seconds. taskset became the process by exec. */
function cpuS(child: ChildProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_S;
}

function rssMb(child: ChildProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}
