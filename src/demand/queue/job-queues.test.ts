/** The queue against a model of it, over random histories with lost leases, late workers, deleted queues and restarts. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { epoch } from "../../kernel/epoch.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { JobQueues } from "./job-queues.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { openQueueFile } from "./queue-file.ts";

const LEASE_MS = 1_000;
const MAX_ATTEMPTS = 3;
const OUTCOME = "done";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-queue-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface ModelJob {
  state: "waiting" | "taken" | "dead" | "finished";
  attempt: number;
  lease: string | undefined;
  until: number;
}

/** What every history must look like, in the fewest words. */
class Model {
  /** In the order in which they came. */
  readonly jobs = new Map<string, ModelJob>();
  readonly epochs = new Map<string, number>();

  inState(state: ModelJob["state"]): readonly [string, ModelJob][] {
    return [...this.jobs].filter(([, job]) => job.state === state);
  }

  putBack(job: ModelJob, attempt = job.attempt, isDead = false): void {
    Object.assign(job, { attempt, state: isDead || attempt >= MAX_ATTEMPTS ? "dead" : "waiting", lease: undefined });
  }
}

/** One run: the queue in a file, the clock, and all leases that were ever given. */
class Run {
  readonly model = new Model();
  readonly clock = new VirtualClock();
  readonly leases: { readonly id: string; readonly lease: string }[] = [];
  #next = 0;
  #database: DatabaseSync;
  #queues: JobQueues;

  constructor() {
    this.#database = openQueueFile(this.#path);
    this.#queues = this.#open();
  }

  get #path(): string {
    return join(folder, "queue.db");
  }

  #open(): JobQueues {
    this.#database.exec("PRAGMA synchronous = OFF"); // no power is lost in this test
    const ids = { next: (prefix: string) => `${prefix}-${this.#next++}` };
    return new JobQueues({ database: this.#database, clock: this.clock, ids, limits: DEFAULT_LIMITS, onChanged: () => undefined });
  }

  async do(step: Step): Promise<void> {
    const { model } = this;
    const now = this.clock.now();
    const given = this.leases[step.pick % Math.max(1, this.leases.length)];
    const job = given === undefined ? undefined : model.jobs.get(given.id);
    const isHeld = job?.state === "taken" && job.lease === given?.lease;
    const stamp = { workload: `w${step.worker}`, epoch: epoch(0, step.epoch) };
    const isStale = step.epoch < (model.epochs.get(stamp.workload) ?? 0);
    switch (step.kind) {
      case "add": {
        const id = `j${step.pick % 30}`;
        await this.#queues.add("q", [{ id, payload: id }]);
        if (!model.jobs.has(id)) model.jobs.set(id, { state: "waiting", attempt: 0, lease: undefined, until: 0 });
        return;
      }
      case "take": {
        const taken = this.#queues.take("q", { worker: "w", max: 2, leaseMs: LEASE_MS, stamp });
        if (isStale) return void (await expect(codeOf(taken)).resolves.toBe("stale_epoch"));
        model.epochs.set(stamp.workload, step.epoch);
        const jobs = await taken;
        expect(jobs.map(({ id }) => id)).toEqual(
          model
            .inState("waiting")
            .slice(0, 2)
            .map(([id]) => id),
        );
        for (const { id, lease, attempt } of jobs) {
          const each = model.jobs.get(id);
          expect(attempt).toBe((each?.attempt ?? 0) + 1);
          if (each !== undefined) Object.assign(each, { state: "taken", attempt, lease, until: now + LEASE_MS });
          this.leases.push({ id, lease });
        }
        return;
      }
      case "extend": {
        if (given === undefined) return;
        const code = await codeOf(this.#queues.extend("q", given.id, given.lease, LEASE_MS, undefined));
        expect(code).toBe(isHeld ? "fine" : "lease_lost");
        if (isHeld) job.until = now + LEASE_MS;
        return;
      }
      case "complete": {
        if (given === undefined) return;
        const code = await codeOf(this.#queues.complete("q", given.id, { lease: given.lease, outcome: OUTCOME, stamp }));
        const isRepeated = job?.state === "finished" && job.lease === given.lease;
        expect(code).toBe(isStale ? "stale_epoch" : isHeld || isRepeated ? "fine" : "lease_lost");
        if (code !== "fine") return;
        model.epochs.set(stamp.workload, step.epoch);
        if (job !== undefined) job.state = "finished";
        return;
      }
      case "return": {
        if (given === undefined) return;
        const how = [{}, { dead: true }, { untried: true }][step.epoch % 3] as { dead?: true; untried?: true };
        const code = await codeOf(this.#queues.return("q", given.id, { lease: given.lease, reason: "r", ...how }));
        expect(code).toBe(isHeld ? "fine" : "lease_lost");
        if (isHeld) model.putBack(job, how.untried ? job.attempt - 1 : job.attempt, how.dead === true);
        return;
      }
      case "wait": {
        await this.clock.advance(step.pick * 20);
        await this.#queues.sweep();
        for (const [, each] of model.inState("taken")) if (each.until <= this.clock.now()) model.putBack(each);
        return;
      }
      case "restart": {
        await this.#queues.close();
        this.#database.close();
        this.#database = openQueueFile(this.#path);
        this.#queues = this.#open();
        await this.#queues.recover();
        const least = this.clock.now() + DEFAULT_LIMITS.restartGraceMs;
        for (const [, each] of model.inState("taken")) each.until = Math.max(each.until, least);
        return;
      }
      case "delete":
        await this.#queues.delete("q");
        await this.#queues.put("q", MAX_ATTEMPTS);
        model.jobs.clear();
        return;
      default:
        step.kind satisfies never;
    }
  }

  async begin(): Promise<void> {
    await this.#queues.put("q", MAX_ATTEMPTS);
  }

  check(): void {
    const { model } = this;
    const { waiting, taken, dead } = this.#queues.counts("q");
    const expected = { waiting: model.inState("waiting").length, taken: model.inState("taken").length, dead: model.inState("dead").length };
    expect({ waiting, taken, dead }).toEqual(expected);
    expect(this.#queues.dead("q", 100).map(({ id }) => id)).toEqual(model.inState("dead").map(([id]) => id));
  }

  async end(): Promise<void> {
    await this.#queues.close();
    this.#database.close();
    rmSync(this.#path, { force: true });
  }
}

interface Step {
  readonly kind: "add" | "take" | "extend" | "complete" | "return" | "wait" | "restart" | "delete";
  readonly pick: number;
  readonly worker: number;
  readonly epoch: number;
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "fine";
  } catch (error) {
    if (error instanceof RelevoError) return error.code;
    throw error;
  }
}

const weights = { add: 6, take: 6, extend: 2, complete: 4, return: 3, wait: 4, restart: 1, delete: 1 } as const;
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(...Object.entries(weights).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Step["kind"]) }))),
  pick: fc.nat({ max: 100 }),
  worker: fc.nat({ max: 1 }),
  epoch: fc.nat({ max: 4 }),
});

