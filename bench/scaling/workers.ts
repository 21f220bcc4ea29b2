/**
 * A queue and its workers, second by second: an instance takes a while to come, has slots, takes a job into each free one and finishes what it has before it goes.
 * What arrives and how long each job takes is drawn before, so that two policies are given the very same load.
 */
import { exponential, poisson } from "./chance.ts";
import type { Random } from "../../src/kernel/random.ts";
import { DURATION_S, type Shape } from "./shapes.ts";

export const SLOTS = 4;
/** Waiting and taken, for one instance: a quarter of the slots stays free for what chance brings. */
export const TARGET = 3;
export const FLOOR = 1;
export const MAX = 60;
const JOB_S = 6;
const STUCK_SHARE = 0.2;
const BOOT_S = { least: 15, most: 30 };

/** A busy slot without progress for so long is stuck. */
const STUCK_AFTER_S = 120;

export interface Load {
  readonly name: string;
  /** By second, how long each job takes that arrives in it; Infinity for one that hangs. */
  readonly arrivals: readonly (readonly number[])[];
  readonly boots: readonly number[];
  /** So many jobs together get what they all need (a database, a rate limit); more of them take longer each. Absent: nothing is shared. */
  readonly atOnce?: number;
  /** What hangs is ended after so long. Absent: never. */
  readonly reapedAfterS?: number;
}

export function loadOf({ name, rate, batch }: Shape, random: Random): Load {
  const arrivals = Array.from({ length: DURATION_S }, (_, second) =>
    Array.from({ length: poisson(random, rate(second)) + (batch?.(second) ?? 0) }, () => Math.max(1, exponential(random, JOB_S))),
  );
  const boots = Array.from({ length: 997 }, () => BOOT_S.least + random.next() * (BOOT_S.most - BOOT_S.least));
  return { name, arrivals, boots };
}

/** What a policy can see. */
export interface View {
  readonly second: number;
  readonly desired: number;
  readonly waiting: number;
  readonly taken: number;
  /** Those that take jobs. */
  readonly ready: number;
  /** Those that were made, ready or not. */
  readonly made: number;
  /** Since when each of those that take jobs does, oldest first. */
  readonly readySince: readonly number[];
  readonly slots: number;
  /** Of those that are taken. */
  readonly stuck: number;
  /** Ended in each second so far. */
  readonly ended: readonly number[];
  /** Busy slots in each second so far. */
  readonly busy: readonly number[];
}

/** Asked in each second; answers with the size, or with null when it does not look now. */
export type Scaler = (view: View) => number | null;

interface Instance {
  readonly readyAt: number;
  /** Of each busy slot: when its job began, and when it ends. */
  jobs: { readonly from: number; readonly end: number }[];
  isLeaving: boolean;
}

export interface Figures {
  readonly name: string;
  /** Instance-seconds beyond what the work of that second asked for, as a share of those that it asked for. */
  readonly overProvisioning: number;
  /** Share of the seconds in which there was more work than the instances that were ready are meant to have. */
  readonly timeAboveTarget: number;
  readonly meanWaitS: number;
  readonly instanceHours: number;
  readonly changes: readonly { readonly at: number; readonly from: number; readonly to: number }[];
  /** Waiting and taken in the end. */
  readonly left: number;
  readonly mostInstances: number;
  readonly ended: number;
  /** Rises while more than a fifth of the busy slots were stuck. */
  readonly risesWhileStuck: number;
}

