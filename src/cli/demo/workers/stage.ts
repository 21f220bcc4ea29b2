/** What the acts of the workers' demo have in common: the pool, its jobs, and how both are looked at. */
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import type { Random } from "../../../kernel/random.ts";
import type { NewJob, QueueCounts } from "../../../sdk/queue-client.ts";
import type { Narrator } from "../narrator.ts";
import { POOL_MARK, usageOf } from "./process-trees.ts";
import type { WorkersSite, WorkersVariant } from "./site.ts";
import { WorkersWatch } from "./watch.ts";

export const FLOOR = 2;
export const MAX = 6;
export const SLOTS = 2;
/** Work that one instance is to have. */
export const TARGET = 4;
export const STUCK_AFTER_MS = 2_000;
/** A child that does nothing for so long is ended with all that it started. */
export const NO_PROGRESS_MS = 8_000;
export const STUCK_SHARE = 0.2;
export const POLL_MS = 200;

/** Room for the worker and two children that work, and for two that grow until they are ended; without an end they reach it. */
const RESOURCES = { requests: { cpu: "500m", memory: "128Mi" }, limits: { memory: "384Mi" } };
const REST_SAMPLES = 5;
const REST_EVERY_MS = 400;

export interface Stage {
  readonly site: WorkersSite;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  readonly narrator: Narrator;
}

/** `isBounded` false: as without Relevo, nobody ends a child that does nothing. */
export function variantOf({ site }: Stage, name: string, isBounded: boolean): WorkersVariant {
  return {
    name,
    queue: queueOf(name),
    env: {
      QUEUE_URL: site.queueUrl,
      QUEUE_TOKEN: site.token,
      QUEUE: queueOf(name),
      SLOTS: String(SLOTS),
      NO_PROGRESS: isBounded ? String(NO_PROGRESS_MS) : "off",
      // A job that hung once would hang again.
      ON_REAPED: "dead",
      RECORD: recordFileOf(site, name),
      [POOL_MARK]: name,
    },
    resources: RESOURCES,
  };
}

export function queueOf(name: string): string {
  return `${name}-jobs`;
}

export function recordFileOf({ dir }: WorkersSite, name: string): string {
  return join(dir, `${name}.jobs.jsonl`);
}

/** The pool's own words; the pace is the demo's: nobody waits for three minutes before it scales in. */
export function poolSpec(name: string): Readonly<Record<string, unknown>> {
  return {
    size: { desired: FLOOR, floor: FLOOR, max: MAX },
    worker: { flow: `queue/${queueOf(name)}`, stuckAfter: `${STUCK_AFTER_MS}ms` },
    disruption: { mode: "Act", draining: MAX },
    deletion: "drain",
    scale: {
      signal: { kind: "queue", connection: "main", queue: queueOf(name) },
      target: TARGET,
      up: { window: "0s", step: { instances: MAX, per: "5s" } },
      down: { window: "4s", step: { instances: MAX, percent: 100, per: "5s" } },
      cooldown: "4s",
      stuck: { share: STUCK_SHARE, holdFor: "10m" },
    },
  };
}

export async function watchWorkers({ site, clock, random }: Stage, name: string): Promise<WorkersWatch> {
  const watch = new WorkersWatch({ kube: site.kube, clock, random, selector: `app=${name}`, stuckAfterMs: STUCK_AFTER_MS });
  site.undo.push(() => watch.stop());
  await watch.start();
  return watch;
}

const FRAME_MS = 75;
const FRAMES = 20;
const LONG_FRAMES = 200;
/** MB a second of a page that never shows its video. */
const GROWTH_MB = 5;

export function goodJobs(prefix: string, count: number): readonly NewJob[] {
  return jobs(prefix, count, { frames: FRAMES, frameMs: FRAME_MS });
}

export function longJobs(prefix: string, count: number): readonly NewJob[] {
  return jobs(prefix, count, { frames: LONG_FRAMES, frameMs: FRAME_MS });
}

export function hangingJobs(prefix: string, count: number): readonly NewJob[] {
  return jobs(prefix, count, { frames: FRAMES, frameMs: FRAME_MS, hang: true, growMb: GROWTH_MB });
}

function jobs(prefix: string, count: number, payload: object): readonly NewJob[] {
  return Array.from({ length: count }, (_, index) => ({ id: `${prefix}-${index + 1}`, payload }));
}

/** First as many that hang as there are slots; then these, every third of the first ones hanging. */
export const FIRST_HANGING = FLOOR * SLOTS;
/** Where much else runs the first of them may be ended before the last one has begun to hang. */
export const SEEN_HANGING = FIRST_HANGING - 1;
export const MIXED = { good: 100, hanging: 8 } as const;

export function mixedJobs(prefix: string): readonly NewJob[] {
  const good = goodJobs(`${prefix}-good`, MIXED.good);
  const hanging = hangingJobs(`${prefix}-hanging`, MIXED.hanging);
  return hanging.flatMap((each, index) => [each, ...good.slice(2 * index, 2 * index + 2)]).concat(good.slice(2 * MIXED.hanging));
}

export function isDrained({ waiting, taken }: QueueCounts): boolean {
  return waiting + taken === 0;
}

/** Polls until it holds; false when it did not within the time: what did not happen is a result of the demo, no error. */
export async function happens({ clock, signal }: Stage, limitMs: number, holds: () => Promise<boolean> | boolean): Promise<boolean> {
  for (const end = clock.monotonic() + limitMs; clock.monotonic() < end; await clock.sleep(POLL_MS, signal)) if (await holds()) return true;
  return false;
}

/** Of the pool's process trees while nothing happens: the median of a few looks. */
export async function restingMb({ clock, signal }: Stage, name: string): Promise<number> {
  const looks: number[] = [];
  while (looks.length < REST_SAMPLES) {
    await clock.sleep(REST_EVERY_MS, signal);
    looks.push(usageOf(name).rssMb);
  }
  return Math.round(looks.toSorted((a, b) => a - b)[Math.floor(REST_SAMPLES / 2)] ?? 0);
}
