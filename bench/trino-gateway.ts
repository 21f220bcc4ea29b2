/**
 * The gateway before Trino: small statements and a result of 100 MB, directly, through ours, and through trino-gateway where its jar is
 * (`tools/peers/trino-gateway.sh fetch`; needs a JDK of 25 or newer and Debian's PostgreSQL). The coordinator replays recorded answers. Prints one JSON document.
 *
 *   node bench/trino-gateway.ts [--seconds 10] [--rounds 3] [--connections 32] [--mb 100] [--only direct,relevo,trino-gateway]
 *
 * The gateway has core 0, the coordinator and the clients share core 1. CPU is what the kernel accounted to the gateway's process, so that what others take from the
 * cores does not count; requests per second of that CPU is what to compare where the machine is shared.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SERVES_MUCH } from "../src/cli/processes/node-flags.ts";
import { systemClock } from "../src/kernel/system.ts";
import { PostgresCluster } from "../test/postgres/cluster.ts";

const TARGETS = { requestsOfTrinoGateway: 2, rssOfTrinoGateway: 0.5 };
const PORTS = { direct: 19_580, relevo: 19_581, "trino-gateway": 19_582 };
type Kind = keyof typeof PORTS;
const COORDINATOR_ID = "bench";
const CLOCK_TICKS_PER_S = 100;
/** It migrates its database and starts a JVM. */
const PEER_UP_MS = 180_000;

const CLIENT = fileURLToPath(new URL("trino-gateway/client.ts", import.meta.url));
const COORDINATOR = fileURLToPath(new URL("trino-gateway/coordinator.ts", import.meta.url));
const SUBJECT = fileURLToPath(new URL("trino-gateway/subject.ts", import.meta.url));

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    rounds: { type: "string" },
    connections: { type: "string" },
    mb: { type: "string" },
    only: { type: "string" },
  },
});
const seconds = Number(values.seconds ?? 10);
const rounds = Number(values.rounds ?? 3);
const connections = Number(values.connections ?? 32);
const mb = Number(values.mb ?? 100);

const folder = mkdtempSync(join(tmpdir(), "relevo-bench-trino-gateway-"));
const children: ChildProcess[] = [];
let database: PostgresCluster | undefined;

interface Side {
  readonly requestsPerS: number;
  /** Requests per second of the gateway's own processor time; null for none. */
  readonly perCpuS: number | null;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMsPerMb: number | null;
  readonly mbPerS: number;
}

try {
  await start("direct");
  const kinds = (["direct", "relevo", "trino-gateway"] as const).filter((kind) => isWanted(kind));
  const subjects = new Map<Kind, ChildProcess | null>();
  for (const kind of kinds) {
    subjects.set(kind, kind === "direct" ? null : await start(kind));
    await statements(kind, Math.min(5, seconds)); // warm-up
    await results(kind, 1);
  }
  const found: Partial<Record<Kind, Side>>[] = [];
  for (let round = 0; round < rounds; round++) {
    const sides: Partial<Record<Kind, Side>> = {};
    for (const [kind, subject] of subjects) sides[kind] = await measure(kind, subject);
    found.push(sides);
    process.stderr.write(`round ${round + 1}: ${JSON.stringify(sides)}\n`);
  }
  const rssMb = Object.fromEntries([...subjects].flatMap(([kind, subject]) => (subject === null ? [] : [[kind, rssMbOf(subject)]])));
  process.stdout.write(`${JSON.stringify(reportOf(found, rssMb))}\n`);
} finally {
  for (const child of children) child.kill("SIGKILL");
  await database?.stop();
  rmSync(folder, { recursive: true, force: true });
}

function isWanted(kind: Kind): boolean {
  if (values.only !== undefined && !values.only.split(",").includes(kind)) return false;
  if (kind !== "trino-gateway" || existsSync(peerJar())) return true;
  process.stderr.write("trino-gateway is left out: tools/peers/trino-gateway.sh fetch gets it\n");
  return false;
}

async function measure(kind: Kind, subject: ChildProcess | null): Promise<Side> {
  const cpu = () => (subject === null ? 0 : cpuS(subject));
  const before = cpu();
  const small = await statements(kind, seconds);
  const between = cpu();
  const big = await results(kind, 3);
  const after = cpu();
  return {
    requestsPerS: Math.round(small.requests / small.seconds),
    perCpuS: subject === null ? null : Math.round(small.requests / (between - before)),
    p50Ms: small.p50Ms,
    p99Ms: small.p99Ms,
    cpuMsPerMb: subject === null ? null : rounded(((after - between) * 1_000) / big.mb),
    mbPerS: Math.round(big.mb / big.seconds),
  };
}

