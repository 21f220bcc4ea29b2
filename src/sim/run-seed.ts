/**
 * One seed, from a cluster without a pool to a pool that came through: a phase with faults in which nothing may ever be violated, then healing, then the
 * liveness phase, in which the pool must become what it should be within a bound (I15, I16).
 */
import { planFaults, type FaultKind, type PlannedFault } from "./faults.ts";
import { installGuards } from "./guards.ts";
import { Injector } from "./inject.ts";
import type { Checker } from "./invariants/checker.ts";
import { allCheckers } from "./invariants/index.ts";
import type { LossCounts } from "../store/port.ts";
import type { Client } from "./client.ts";
import { converges } from "./liveness.ts";
import { chance, seededRandom } from "./seeded.ts";
import type { SimEvent } from "./events.ts";
import type { Schedule } from "./shrink.ts";
import { World, type WorldOptions } from "./world.ts";

export interface SeedOptions extends Pick<WorldOptions, "compose" | "tamper" | "scenario"> {
  /** Hears what the checkers hear, before them; `atMs` from the beginning. */
  readonly told?: (event: SimEvent, atMs: number) => void;
  /** Only these kinds of faults; all when absent. */
  readonly kinds?: readonly FaultKind[];
  /** Exactly these faults instead of drawn ones. */
  readonly faults?: readonly PlannedFault[];
  /** How long faults are injected, virtual ms. */
  readonly faultsForMs?: number;
  /** The bound of the liveness phase, virtual ms. */
  readonly convergeWithinMs?: number;
  /** The modes of all pools are Act again when the faults stop, also in a given scenario. */
  readonly turnsOn?: boolean;
  /** What is violated later does not matter. */
  readonly stopsAtViolation?: boolean;
}

export interface Violation {
  readonly id: string;
  readonly atMs: number;
  readonly sentence: string;
}

export interface SeedResult {
  readonly seed: number;
  /** Of the event log: the same for the same seed, in any process. */
  readonly hash: string;
  readonly log: readonly string[];
  readonly violations: readonly Violation[];
  /** How often each kind of fault really happened. */
  readonly faultCounts: ReadonlyMap<string, number>;
  readonly virtualMs: number;
  /** From the end of the faults until all was as it should be; null when it never was. */
  readonly convergedMs: number | null;
  readonly pools: readonly PoolOutcome[];
}

export interface PoolOutcome {
  readonly pool: string;
  /** Of its client. */
  readonly requests: Client["counts"];
  readonly losses: readonly LossCounts[];
}

const FAULTS_FOR_MS = 40_000;
/** One run of eight: long enough for what is given up only after minutes. */
const FAULTS_FOR_LONG_MS = 160_000;
const LONG_SHARE = 0.125;
/** Until the pool serves for the first time. */
const SETTLE_WITHIN_MS = 120_000;
/** After the last fault healed: longer than any back-off, cool-down and candidate window of the run. */
const CONVERGE_WITHIN_MS = 15 * 60_000;
/** It must stay as it should be for this long. */
const STAY_MS = 10_000;
const LOOK_EVERY_MS = 500;
/** More say nothing new. */
const MAX_VIOLATIONS = 20;

export async function runSeed(seed: number, options: SeedOptions): Promise<SeedResult> {
  const lift = installGuards();
  try {
    return await run(seed, options);
  } finally {
    lift();
  }
}

/** What goes wrong in a run of this seed, and for how long. */
export function faultsOf(seed: number, options: Pick<SeedOptions, "faults" | "kinds" | "faultsForMs">): Omit<Schedule, "seed"> {
  const faultsForMs = options.faultsForMs ?? faultsForMsOf(seed);
  return { faults: options.faults ?? planFaults(seededRandom(seed, "faults"), faultsForMs, options.kinds), faultsForMs };
}

function faultsForMsOf(seed: number): number {
  return chance(seededRandom(seed, "length"), LONG_SHARE) ? FAULTS_FOR_LONG_MS : FAULTS_FOR_MS;
}

/** The command that shows one seed again. */
export function replayCommand(seed: number): string {
  return `npm run simulate:standard -- --seeds ${seed} --log`;
}

