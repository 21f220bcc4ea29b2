/**
 * Announced failover: nodes drift under 300 requests a second, and each time an instance is replaced. What the requests pay that are in flight at a
 * switch, or start within a second of it, against an undisturbed stretch in which decoy processes start at the same rhythm (a start takes the same
 * cores, whoever asks for it). Blocks of both alternate. Prints one JSON document. Targets: 0 lost, added p99 at most 45 ms.
 *
 * A switch is each commit that moves traffic: a candidate admitted, found serving, or its predecessor draining.
 */
import type { RequestTrace } from "../src/cli/demo/load/client.ts";
import { SHORT_KINDS } from "../src/cli/demo/load/outcome.ts";
import type { ActResult } from "../src/cli/demo/load/tally.ts";
import { systemClock } from "../src/kernel/system.ts";
import { startDecoys } from "./fleet/decoys.ts";
import { loadAverage, say } from "./fleet/machine.ts";
import { MIX, POOL, type Rig, startRig, WHOLE_WITHIN_MS } from "./fleet/rig.ts";
import { added, latencyOf, within } from "./fleet/windows.ts";

const NAME = "announced-failover";
const BLOCKS = 4;
const REPLACEMENTS_PER_BLOCK = 5;
const AROUND_MS = 1_000;
const TARGET = { lost: 0, p99AddedMs: 45 };
const SWITCHES: readonly string[] = ["admitted", "serving", "draining"];
/** What a replacement leaves behind (its old node goes) is over before the next begins. */
const PAUSE_MS = 2_000;

interface Block {
  readonly results: ActResult[];
  readonly traces: RequestTrace[];
  /** When something happened, ms since the epoch. */
  readonly events: number[];
  readonly loads: number[];
  durationMs: number;
}

const disturbed = emptyBlock();
const undisturbed = emptyBlock();
const replacements: { instance: string; ms: number }[] = [];

const rig = await startRig(NAME);
try {
  for (let block = 0; block < BLOCKS; block++) {
    const tookMs = await play(disturbed, `replacements-${block}`, () => replaceSome(rig));
    await play(undisturbed, `decoys-${block}`, () => startSome(tookMs));
    say(NAME, `block ${block + 1} of ${BLOCKS}`);
  }
  report();
} finally {
  await rig.stop();
}

/** Adds one act to the block; settles with how long it took, ms. */
async function play(block: Block, act: string, happen: () => Promise<void>): Promise<number> {
  const start = systemClock.monotonic();
  await rig.load.startAct(act, MIX);
  await happen();
  const tookMs = systemClock.monotonic() - start;
  block.durationMs += tookMs;
  block.loads.push(loadAverage());
  const { result, traces } = await rig.load.endAct(act);
  block.results.push(result);
  block.traces.push(...traces);
  return tookMs;
}

async function replaceSome({ fleet, transitions, whole }: Rig): Promise<void> {
  const seen = transitions.length;
  for (let number = 0; number < REPLACEMENTS_PER_BLOCK; number++) {
    const { node, instance } = await fleet.world.victim(POOL);
    const start = systemClock.monotonic();
    await fleet.world.drift(node.name);
    await fleet.world.until(`the end of ${instance}`, WHOLE_WITHIN_MS, async () =>
      (await fleet.world.instances(POOL)).some(({ id, phase }) => id === instance && phase === "deleted"),
    );
    await whole();
    replacements.push({ instance, ms: Math.round(systemClock.monotonic() - start) });
    await systemClock.sleep(PAUSE_MS);
  }
  disturbed.events.push(...transitions.slice(seen).flatMap(({ at, phase }) => (SWITCHES.includes(phase) ? [at] : [])));
}

async function startSome(stretchMs: number): Promise<void> {
  const { ledgerUrl } = rig.fleet.loadOf("orders");
  const eachMs = stretchMs / REPLACEMENTS_PER_BLOCK;
  for (let number = 0; number < REPLACEMENTS_PER_BLOCK; number++) {
    const start = systemClock.monotonic();
    await startDecoys(ledgerUrl);
    undisturbed.events.push(systemClock.now());
    await systemClock.sleep(Math.max(0, eachMs - (systemClock.monotonic() - start)));
  }
}

function report(): void {
  const windowsOf = ({ events }: Block) => events.map((at) => ({ at, beforeMs: AROUND_MS, afterMs: AROUND_MS }));
  const switched = latencyOf(within(disturbed.traces, windowsOf(disturbed)), SHORT_KINDS);
  const base = latencyOf(undisturbed.traces, SHORT_KINDS);
  const atDecoys = latencyOf(within(undisturbed.traces, windowsOf(undisturbed)), SHORT_KINDS);
  const counts = totals(disturbed.results);
  const p99AddedMs = added(switched.p99Ms, base.p99Ms);
  const held = {
    lost: counts.lost <= TARGET.lost && counts.rejected + counts.cut === 0,
    p99AddedMs: p99AddedMs !== null && p99AddedMs <= TARGET.p99AddedMs,
  };
  const result = {
    bench: NAME,
    replacements: replacements.length,
    requestsPerS: Math.round(counts.sent / (disturbed.durationMs / 1000)),
    ...counts,
    p50AddedMs: added(switched.p50Ms, base.p50Ms),
    p99AddedMs,
    atSwitches: { switches: disturbed.events.length, ...switched },
    undisturbed: { ...base, lost: totals(undisturbed.results).lost },
    // For comparison: against the same windows around the decoys alone, and the replacements' whole time, away from the switches too.
    p99AddedToDecoysMs: added(switched.p99Ms, atDecoys.p99Ms),
    atDecoys,
    wholeStretch: latencyOf(disturbed.traces, SHORT_KINDS),
    replacementMs: replacements.map(({ ms }) => ms),
    loadAverage: { replacements: disturbed.loads, undisturbed: undisturbed.loads },
    problems: disturbed.results.flatMap(({ problems }) => problems).slice(0, 20),
    target: TARGET,
    held,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (!held.lost) process.exitCode = 1;
}

function totals(results: readonly ActResult[]) {
  const sum = (pick: (result: ActResult) => number) => results.reduce((total, result) => total + pick(result), 0);
  return {
    sent: sum(({ sent }) => sent),
    completed: sum(({ completed }) => completed),
    queued: sum(({ queued }) => queued),
    retried: sum(({ retried }) => retried),
    rejected: sum(({ rejected }) => rejected),
    cut: sum(({ cut }) => cut),
    lost: sum(({ lost }) => lost),
  };
}

function emptyBlock(): Block {
  return { results: [], traces: [], events: [], loads: [], durationMs: 0 };
}
