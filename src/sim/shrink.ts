/**
 * From a schedule of faults that breaks something to a small one that breaks the same: faults are left out (delta debugging), then what is left is made
 * simpler and earlier. Every step is a run of the whole; the same input is always shrunk to the same.
 */
import type { Fault, PlannedFault } from "./faults.ts";
import type { Violation } from "./run-seed.ts";

/** All that a run needs to be run again. */
export interface Schedule {
  readonly seed: number;
  /** How long faults are injected, virtual ms. */
  readonly faultsForMs: number;
  readonly faults: readonly PlannedFault[];
}

export interface Shrunk {
  readonly schedule: Schedule;
  readonly violation: Violation;
  readonly runs: number;
}

/** The first violation of a run; undefined when there is none. */
export type Attempt = (schedule: Schedule) => Promise<Violation | undefined>;

export interface ShrinkLimits {
  readonly runs: number;
  /** Time is up: what is smallest so far is the answer. */
  readonly isOver?: () => boolean;
}

/** Undefined when the schedule breaks nothing. */
export async function shrink(schedule: Schedule, attempt: Attempt, limits: ShrinkLimits): Promise<Shrunk | undefined> {
  const violation = await attempt(schedule);
  if (violation === undefined) return undefined;
  const shrinker = new Shrinker(schedule, violation, attempt, limits);
  await shrinker.run();
  return { schedule: shrinker.best, violation: shrinker.violation, runs: shrinker.runs };
}

class Shrinker {
  best: Schedule;
  violation: Violation;
  runs = 1;
  readonly #attempt: Attempt;
  readonly #limits: ShrinkLimits;

  constructor(schedule: Schedule, violation: Violation, attempt: Attempt, limits: ShrinkLimits) {
    this.best = schedule;
    this.violation = violation;
    this.#attempt = attempt;
    this.#limits = limits;
  }

  async run(): Promise<void> {
    let before: Schedule;
    do {
      before = this.best;
      await this.#leaveOut();
      await this.#simplify();
      await this.#shorten();
    } while (before !== this.best && !this.#isOver());
  }

  #isOver(): boolean {
    return this.runs >= this.#limits.runs || this.#limits.isOver?.() === true;
  }

  /** Another rule that breaks is another finding. */
  async #keepIfItFails(schedule: Schedule): Promise<boolean> {
    if (this.#isOver()) return false;
    this.runs += 1;
    const violation = await this.#attempt(schedule);
    if (violation?.id !== this.violation.id) return false;
    this.best = schedule;
    this.violation = violation;
    return true;
  }

  /** Parts of half of the faults, then of a quarter, down to single ones. */
  async #leaveOut(): Promise<void> {
    for (let size = Math.ceil(this.best.faults.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let at = 0; at < this.best.faults.length && !this.#isOver(); ) {
        const { faults } = this.best;
        if (!(await this.#keepIfItFails({ ...this.best, faults: [...faults.slice(0, at), ...faults.slice(at + size)] }))) at += size;
      }
    }
  }

  async #simplify(): Promise<void> {
    for (let index = 0; index < this.best.faults.length; index++) {
      for (const simpler of simplerThan(this.best.faults[index])) {
        if (this.#isOver()) return;
        await this.#keepIfItFails({ ...this.best, faults: this.best.faults.with(index, simpler(this.best.faults[index] as PlannedFault)) });
      }
    }
  }

  async #shorten(): Promise<void> {
    const last = Math.max(0, ...this.best.faults.map(({ atMs, fault }) => atMs + durationOf(fault)));
    if (last + SLACK_MS < this.best.faultsForMs) await this.#keepIfItFails({ ...this.best, faultsForMs: last + SLACK_MS });
  }
}

const SLACK_MS = 5_000;

type Simpler = (planned: PlannedFault) => PlannedFault;

/** Ways to say the same with rounder and smaller numbers. */
function simplerThan(planned: PlannedFault | undefined): readonly Simpler[] {
  if (planned === undefined) return [];
  const ways: Simpler[] = [];
  for (const [field, value] of Object.entries(planned.fault)) {
    for (const other of simplerValues(field, value))
      if (other !== value) ways.push(({ atMs, fault }) => ({ atMs, fault: { ...fault, [field]: other } as Fault }));
  }
  for (const atMs of [0, 1_000, Math.round(planned.atMs / 1_000) * 1_000, Math.round(planned.atMs / 100) * 100])
    if (atMs < planned.atMs) ways.push(({ fault }) => ({ atMs, fault }));
  return ways;
}

function simplerValues(field: string, value: unknown): readonly unknown[] {
  if (typeof value !== "number") return [];
  if (field === "share") return [1];
  if (field === "pick") return [0, 0.5];
  if (!field.endsWith("Ms")) return [1];
  return [0, 1_000, Math.round(value / 10_000) * 10_000, Math.round(value / 1_000) * 1_000].filter(
    (each) => each < value || value % 1_000 !== 0,
  );
}

function durationOf(fault: Fault): number {
  return Math.max(0, ...Object.entries(fault).map(([field, value]) => (field.endsWith("Ms") && typeof value === "number" ? value : 0)));
}