async function run(seed: number, options: SeedOptions): Promise<SeedResult> {
  const violations: Violation[] = [];
  const { world, violate } = await createCheckedWorld(seed, options, violations);
  await world.start();
  const started = await converges(world, SETTLE_WITHIN_MS);
  if (started.missing.length > 0) violate("I16", `before any fault: ${started.missing.join("; ")}`);
  const isOver = (): boolean => options.stopsAtViolation === true && violations.length > 0;
  const convergedMs = started.missing.length > 0 ? null : await throughFaults(world, options, violate, isOver);
  const result = {
    seed,
    hash: world.log.hash(),
    log: world.log.lines,
    violations,
    faultCounts: world.faultCounts,
    virtualMs: world.clock.monotonic(),
    convergedMs,
    pools: await outcomesOf(world),
  };
  await world.close();
  return result;
}

async function outcomesOf(world: World): Promise<readonly PoolOutcome[]> {
  const outcomes: PoolOutcome[] = [];
  for (const [index, { key }] of world.scenario.pools.entries()) {
    const requests = world.clients[index]?.counts;
    if (requests !== undefined) outcomes.push({ pool: key, requests: { ...requests }, losses: await world.store.countLosses(key) });
  }
  return outcomes;
}

/** A world in which all invariants are watched; what is violated goes into the list. */
export async function createCheckedWorld(
  seed: number,
  options: Omit<WorldOptions, "seed" | "observe"> & Pick<SeedOptions, "told">,
  violations: Violation[],
): Promise<{ readonly world: World; readonly violate: (id: string, sentence: string) => void }> {
  const violate = (id: string, sentence: string): void => {
    const atMs = world.clock.monotonic();
    world.log.add(`VIOLATION ${id} ${sentence.split("\n", 1)[0]}`);
    if (violations.length < MAX_VIOLATIONS) violations.push({ id, atMs, sentence });
  };
  const hearing = new Map<SimEvent["type"], { readonly checker: Checker; readonly violate: (sentence: string) => void }[]>();
  for (const checker of allCheckers()) {
    const heard = { checker, violate: (sentence: string) => violate(checker.id, sentence) };
    for (const type of new Set(checker.watches)) hearing.set(type, [...(hearing.get(type) ?? []), heard]);
  }
  const world = await World.create({
    ...options,
    seed,
    observe: (event, mirror, truth) => {
      options.told?.(event, world.clock.monotonic());
      for (const { checker, violate: report } of hearing.get(event.type) ?? []) checker.on(event, { mirror, truth, violate: report });
    },
  });
  return { world, violate };
}

async function throughFaults(
  world: World,
  options: SeedOptions,
  violate: (id: string, sentence: string) => void,
  isOver: () => boolean,
): Promise<number | null> {
  const { clock, seed, log } = world;
  const { faults, faultsForMs } = faultsOf(seed, options);
  const injector = new Injector(world);
  for (const client of world.clients) client.start();
  world.jobs?.start();
  for (const { atMs, fault } of faults) {
    clock.after(atMs, () => injector.inject(fault));
  }
  for (let leftMs = faultsForMs + 5_000; leftMs > 0 && !isOver(); leftMs -= LOOK_EVERY_MS)
    await clock.advance(Math.min(LOOK_EVERY_MS, leftMs));
  if (isOver()) return null;
  log.add("the faults stop");
  const healedAt = clock.monotonic();
  injector.heal();
  world.jobs?.end();
  if (options.scenario === undefined || options.turnsOn === true) await injector.turnOn();
  await clock.advance(Math.max(0, injector.quietAt - clock.now()));
  const withinMs = options.convergeWithinMs ?? CONVERGE_WITHIN_MS;
  let afterMs = 0;
  let later: readonly string[] = [];
  // What went wrong at the very end may be noticed only after all had looked well once.
  for (let look = 0; look < 2; look++) {
    const { missing, unsaid } = await converges(world, withinMs, injector);
    for (const sentence of unsaid) violate("D11", sentence);
    afterMs = clock.monotonic() - healedAt;
    if (missing.length > 0) {
      violate("I16", `after ${withinMs / 60_000} minutes without a fault: ${missing.join("; ")}`);
      return null;
    }
    await clock.advance(STAY_MS);
    later = await world.whatIsMissing();
    if (later.length === 0) break;
  }
  for (const client of world.clients) client.stop();
  if (later.length > 0) violate("I16", `it did not stay as it should be: ${later.join("; ")}`);
  log.add(`converged after ${afterMs} ms; client ${JSON.stringify(world.clients.map(({ counts }) => counts))}`);
  return afterMs;
}