function reportOf(found: readonly Partial<Record<Kind, Side>>[], rssMb: Readonly<Record<string, number>>) {
  // Ratios are taken within a round, whose parts ran next to each other.
  const ratio = (of: (side: Side) => number | null) => {
    const each = found.flatMap(({ relevo, "trino-gateway": peer }) => {
      const [ours, theirs] = [relevo && of(relevo), peer && of(peer)];
      return ours && theirs ? [rounded(ours / theirs)] : [];
    });
    return each.length === 0 ? null : median(each);
  };
  return {
    bench: "trino-gateway",
    seconds,
    rounds: found,
    connections,
    mb,
    load1: loadavg()[0],
    targets: TARGETS,
    ofTrinoGateway: {
      requestsPerS: ratio((side) => side.requestsPerS),
      perCpuS: ratio((side) => side.perCpuS),
      cpuPerMb: ratio((side) => side.cpuMsPerMb),
      rss: rssMb["relevo"] && rssMb["trino-gateway"] ? rounded(rssMb["relevo"] / rssMb["trino-gateway"]) : null,
    },
    rssMb,
  };
}

// ---- clients

interface Statements {
  readonly requests: number;
  readonly seconds: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

async function statements(kind: Kind, forS: number): Promise<Statements> {
  return (await client(["statements", PORTS[kind], forS, connections])) as Statements;
}

async function results(kind: Kind, times: number): Promise<{ readonly mb: number; readonly seconds: number }> {
  return (await client(["big", PORTS[kind], mb, times])) as { readonly mb: number; readonly seconds: number };
}

async function client(options: readonly (string | number)[]): Promise<object> {
  const text = await run([process.execPath, CLIENT, ...options.map(String)]);
  const answer = JSON.parse(text) as { readonly failed: number };
  if (answer.failed > 0) throw new Error(`${options.join(" ")}: ${text}`);
  return answer;
}

function run(command: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("taskset", ["-c", "1", ...command], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(text) : reject(new Error(`${command.join(" ")} ended with ${code}`))));
  });
}

// ---- processes

async function start(kind: Kind): Promise<ChildProcess> {
  if (kind === "trino-gateway") return startPeer();
  const command =
    kind === "direct"
      ? [process.execPath, COORDINATOR, String(PORTS.direct)]
      : [process.execPath, ...SERVES_MUCH, SUBJECT, String(PORTS.relevo), String(PORTS.direct), COORDINATOR_ID];
  const child = spawn("taskset", ["-c", kind === "direct" ? "1" : "0", ...command], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  await new Promise((resolve) => child.stdout.once("data", resolve));
  return child;
}

async function startPeer(): Promise<ChildProcess> {
  database = await PostgresCluster.start();
  const config = join(folder, "config.yaml");
  const { port } = database;
  writeFileSync(
    config,
    `serverConfig: {node.environment: test, http-server.http.port: ${PORTS["trino-gateway"]}}
dataStore: {jdbcUrl: "jdbc:postgresql://127.0.0.1:${port}/postgres", user: relevo, password: x, driver: org.postgresql.Driver}
clusterStatsConfiguration: {monitorType: INFO_API}
monitor: {taskDelay: 1s}
`,
  );
  const home = execFileSync(fileURLToPath(new URL("../tools/peers/trino.sh", import.meta.url)), ["java"], { encoding: "utf8" }).trim();
  const opens = ["java.base/java.lang", "java.base/java.net"].flatMap((name) => ["--add-opens", `${name}=ALL-UNNAMED`]);
  const child = spawn("taskset", ["-c", "0", join(home, "bin/java"), "-Xmx512m", "-XX:+UseSerialGC", ...opens, "-jar", peerJar(), config], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  children.push(child);
  await until("trino-gateway takes a cluster", PEER_UP_MS, async () => {
    const body = JSON.stringify({ name: "one", proxyTo: at("direct"), externalUrl: at("direct"), active: true, routingGroup: "adhoc" });
    const headers = { "content-type": "application/json" };
    const added = await fetch(`${at("trino-gateway")}/gateway/backend/modify/add`, { method: "POST", headers, body });
    return added.ok;
  });
  await until("trino-gateway sends it a statement", PEER_UP_MS, async () => {
    const answer = await fetch(`${at("trino-gateway")}/v1/statement`, {
      method: "POST",
      headers: { "x-trino-user": "bench" },
      body: "SELECT 1",
    });
    return answer.ok;
  });
  return child;
}

function at(kind: Kind): string {
  return `http://127.0.0.1:${PORTS[kind]}`;
}

async function until(what: string, limitMs: number, holds: () => Promise<boolean>): Promise<void> {
  const end = systemClock.monotonic() + limitMs;
  while (!(await holds().catch(() => false))) {
    if (systemClock.monotonic() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await systemClock.sleep(500);
  }
}

function peerJar(): string {
  return execFileSync(fileURLToPath(new URL("../tools/peers/trino-gateway.sh", import.meta.url)), ["path"], { encoding: "utf8" }).trim();
}

/** User and system time that the kernel accounted to the process, in seconds. taskset became the process by exec. */
function cpuS(child: ChildProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_S;
}

function rssMbOf(child: ChildProcess): number {
  return rounded(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024);
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
