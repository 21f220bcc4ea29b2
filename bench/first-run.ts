/**
 * First run: a clean clone, installed; then how long `npm start` takes until a request through the gateway is served. Every cache of compiled code is
 * cold. Prints one JSON document. Target: at most 5 s.
 *
 * What is timed is what a user types, npm itself included. A request is asked again every few milliseconds from the moment that the gateway's address is
 * known, so that the first one that can be served is.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type RunFile, readRunFile } from "../src/cli/run-file.ts";
import { systemClock } from "../src/kernel/system.ts";
import { loadAverage, say } from "./fleet/machine.ts";

const NAME = "first-run";
const RUNS = 3;
const TARGET_MS = 5_000;
const LIMIT_MS = 60_000;
const ASK_EVERY_MS = 10;
const ROOT = join(import.meta.dirname, "..");

interface Run {
  /** From `npm start`, ms. */
  readonly runFileMs: number;
  readonly firstServedMs: number;
  readonly loadAverage: number;
}

const folder = mkdtempSync(join(tmpdir(), "relevo-bench-first-run-"));
try {
  const clone = join(folder, "clone");
  must("git", ["clone", "--quiet", ROOT, clone], folder);
  const installStart = systemClock.monotonic();
  must("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], clone);
  const installMs = Math.round(systemClock.monotonic() - installStart);
  const runs: Run[] = [];
  for (let number = 0; number < RUNS; number++) {
    runs.push(await startOnce(clone, number));
    say(NAME, `run ${number + 1} of ${RUNS}`);
  }
  const firstServedMs = runs[0]?.firstServedMs ?? 0;
  const result = {
    bench: NAME,
    firstServedMs,
    target: { firstServedMs: TARGET_MS },
    ratio: Math.round((firstServedMs / TARGET_MS) * 100) / 100,
    held: { firstServedMs: firstServedMs <= TARGET_MS },
    // The first of them is the one that counts; the others show how much it varies.
    runs,
    installMs,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function startOnce(clone: string, number: number): Promise<Run> {
  // Node keeps compiled code in the temporary folder: a fresh one for each run.
  const temporary = join(folder, `tmp-${number}`);
  mkdirSync(temporary);
  rmSync(join(clone, ".relevo"), { recursive: true, force: true });
  const load = loadAverage();
  const start = systemClock.monotonic();
  const since = () => Math.round(systemClock.monotonic() - start);
  const child = spawn("npm", ["start"], {
    cwd: clone,
    detached: true,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...userEnvironment(), TMPDIR: temporary },
  });
  try {
    const { gatewayUrl } = await untilThere(() => readRunFile(clone), since);
    const runFileMs = since();
    await untilThere(async () => ((await isServed(gatewayUrl)) ? true : undefined), since);
    return { runFileMs, firstServedMs: since(), loadAverage: load };
  } finally {
    await end(child);
  }
}

/** As a user's shell has it: nothing of the npm that started this bench, nor the Node that it brought. */
function userEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) && name !== "NODE_COMPILE_CACHE");
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.startsWith(join(ROOT, "node_modules")));
  return { ...Object.fromEntries(kept), PATH: path.join(delimiter) };
}

async function untilThere<T>(look: () => T | undefined | Promise<T | undefined>, since: () => number): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (since() > LIMIT_MS) throw new Error(`nothing was served within ${LIMIT_MS} ms`);
    await systemClock.sleep(ASK_EVERY_MS);
  }
}

function isServed(gatewayUrl: RunFile["gatewayUrl"]): Promise<boolean> {
  return new Promise((resolve) => {
    const body = JSON.stringify({ id: "first" });
    const headers = {
      host: "orders",
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "idempotency-key": "first",
    };
    const sent = request(new URL("/orders", gatewayUrl), { method: "POST", headers }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode === 201));
      response.once("error", () => resolve(false));
    });
    sent.once("error", () => resolve(false));
    sent.end(body);
  });
}

/** npm passes the signal on; what does not end in time is ended with its group. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const group = -child.pid;
  const gone = once(child, "exit");
  process.kill(group, "SIGINT");
  const timer = systemClock.after(20_000, () => process.kill(group, "SIGKILL"));
  await gone;
  timer.cancel();
}

function must(command: string, args: readonly string[], cwd: string): void {
  const run = spawnSync(command, args, { cwd, stdio: ["ignore", 2, 2], env: userEnvironment() });
  if (run.status !== 0) throw new Error(`${command} ${args.join(" ")} failed (${run.status ?? run.signal})`, { cause: run.error });
}
