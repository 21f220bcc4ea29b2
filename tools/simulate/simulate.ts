/**
 * `npm run simulate:standard -- --seeds A..B [--workers N] [--log] [--shrink] [--evidence]`: the standard mix of faults. Exits 1 on a violation, when a pool does not converge, and
 * when a kind of fault was never injected (with fewer than 100 seeds that is said and not judged). `--log` prints each seed's events;
 * `--shrink` makes the schedule of each seed that fails as small as it can within minutes, and keeps it in test/scenarios/regressions.
 *
 * The seeds run in N processes, as many as there are cores when nothing is said; the result is the same whatever N is. How far it is goes to stderr.
 */
import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import { STANDARD_KINDS } from "../../src/sim/faults.ts";
import { replayCommand } from "../../src/sim/run-seed.ts";
import { circumstances, keepEvidence } from "../evidence/keep.ts";
import { readOptions } from "../options.ts";
import { runSeeds } from "./seed-workers.ts";
import { shrinkSeed } from "./shrink-seed.ts";
import { exitCodeOf, neverInjected } from "./verdict.ts";

/** How often it is said how far it is. */
const PROGRESS_MS = 10_000;

const USAGE = `npm run simulate:standard -- [options]: the production controller under a virtual clock and seeded faults

  --seeds A..B    or a single one (default: 1..100)
  --workers N     processes that share them (default: one for each core); the result is the same whatever N is
  --log           prints each seed's events, virtual seconds first
  --shrink        makes the schedule of each seed that fails as small as it can, and keeps it in test/scenarios/regressions
  --evidence      keep the result, with the commit, in docs/evidence/seeds.json

The last line is one JSON document. Exit codes: 0 all came through; 1 a violation, no convergence, or (from 100 seeds on) a kind of fault
that never happened; 2 the command line is wrong. npx relevo simulate runs pools of your own.`;

const values = readOptions(USAGE, {
  seeds: { type: "string", default: "1..100" },
  workers: { type: "string", default: String(availableParallelism()) },
  log: { type: "boolean", default: false },
  shrink: { type: "boolean", default: false },
  evidence: { type: "boolean", default: false },
});
const range = /^(\d{1,15})(?:\.\.(\d{1,15}))?$/.exec(values.seeds);
const from = Number(range?.[1]);
const to = Number(range?.[2] ?? range?.[1]);
// A range without a seed would find nothing wrong, and say so.
if (range === null || to < from) {
  console.error(`--seeds: found ${values.seeds}; allowed: A or A..B, whole numbers, A at most B`);
  process.exit(2);
}
if (!/^[1-9]\d?$/.test(values.workers)) {
  console.error(`--workers: found ${values.workers}; allowed: a whole number from 1 to 99`);
  process.exit(2);
}
const counts = new Map<string, number>();
const failed: number[] = [];
/** Of the event log of a single seed, or of all hashes. */
let hash = "";
let virtualMs = 0;
let slowestMs = 0;
const startedAt = performance.now();

let toldAt = startedAt;
const under = values.evidence ? circumstances(new Date()) : undefined;

for await (const result of runSeeds({ from, to, workers: Number(values.workers), log: values.log })) {
  const { seed } = result;
  hash = hash === "" ? result.hash : createHash("sha256").update(hash).update(result.hash).digest("hex");
  virtualMs += result.virtualMs;
  slowestMs = Math.max(slowestMs, result.convergedMs ?? 0);
  for (const [kind, count] of result.faultCounts) counts.set(kind, (counts.get(kind) ?? 0) + count);
  if (values.log) process.stdout.write(`${result.log.join("\n")}\n`);
  if (performance.now() - toldAt > PROGRESS_MS) {
    toldAt = performance.now();
    console.error(`${seed - from + 1} of ${to - from + 1} seeds, ${failed.length} failed, ${Math.round((toldAt - startedAt) / 1000)} s`);
  }
  if (result.violations.length === 0) continue;
  failed.push(seed);
  for (const { id, atMs, sentence } of result.violations) console.log(`seed ${seed}: ${id} at ${(atMs / 1000).toFixed(3)} s: ${sentence}`);
  console.log(`replay: ${replayCommand(seed)}`);
  if (!values.shrink) continue;
  const shrunk = await shrinkSeed(seed);
  if (shrunk === undefined) console.log("shrunk: no: with less time to converge it breaks nothing");
  else console.log(`shrunk: ${shrunk.faults} faults after ${shrunk.runs} runs: ${shrunk.file}`);
}

const seconds = (performance.now() - startedAt) / 1000;
const never = neverInjected(STANDARD_KINDS, counts);
const seeds = to - from + 1;
const outcome = {
  seeds: `${from}..${to}`,
  hash,
  failed,
  faults: Object.fromEntries([...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  neverInjected: never,
  slowestConvergenceMs: slowestMs,
  seedsPerSecond: Number((seeds / seconds).toFixed(2)),
  timesRealTime: Math.round(virtualMs / 1000 / seconds),
};
if (under !== undefined) console.error(`kept in ${keepEvidence("seeds", under, { seconds: Math.round(seconds), ...outcome })}`);
console.log(JSON.stringify(outcome));
process.exitCode = exitCodeOf({ seeds, failed, never });