export function run({ name, arrivals, boots, atOnce, reapedAfterS }: Load, scaler: Scaler): Figures {
  const instances: Instance[] = [{ readyAt: 0, jobs: [], isLeaving: false }];
  const queue: number[] = [];
  const ended: number[] = [];
  const busy: number[] = [];
  const changes: { at: number; from: number; to: number }[] = [];
  const sums = { beyond: 0, asked: 0, above: 0, waited: 0, arrived: 0, held: 0, risesWhileStuck: 0, ended: 0, most: 0 };
  let made = 0;
  let desired = 1;

  for (const [second, jobs] of arrivals.entries()) {
    const finished = finish(instances, second, reapedAfterS ?? Number.POSITIVE_INFINITY);
    ended.push(finished);
    sums.ended += finished;
    queue.push(...jobs);
    const ready = instances.filter((each) => !each.isLeaving && each.readyAt <= second);
    take(ready, queue, second, (busy.at(-1) ?? 0) / (atOnce ?? Number.POSITIVE_INFINITY));
    const all = instances.flatMap((each) => each.jobs);
    const taken = all.length;
    const stuck = all.filter(({ from, end }) => end === Number.POSITIVE_INFINITY && second - from >= STUCK_AFTER_S).length;
    const staying = instances.filter(({ isLeaving }) => !isLeaving);
    busy.push(taken);

    const asked = Math.max(FLOOR, Math.ceil((queue.length + taken) / TARGET));
    sums.asked += asked;
    sums.beyond += Math.max(0, staying.length - asked);
    sums.above += queue.length + taken > TARGET * ready.length ? 1 : 0;
    sums.waited += queue.length;
    sums.arrived += jobs.length;
    sums.held += instances.length;
    sums.most = Math.max(sums.most, instances.length);

    const wanted = scaler({
      second,
      desired,
      waiting: queue.length,
      taken,
      ready: ready.length,
      made: staying.length,
      readySince: ready.map(({ readyAt }) => readyAt).toSorted((a, b) => a - b),
      slots: ready.length * SLOTS,
      stuck,
      ended,
      busy,
    });
    if (wanted === null || wanted === desired) continue;
    changes.push({ at: second, from: desired, to: wanted });
    if (wanted > desired && stuck > STUCK_SHARE * taken) sums.risesWhileStuck += 1;
    desired = wanted;
    for (let count = staying.length; count < desired; count += 1) {
      instances.push({ readyAt: second + (boots[made % boots.length] ?? BOOT_S.most), jobs: [], isLeaving: false });
      made += 1;
    }
    leave(staying, desired);
  }
  return {
    name,
    overProvisioning: sums.beyond / sums.asked,
    timeAboveTarget: sums.above / arrivals.length,
    meanWaitS: sums.waited / Math.max(1, sums.arrived),
    instanceHours: sums.held / 3_600,
    changes,
    left: queue.length + instances.reduce((sum, each) => sum + each.jobs.length, 0),
    mostInstances: sums.most,
    ended: sums.ended,
    risesWhileStuck: sums.risesWhileStuck,
  };
}

/** What is reaped is free again and counts as nothing finished. */
function finish(instances: Instance[], second: number, reapedAfterS: number): number {
  let count = 0;
  for (const instance of instances) {
    const still = instance.jobs.filter(({ end }) => end > second);
    count += instance.jobs.length - still.length;
    instance.jobs = still.filter(({ from, end }) => end !== Number.POSITIVE_INFINITY || second - from < reapedAfterS);
  }
  for (let at = instances.length - 1; at >= 0; at -= 1)
    if (instances[at]?.isLeaving === true && instances[at]?.jobs.length === 0) instances.splice(at, 1);
  return count;
}

function take(ready: readonly Instance[], queue: number[], second: number, crowding: number): void {
  let taken = 0;
  for (let round = 1; round <= SLOTS && taken < queue.length; round += 1)
    for (const { jobs } of ready) {
      if (jobs.length >= round || taken >= queue.length) continue;
      jobs.push({ from: second, end: second + (queue[taken] ?? 0) * Math.max(1, crowding) });
      taken += 1;
    }
  queue.splice(0, taken);
}

/** Who is not ready yet or has least to finish goes first. */
function leave(staying: readonly Instance[], desired: number): void {
  const order = staying.toSorted((a, b) => b.readyAt - a.readyAt).toSorted((a, b) => a.jobs.length - b.jobs.length);
  for (const instance of order.slice(0, Math.max(0, staying.length - desired))) instance.isLeaving = true;
}
