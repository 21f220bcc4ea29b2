/** A queue and the workers that take from it, without either: one tick moves jobs from the backlog into the slots of those processes that were admitted. */
import type { Connections } from "../../src/demand/availability.ts";
import type { DemandAdapter } from "../../src/demand/port.ts";
import type { Clock } from "../../src/kernel/clock.ts";
import { RelevoError } from "../../src/kernel/errors.ts";
import type { DemandReading } from "../../src/model/demand.ts";
import type { ModelledInstances } from "./modelled-instances.ts";

const TICK_MS = 100;

interface Job {
  readonly id: string;
  readonly begunAt: number;
  readonly hangs: boolean;
}

export class ModelledWork {
  readonly flow = "queue/captures";
  /** Jobs that wait; true: one that hangs. */
  readonly backlog: boolean[] = [];
  slotsEach = 2;
  jobMs = 2_000;
  /** Jobs whose worker went while they ran. */
  interrupted = 0;
  done = 0;
  /** What the next reads answer instead. */
  answer: ((reading: DemandReading) => DemandReading | Promise<DemandReading>) | undefined;
  reads = 0;
  opened = 0;
  closed = 0;
  /** Whose flow the workers say it is. */
  workersFlow: string | null = this.flow;
  readonly #listeners = new Set<() => void>();
  readonly #clock: Clock;
  #instances: ModelledInstances | undefined;
  readonly #jobs = new Map<string, Job[]>();
  readonly #counts = new Map<string, number>();
  #job = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(instances: ModelledInstances): void {
    this.#instances = instances;
    this.#tick();
  }

  add(count: number, hangs = false): void {
    for (let each = 0; each < count; each += 1) this.backlog.push(hangs);
    this.#changed();
  }

  /** What the parent side does to a child that makes no progress. */
  reapAll(): void {
    for (const [bootId, jobs] of this.#jobs)
      this.#jobs.set(
        bootId,
        jobs.filter(({ hangs }) => !hangs),
      );
  }

  get taken(): number {
    return [...this.#jobs.values()].reduce((sum, jobs) => sum + jobs.length, 0);
  }

  readonly connections: Connections = {
    find: (name) => (name === "main" ? { name, kind: "queue", url: "http://queue.invalid", token: "t" } : undefined),
  };

  adapter({ pushes = true }: { readonly pushes?: boolean } = {}): DemandAdapter<"queue"> {
    return {
      kind: "queue",
      needs: { infrastructure: "relevo queue", permissions: [] },
      flowOf: ({ queue }) => `queue/${queue}`,
      open: ({ queue }) => {
        this.opened += 1;
        return {
          read: async () => this.#read(`queue/${queue}`),
          ...(pushes
            ? {
                onChange: (listener: () => void) => {
                  this.#listeners.add(listener);
                  return () => this.#listeners.delete(listener);
                },
              }
            : {}),
          close: async () => {
            this.closed += 1;
          },
        };
      },
    };
  }

  async #read(flow: string): Promise<DemandReading> {
    this.reads += 1;
    const reading: DemandReading = {
      backlog: this.backlog.length,
      inFlight: this.taken,
      oldestAgeMs: this.backlog.length === 0 ? null : 1_000,
      flow,
      valueAt: null,
      sourceNow: null,
    };
    return this.answer === undefined ? reading : this.answer(reading);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #tick(): void {
    const before = this.backlog.length + this.taken;
    const processes = this.#instances?.processes ?? new Map();
    const alive = new Set<string>();
    for (const process of processes.values()) {
      alive.add(process.bootId);
      this.#work(process);
    }
    for (const [bootId, jobs] of this.#jobs) {
      if (alive.has(bootId)) continue;
      this.interrupted += jobs.length;
      for (const job of jobs) this.backlog.push(job.hangs);
      this.#jobs.delete(bootId);
    }
    if (this.backlog.length + this.taken !== before) this.#changed();
    this.#clock.after(TICK_MS, () => this.#tick());
  }

  #work(process: NonNullable<ReturnType<ModelledInstances["processes"]["get"]>>): void {
    const now = this.#clock.monotonic();
    const running = (this.#jobs.get(process.bootId) ?? []).filter(({ begunAt, hangs }) => hangs || now - begunAt < this.jobMs);
    const ended = (this.#jobs.get(process.bootId)?.length ?? 0) - running.length;
    this.done += ended;
    this.#counts.set(process.bootId, (this.#counts.get(process.bootId) ?? 0) + ended);
    while (process.state === "admitted" && running.length < this.slotsEach && this.backlog.length > 0) {
      const hangs = this.backlog.shift() ?? false;
      running.push({ id: `job-${++this.#job}`, begunAt: now, hangs });
    }
    this.#jobs.set(process.bootId, running);
    process.slots = {
      flow: this.workersFlow,
      total: this.slotsEach,
      busy: running.map(({ id, begunAt, hangs }, slot) => ({
        slot,
        job: id,
        ageMs: now - begunAt,
        quietMs: hangs ? now - begunAt : 0,
        progress: hangs ? 0 : now - begunAt,
      })),
      outcomes: { done: this.#counts.get(process.bootId) ?? 0, nothing: 0, reaped: 0, failed: 0 },
    };
  }

  /** Addresses of processes that have a job which hangs. */
  hanging(): readonly string[] {
    const processes = [...(this.#instances?.processes ?? [])];
    return processes.flatMap(([host, { bootId }]) => ((this.#jobs.get(bootId) ?? []).some(({ hangs }) => hangs) ? [host] : []));
  }

  /** Of a process: what it has not finished. */
  unfinishedOf(bootId: string): number {
    return this.#jobs.get(bootId)?.length ?? 0;
  }
}

export function unreachable(): never {
  throw new RelevoError("demand_unreachable", "The queue answers with 503.", { class: "retryable" });
}
