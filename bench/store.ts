/**
 * The store on disk with an fsync at every commit: epoch-checked step transitions per second, what a commit waits, and what is lost when the process is killed
 * twenty times while it writes. Prints one JSON document. Target: at least 2,000 transitions/s, 0 acknowledged lost.
 *
 * A commit holds one transition, as in the executor: a step is recorded before its effect and ended after it. `floor` is what this disk gives bare
 * appends of about that size with an fsync each: one lane alone cannot be much faster, many share an fsync.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "../src/kernel/system.ts";
import { integerBetween } from "../src/kernel/random.ts";
import type { Authority, Store } from "../src/store/port.ts";
import { openStore } from "../src/store/store.ts";
import { judge, WriterProcess } from "../test/contracts/store-writer-process.ts";

const TRANSITIONS = 10_000;
const KILLS = 20;
const TARGET_PER_S = 2_000;
/** Callers at once: a controller works on several pools and steps at a time. */
const LANES = [1, 8, 32];
const HEADLINE_LANES = 8;

interface Rate {
  readonly lanes: number;
  readonly transitionsPerS: number;
  readonly commitP50Ms: number;
  readonly commitP99Ms: number;
}

const folder = mkdtempSync(join(tmpdir(), "relevo-bench-store-"));
try {
  const floor = measureFloor();
  await measure(8, 2_000); // warm-up
  const rates: Rate[] = [];
  for (const lanes of LANES) rates.push(await measure(lanes, TRANSITIONS));
  const kills = await killRepeatedly();
  const transitionsPerS = rates.find((rate) => rate.lanes === HEADLINE_LANES)?.transitionsPerS ?? 0;
  const result = {
    bench: "store",
    synchronous: "FULL",
    transitionsPerS,
    acknowledgedLost: kills.acknowledgedLost,
    target: { transitionsPerS: TARGET_PER_S, acknowledgedLost: 0 },
    ratio: rounded(transitionsPerS / TARGET_PER_S),
    rates,
    floor,
    kills,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (kills.acknowledgedLost + kills.halfWritten > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function measure(lanes: number, transitions: number): Promise<Rate> {
  const store = await openStore({ path: join(folder, `rate-${lanes}-${transitions}.db`) });
  const authority = await store.claim("bench/rate", "bench", systemClock.now());
  const waitsMs: number[] = [];
  const start = systemClock.monotonic();
  await Promise.all(Array.from({ length: lanes }, (_, lane) => runLane(store, authority, lane, transitions / lanes / 2, waitsMs)));
  const seconds = (systemClock.monotonic() - start) / 1000;
  await store.close();
  waitsMs.sort((a, b) => a - b);
  return {
    lanes,
    transitionsPerS: Math.round(waitsMs.length / seconds),
    commitP50Ms: quantile(waitsMs, 0.5),
    commitP99Ms: quantile(waitsMs, 0.99),
  };
}

async function runLane(store: Store, authority: Authority, lane: number, steps: number, waitsMs: number[]): Promise<void> {
  const { pool } = authority;
  const timed = async (...changes: Parameters<Store["commit"]>[1]): Promise<void> => {
    const start = systemClock.monotonic();
    await store.commit(authority, changes, systemClock.now());
    waitsMs.push(systemClock.monotonic() - start);
  };
  for (let number = 0; number < steps; number++) {
    const id = `step-${lane}-${number}`;
    const payload = { node: `node-${number}`, uid: "3f0c5d0e-7b1f-4b0e-9c59-0d8d6f5b8d11", evidence: "ev-0123456789" };
    const reason = { code: "replace_condemned", params: { instance: "orders-1", evidence: "node_drifted" } } as const;
    await timed({
      kind: "record_step",
      step: { id, operation: `op-${lane}`, pool, instance: null, kind: "cordon_node/1", payload, reason },
    });
    await timed({ kind: "end_step", step: id, state: "done", outcome: "cordoned" });
  }
}

async function killRepeatedly(): Promise<{ kills: number; acknowledged: number; acknowledgedLost: number; halfWritten: number }> {
  const path = join(folder, "kills.db");
  const total = { kills: KILLS, acknowledged: 0, acknowledgedLost: 0, halfWritten: 0 };
  for (let kill = 0; kill < KILLS; kill++) {
    const writer = new WriterProcess(path, `bench/kill${kill}`, 8);
    await writer.until(integerBetween(systemRandom, 50, 2_500));
    await writer.kill();
    const store = await openStore({ path });
    const { lost, halfWritten } = await judge(store, `bench/kill${kill}`, writer.acknowledged);
    await store.close();
    total.acknowledged += writer.acknowledged.length;
    total.acknowledgedLost += lost.length;
    total.halfWritten += halfWritten.length;
  }
  return total;
}

function measureFloor(): { appendsPerS: number } {
  const file = openSync(join(folder, "floor"), "w");
  const block = Buffer.alloc(4 * 4096);
  const start = systemClock.monotonic();
  for (let number = 0; number < 500; number++) {
    writeSync(file, block);
    fdatasyncSync(file);
  }
  const seconds = (systemClock.monotonic() - start) / 1000;
  closeSync(file);
  return { appendsPerS: Math.round(500 / seconds) };
}

function quantile(sorted: readonly number[], share: number): number {
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
