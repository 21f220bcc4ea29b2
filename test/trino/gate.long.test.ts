/**
 * `relevo gate run` against a real Trino, as a user calls it (T8–T14, I25): workers are killed with SIGKILL, and begun again at their address. Level: real
 * processes. Kept as docs/evidence/gate.json with RELEVO_KEEP_EVIDENCE.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { ownQuery, ownRowsOf } from "../../src/proof/gate/own-query.ts";
import type { GateReport } from "../../src/proof/gate/report.ts";
import { circumstances, keepEvidence } from "../../tools/evidence/keep.ts";
import { startTrino, TRINO_USER, type TrinoCluster } from "./server.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Both runs, on two cores. */
const MOST_MS = 8 * 60_000;
const WITHIN = { timeout: 180_000, interval: 1_000 };

let cluster: TrinoCluster;
let hooks: Server;
let folder: string;
let rows = 60_000_000;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relevo-gate-"));
  mkdirSync(join(folder, "exchange"));
  hooks = await listen();
  cluster = await startTrino({ workers: 2, exchange: { folder: join(folder, "exchange") } });
});

afterAll(async () => {
  await cluster?.stop();
  hooks?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What the commands of the gate call: `/kill/w1`, `/restart/w1`. */
async function listen(): Promise<Server> {
  const server = createServer((request, response) => {
    const [, what, id] = (request.url ?? "").split("/");
    const node = cluster.workers.find((each) => each.id === id);
    const done =
      node === undefined ? Promise.reject(new Error(`no ${id}`)) : what === "kill" ? node.kill("SIGKILL") : Promise.resolve(node.begin());
    done.then(
      () => response.end(`${what} ${id}`),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

interface Ran {
  readonly code: number | null;
  readonly report: GateReport;
  readonly markdown: string;
  readonly err: string;
}

async function gate(spec: object): Promise<Ran> {
  const { port } = hooks.address() as AddressInfo;
  const call = (what: string) => [
    process.execPath,
    "-e",
    `fetch("http://127.0.0.1:${port}/${what}/$(worker.nodeId)").then((answer) => process.exit(answer.ok ? 0 : 1))`,
  ];
  const document = {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Gate",
    metadata: { name: "worker-kill" },
    spec: {
      where: {
        coordinator: { url: cluster.coordinator.base },
        user: TRINO_USER,
        workers: { urls: cluster.workers.filter(({ isRunning }) => isRunning).map(({ base }) => base) },
      },
      kill: { command: call("kill"), restart: call("restart") },
      exchange: { location: join(folder, "exchange") },
      ...spec,
    },
  };
  writeFileSync(join(folder, "gate.yaml"), stringify(document));
  const args = ["gate", "run", "-f", "gate.yaml", "-o", "json", "--report", "gate.md"];
  const child = spawn(process.execPath, [join(ROOT, "bin/relevo.mjs"), ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk) => (out += String(chunk)));
  child.stderr.on("data", (chunk) => {
    err += String(chunk);
    process.stderr.write(chunk);
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  expect(out, err).not.toBe("");
  const report = JSON.parse(out) as GateReport;
  console.log(JSON.stringify({ verdict: report.verdict, reasons: report.reasons, timings: report.timings }));
  return { code, report, err, markdown: readFileSync(join(folder, "gate.md"), "utf8") };
}

/** Without the paths of this machine. */
function placeless(report: GateReport): GateReport {
  return JSON.parse(JSON.stringify(report).replaceAll(process.execPath, "node").replaceAll(folder, "")) as GateReport;
}

const codesOf = ({ code, report: { verdict, reasons } }: Ran) => [code, verdict, ...reasons.map((reason) => reason.code)];

test("two variables are refused before anything is run (T10)", async () => {
  const ran = await gate({ experiment: { session: { retry_policy: "TASK", task_concurrency: "4" } } });
  expect(codesOf(ran)).toEqual([3, "invalid", "not_one_variable"]);
});

test("a query of one task is invalid: one worker has all there is, and nobody is killed (T8, T12)", async () => {
  // No table and no exchange: the plan is one fragment of one task, whatever the policy.
  const numbers = "UNNEST(sequence(1, 10000))";
  const sql = `SELECT count(*) FROM ${numbers} AS a(x) CROSS JOIN ${numbers} AS b(y) CROSS JOIN ${numbers} AS c(z) WHERE (x * y + z) % 7 = 8`;
  const ran = await gate({ statements: [{ sql, expect: { rows: [[0]] } }], windows: { open: "15s" } });
  expect(codesOf(ran)).toEqual([3, "invalid", "one_worker_has_all"]);
  expect(ran.report.record.experiment?.kill).toBeNull();
});

test("a worker is killed in the middle: the query survives with its rows, the control fails by the loss, and the worker runs a task again (T11–T14, I25)", async () => {
  const under = circumstances(new Date());
  const ran = await gate({ ownRows: rows });
  if (process.env["RELEVO_KEEP_EVIDENCE"] !== undefined)
    keepEvidence("gate", under, { command: "relevo gate run", report: placeless(ran.report) });
  expect(ran.report.verdict, ran.markdown).toBe("pass");
  expect(ran.code).toBe(0);
  const { experiment, control } = ran.report.record;
  rows = Number(/stop => (\d+)/.exec(experiment?.conditions.statements[0] ?? "")?.[1]);
  for (const run of [experiment, control]) {
    expect(run?.nodes.announced.map(({ nodeId }) => nodeId).toSorted()).toEqual(["w1", "w2"]);
    expect(new Set(run?.looks.at(-1)?.running.map(({ nodeId }) => nodeId))).toEqual(new Set(["w1", "w2"]));
    expect(run?.back?.task?.nodeId).toBe(run?.kill?.worker.nodeId);
  }
  expect(experiment?.statements.map(({ retryPolicy, outcome }) => [retryPolicy, outcome.kind])).toEqual(
    experiment?.statements.map(() => ["TASK", "finished"]),
  );
  expect(new Set(control?.statements.map(({ retryPolicy }) => retryPolicy))).toEqual(new Set(["NONE"]));
  expect([(experiment?.exchange.entries ?? 0) > 0, control?.exchange.entries]).toEqual([true, 0]);
  expect(ran.report.timings.totalMs).toBeLessThan(MOST_MS);
  expect(ran.markdown).toContain("# Gate worker-kill: pass");
});

test("a control that survives does not discriminate (T11)", async () => {
  // The engine runs the control's queries again as a whole.
  const statements = [1, 2].map(() => ({ sql: ownQuery(rows), expect: { rows: ownRowsOf(rows) } }));
  const ran = await gate({ statements, control: { session: { retry_policy: "QUERY" } } });
  expect(codesOf(ran), ran.markdown).toEqual([3, "non-discriminating", "both_survived", "control_tolerant"]);
});

test("a query whose splits are bound to the killed worker's host stands still: the gate ends at its bound, and fails", async () => {
  const statements = ["partkey", "suppkey"].map((column) => ({
    sql: `SELECT orderkey % 10, count(*), sum(${column}) FROM tpch.sf10.lineitem GROUP BY orderkey % 10`,
    expect: { rows: [] },
  }));
  const ran = await gate({ statements, windows: { end: "45s" } });
  expect([ran.code, ran.report.verdict], ran.markdown).toEqual([1, "fail"]);
  expect(ran.report.reasons.map(({ code }) => code)).toContain("query_hung");
  expect(ran.report.record.control).toBeNull();
});

test("a second worker that is ready and has not announced itself is no worker (T12)", async () => {
  await cluster.workers.find(({ id }) => id === "w2")?.kill("SIGKILL");
  await cluster.untilActive(1);
  const stranger = await cluster.addWorker({ environment: "elsewhere" });
  await expect.poll(async () => (await fetch(`${stranger.base}/v1/info`).catch(() => undefined))?.status, WITHIN).toBe(200);
  await expect
    .poll(async () => ((await (await fetch(`${stranger.base}/v1/info`)).json()) as { readonly starting: boolean }).starting, WITHIN)
    .toBe(false);
  const ran = await gate({ windows: { announce: "10s" }, statements: [{ sql: ownQuery(rows), expect: { rows: ownRowsOf(rows) } }] });
  expect(codesOf(ran)).toEqual([3, "invalid", "not_announced"]);
  expect(ran.report.reasons[0]?.sentence).toContain("1 of 2 declared workers");
  expect(ran.report.record.experiment?.nodes.ready).toEqual(["w1", stranger.id]);
});