test("a job completes once, is never lost, and is dead after its last attempt, whatever happens (S10)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const run = new Run();
      try {
        await run.begin();
        for (const each of steps) {
          await run.do(each);
          run.check();
        }
      } finally {
        await run.end();
      }
    }),
    { numRuns: 12 },
  );
});

test("a disk that is full takes nothing more, tells everybody so, and loses nothing", async () => {
  const database = openQueueFile(join(folder, "queue.db"));
  const clock = new VirtualClock();
  let next = 0;
  const ids = { next: (prefix: string) => `${prefix}-${next++}` };
  const queues = new JobQueues({ database, clock, ids, limits: DEFAULT_LIMITS, onChanged: () => undefined });
  await queues.add("q", [{ id: "a", payload: 1 }]);
  const pages = Number(database.prepare("PRAGMA page_count").get()?.["page_count"]);
  database.exec(`PRAGMA max_page_count = ${pages}`);
  const big = { payload: "x".repeat(200_000) };
  const outcomes = await Promise.all([codeOf(queues.add("q", [big])), codeOf(queues.add("q", [big]))]);
  expect(outcomes).toEqual(["queue_unavailable", "queue_unavailable"]);
  expect(queues.counts("q")).toMatchObject({ waiting: 1 });
  await queues.forgetOld(); // changes nothing: it says nothing of the disk
  expect(await codeOf(queues.tryToWrite())).toBe("queue_unavailable");
  expect(queues.trouble?.code).toBe("queue_unavailable");
  database.exec("PRAGMA max_page_count = 1000000");
  await queues.tryToWrite();
  expect(queues.trouble).toBeUndefined();
  await queues.add("q", [big]);
  expect(queues.counts("q")).toMatchObject({ waiting: 2 });
  await queues.close();
  database.close();
});
