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
const BOOT_S = { least: 15, most: 30 };

export interface Load {
  readonly name: string;
  /** By second, how long each job takes that arrives in it. */
  readonly arrivals: readonly (readonly number[])[];
  readonly boots: readonly number[];
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
  readonly fullSince: number | null;
  readonly slots: number;
  /** Ended in each second so far. */
  readonly ended: readonly number[];
  /** Busy slots in each second so far. */
  readonly busy: readonly number[];
}

/** Asked in each second; answers with the size, or with null when it does not look now. */
export type Scaler = (view: View) => number | null;

interface Instance {
  readonly readyAt: number;
  /** When the job of each busy slot ends. */
  ends: number[];
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
}

export function run({ name, arrivals, boots }: Load, scaler: Scaler): Figures {
  const instances: Instance[] = [{ readyAt: 0, ends: [], isLeaving: false }];
  const queue: number[] = [];
  const ended: number[] = [];
  const busy: number[] = [];
  const changes: { at: number; from: number; to: number }[] = [];
  const sums = { beyond: 0, asked: 0, above: 0, waited: 0, arrived: 0, held: 0 };
  let made = 0;
  let desired = 1;

  for (const [second, jobs] of arrivals.entries()) {
    ended.push(finish(instances, second));
    queue.push(...jobs);
    const ready = instances.filter((each) => !each.isLeaving && each.readyAt <= second);
    take(ready, queue, second);
    const taken = instances.reduce((sum, { ends }) => sum + ends.length, 0);
    const staying = instances.filter(({ isLeaving }) => !isLeaving);
    busy.push(taken);

    const asked = Math.max(FLOOR, Math.ceil((queue.length + taken) / TARGET));
    sums.asked += asked;
    sums.beyond += Math.max(0, staying.length - asked);
    sums.above += queue.length + taken > TARGET * ready.length ? 1 : 0;
    sums.waited += queue.length;
    sums.arrived += jobs.length;
    sums.held += instances.length;

    const fullSince = staying.map(({ readyAt }) => readyAt).toSorted((a, b) => a - b)[desired - 1] ?? null;
    const wanted = scaler({
      second,
      desired,
      waiting: queue.length,
      taken,
      ready: ready.length,
      made: staying.length,
      fullSince: fullSince !== null && fullSince <= second ? fullSince : null,
      slots: ready.length * SLOTS,
      ended,
      busy,
    });
    if (wanted === null || wanted === desired) continue;
    changes.push({ at: second, from: desired, to: wanted });
    desired = wanted;
    for (let count = staying.length; count < desired; count += 1) {
      instances.push({ readyAt: second + (boots[made % boots.length] ?? BOOT_S.most), ends: [], isLeaving: false });
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
  };
}

function finish(instances: Instance[], second: number): number {
  let count = 0;
  for (const instance of instances) {
    const still = instance.ends.filter((end) => end > second);
    count += instance.ends.length - still.length;
    instance.ends = still;
  }
  for (let at = instances.length - 1; at >= 0; at -= 1)
    if (instances[at]?.isLeaving === true && instances[at]?.ends.length === 0) instances.splice(at, 1);
  return count;
}

function take(ready: readonly Instance[], queue: number[], second: number): void {
  let taken = 0;
  for (let round = 1; round <= SLOTS && taken < queue.length; round += 1)
    for (const { ends } of ready) {
      if (ends.length >= round || taken >= queue.length) continue;
      ends.push(second + (queue[taken] ?? 0));
      taken += 1;
    }
  queue.splice(0, taken);
}

/** Who is not ready yet or has least to finish goes first. */
function leave(staying: readonly Instance[], desired: number): void {
  const order = staying.toSorted((a, b) => b.readyAt - a.readyAt).toSorted((a, b) => a.ends.length - b.ends.length);
  for (const instance of order.slice(0, Math.max(0, staying.length - desired))) instance.isLeaving = true;
}
