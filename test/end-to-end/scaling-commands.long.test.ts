/**
 * `relevo check`, `verify scaling`, `loadtest` and `promote` against a whole Relevo with the example's workers (K7–K10): real processes, as a user calls them.
 * Kept as docs/evidence/loadtest.json with RELEVO_KEEP_EVIDENCE.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Narrator } from "../../src/cli/demo/narrator.ts";
import { poolDocument, startSite, type WorkersSite } from "../../src/cli/demo/workers/site.ts";
import { poolSpec, queueOf, type Stage, variantOf } from "../../src/cli/demo/workers/stage.ts";
import { palette } from "../../src/cli/output.ts";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { circumstances, keepEvidence } from "../../tools/evidence/keep.ts";

const ROOT = join(import.meta.dirname, "../..");
const POOL = "capture";
const GOOD = JSON.stringify({ frames: 20, frameMs: 75 });
const HANGS = JSON.stringify({ frames: 20, frameMs: 75, hang: true });

let site: WorkersSite;
let cwd: string;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), "relevo-scaling-"));
  const { signal } = new AbortController();
  const common = { clock: systemClock, random: systemRandom, signal };
  const narrator = new Narrator({
    write: () => undefined,
    columns: () => undefined,
    palette: palette({ isTerminal: false, env: {} }),
    clock: systemClock,
  });
  site = await startSite({ ...common, cwd, deadlineMs: 120_000, ids: systemIds, narrator, logLevel: "info" });
  const stage: Stage = { ...common, site, narrator };
  await site.queue.put(queueOf(POOL), { maxAttempts: 3 });
  await site.kube.create(POOLS, poolDocument(variantOf(stage, POOL, true), poolSpec(POOL)), { namespace: "default" });
  await site.world.until("2 workers", 60_000, async () => (await site.world.serving(`default/${POOL}`)) >= 2);
});
afterAll(async () => {
  await site?.stop();
  rmSync(cwd, { recursive: true, force: true });
});

interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** In the directory where the site's run file is. `onErr` may interrupt it. */
function relevo(args: readonly string[], onErr: (text: string, interrupt: () => void) => void = () => undefined): Promise<Run> {
  const child = spawn(process.execPath, [join(ROOT, "bin/relevo.mjs"), ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk) => (out += String(chunk)));
  child.stderr.on("data", (chunk) => {
    err += String(chunk);
    onErr(err, () => child.kill("SIGINT"));
  });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out, err })));
}

const fed = () => ["--connections", site.connections, "--payload", GOOD];
const counts = () => site.queue.counts(queueOf(POOL));
const atRest = () =>
  site.world.until("a pool at its floor", 120_000, async () => {
    const { waiting, taken } = await counts();
    return waiting + taken === 0 && (await site.world.instances(`default/${POOL}`)).filter(({ phase }) => phase !== "deleted").length === 2;
  });

test("the preflight of a pool that may be left to Relevo has nothing against it", async () => {
  const { code, out } = await relevo(["check", POOL]);
  expect([code, out.split("\n").at(-2)]).toEqual([0, "nothing stands in the way"]);
});

test("a scaler that works is accepted by its effect, and what was put in is done (K9)", async () => {
  const { code, out } = await relevo(["verify", "scaling", POOL, ...fed(), "--control", "3s", "--within", "90s", "-o", "json"]);
  const report = JSON.parse(out) as { readonly verdict: string; readonly claims: readonly { readonly held: boolean }[] };
  expect([code, report.verdict, report.claims.filter(({ held }) => !held)]).toEqual([0, "accepted", []]);
  await atRest();
});

test("Ctrl-C in the middle leaves nothing behind in the queue (K9)", async () => {
  const before = await counts();
  let isInterrupted = false;
  const { code } = await relevo(["verify", "scaling", POOL, ...fed(), "--control", "1s", "--jobs", "400"], (text, interrupt) => {
    if (isInterrupted || !text.includes("were put in")) return;
    isInterrupted = true;
    interrupt();
  });
  const { waiting, taken, dead } = await counts();
  expect([code, isInterrupted, waiting + taken, dead]).toEqual([1, true, 0, before.dead]);
  await atRest();
});

test("a load test proves a capacity with a share of stuck jobs, and explain shows it beside what is configured (K7)", async () => {
  const under = circumstances(new Date());
  const report = join(cwd, "loadtest.json");
  const share = ["--jobs", "100", "--stuck-share", "0.1", "--stuck-payload", HANGS, "--for", "4m", "--report", report];
  const { code, err } = await relevo(["loadtest", POOL, ...fed(), ...share]);
  const told = JSON.parse(readFileSync(report, "utf8")) as Readonly<Record<string, unknown>>;
  console.log(JSON.stringify(told));
  expect([code, told["verdict"], told["why"], err.includes("refused")]).toEqual([0, "proven", [], false]);
  expect(told["instances"]).toBeGreaterThan(2);
  if (process.env["RELEVO_KEEP_EVIDENCE"] !== undefined) keepEvidence("loadtest", under, { command: "relevo loadtest", report: told });
  const { out } = await relevo(["get", "pool", POOL, "-o", "json"]);
  expect(out).toContain('"proof": "within_proven"');
  await atRest();
});

test("what goes ahead of its gate is shown by doctor until it is done (K10)", async () => {
  const args = ["promote", POOL, "--before", "verify scaling", "--why", "an incident", "--follow-up", "run it", "-o", "json"];
  const { code, out } = await relevo(args);
  const { id } = JSON.parse(out) as { readonly id: string };
  expect(code).toBe(4);
  expect((await relevo(["doctor"])).out).toContain("went ahead of verify scaling");
  expect((await relevo(["promote", "--done", id])).code).toBe(0);
  expect((await relevo(["doctor"])).out).not.toContain("went ahead of verify scaling");
});
