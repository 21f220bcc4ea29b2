/** Many seeds, several at once in processes of their own, handed back in their order: whatever the number of processes, what comes out is the same. */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { type SeedSummary, summarise } from "./seed-summary.ts";

export interface SeedRange {
  readonly from: number;
  readonly to: number;
  /** Processes at once; one seed, or one process, runs in this one. */
  readonly workers: number;
  /** Also hand back the event logs. */
  readonly log: boolean;
}

/** Each process has its next seed before it is done with one. */
const SEEDS_PER_WORKER = 2;
/** A seed that takes long must not let the others pile up without bound behind it. */
const AHEAD_MAX = 1_000;

export async function* runSeeds(range: SeedRange): AsyncGenerator<SeedSummary> {
  const { from, to, log } = range;
  if (range.workers <= 1 || from === to) for (let seed = from; seed <= to; seed++) yield await summarise(seed, log);
  else yield* new SeedWorkers(range).results();
}

class SeedWorkers {
  readonly #range: SeedRange;
  readonly #children: ChildProcess[] = [];
  /** Seeds that each was given and has not answered. */
  readonly #open = new Map<ChildProcess, number>();
  readonly #done = new Map<number, SeedSummary>();
  #next: number;
  #yielded: number;
  #failure: Error | undefined;
  #wake: () => void = () => {};

  constructor(range: SeedRange) {
    this.#range = range;
    this.#next = range.from;
    this.#yielded = range.from - 1;
  }

  async *results(): AsyncGenerator<SeedSummary> {
    const { from, to, workers } = this.#range;
    try {
      for (let each = 0; each < Math.min(workers, to - from + 1); each++) this.#start();
      for (let seed = from; seed <= to; seed++) {
        yield await this.#of(seed);
        this.#yielded = seed;
        for (const child of this.#children) this.#feed(child, 0);
      }
    } finally {
      for (const child of this.#children) child.kill();
    }
  }

  async #of(seed: number): Promise<SeedSummary> {
    for (;;) {
      const summary = this.#done.get(seed);
      this.#done.delete(seed);
      if (summary !== undefined) return summary;
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #start(): void {
    const child = fork(join(import.meta.dirname, "seed-process.ts"), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.#children.push(child);
    this.#open.set(child, 0);
    child.on("message", (summary: SeedSummary) => {
      this.#done.set(summary.seed, summary);
      this.#feed(child, 1);
      this.#wake();
    });
    child.on("exit", (code, signal) => {
      if (this.#yielded === this.#range.to) return;
      this.#failure ??= new Error(`a process of the simulation ended (${code ?? signal}) before its seeds were done`);
      this.#wake();
    });
    this.#feed(child, 0);
  }

  #feed(child: ChildProcess, answered: number): void {
    let open = (this.#open.get(child) ?? 0) - answered;
    for (; open < SEEDS_PER_WORKER && this.#next <= this.#range.to && this.#next <= this.#yielded + AHEAD_MAX; open++)
      child.send({ seed: this.#next++, log: this.#range.log });
    this.#open.set(child, open);
  }
}
