/** Workers on a real built-in queue, over real sockets. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { QueueUnderTest } from "../demand/queue/testing/queue-under-test.ts";
import type { Epoch } from "../kernel/epoch.ts";
import { slotsSchema } from "../model/slots.ts";
import { builtInQueue } from "./queue-source.ts";
import { createWorker, type Worker, type WorkerOptions } from "./worker.ts";

let queue: QueueUnderTest;
let root: string;
const workers: Worker[] = [];
const reports: string[] = [];

beforeEach(async () => {
  queue = await new QueueUnderTest().start();
  root = mkdtempSync(join(tmpdir(), "relevo-worker-"));
  reports.length = 0;
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await queue.remove();
  rmSync(root, { recursive: true, force: true });
});

async function start(options: Partial<WorkerOptions> = {}): Promise<Worker & { readonly base: string }> {
  const worker = createWorker({
    queue: builtInQueue(queue.client(), "captures"),
    slots: 2,
    run: () => undefined,
    name: `worker-${workers.length + 1}`,
    env: { HOST: "127.0.0.1", PORT: "0" },
    pollMs: 100,
    root,
    report: (sentence) => void reports.push(sentence),
    ...options,
  });
  workers.push(worker);
  const { host, port } = await worker.start();
  return Object.assign(worker, { base: `http://${host}:${port}/relevo/v1` });
}

const put = (count: number): Promise<readonly string[]> =>
  queue.client().add(
    "captures",
    Array.from({ length: count }, (_, index) => ({ id: `job-${index + 1}`, payload: { index } })),
  );
const counts = () => queue.client().counts("captures");
/** Never settles by itself: a job that waits for something that does not come. */
const hang = (signal: AbortSignal): Promise<void> =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

describe("jobs go through slots", () => {
  test("each is done once, in as many slots as there are and no more", async () => {
    let most = 0;
    const seen: string[] = [];
    await put(9);
    const worker = await start({
      run: async ({ id }) => {
        most = Math.max(most, worker.slots.busy);
        seen.push(id);
        await new Promise((resolve) => setImmediate(resolve));
      },
    });
    await expect.poll(async () => (await counts()).done).toBe(9);
    expect([seen.toSorted(), most <= 2]).toEqual([Array.from({ length: 9 }, (_, index) => `job-${index + 1}`), true]);
    expect(worker.slots.view()).toMatchObject({ busy: [], outcomes: { done: 9, nothing: 0, reaped: 0, failed: 0 } });
  });

  test("what it says of its slots is what the model reads, and busy ones are obligations (K4)", async () => {
    await put(1);
    const worker = await start({
      slots: 1,
      run: ({ id }, { signal, progress }) => (progress(3), id === "job-1" ? hang(signal) : undefined),
    });
    await expect.poll(() => worker.slots.busy).toBe(1);
    const slots = slotsSchema.parse(await (await fetch(`${worker.base}/slots`)).json());
    expect(slots).toEqual({
      bootId: worker.instance.bootId,
      flow: "queue/captures",
      total: 1,
      busy: [{ slot: 0, job: "job-1", ageMs: expect.any(Number), quietMs: expect.any(Number), progress: 3 }],
      outcomes: { done: 0, nothing: 0, reaped: 0, failed: 0 },
    });
    expect(await (await fetch(`${worker.base}/obligations`)).json()).toMatchObject({ requests: 1 });
  });

  test("each way to end is counted as what it was, and what failed is tried again until the queue gives up (K4)", async () => {
    await queue.client().put("captures", { maxAttempts: 2 });
    await put(3);
    await start({
      run: ({ id }) => {
        if (id === "job-1") return { outcome: "nothing" };
        if (id === "job-2") throw new Error("no such page");
        return { outcome: "done", result: { frames: 3 } };
      },
    });
    await expect.poll(counts).toMatchObject({ waiting: 0, taken: 0, dead: 1, done: 1, nothing: 1 });
    expect(await queue.client().dead("captures")).toMatchObject([{ id: "job-2", attempts: 2, reason: "no such page (attempt 2 of 2)" }]);
  });

  test("nothing is taken before the admission where somebody admits, and after it at once", async () => {
    await put(1);
    const worker = await start({ env: { HOST: "127.0.0.1", PORT: "0", RELEVO_INSTANCE: "capture-1" } });
    expect((await counts()).waiting).toBe(1);
    await worker.instance.perform("admit", "step-1", null);
    await expect.poll(async () => (await counts()).done).toBe(1);
  });
});

describe("a drain interrupts nobody", () => {
  test("nothing new is begun, what runs comes to its end, and then it owes nothing", async () => {
    await put(4);
    const gate = Promise.withResolvers<void>();
    const worker = await start({ run: () => gate.promise });
    await expect.poll(() => worker.slots.busy).toBe(2);
    await worker.instance.perform("drain", "step-1", null);
    gate.resolve();
    await worker.instance.whenIdle();
    expect(worker.instance.obligations().requests).toBe(0);
    expect(await counts()).toMatchObject({ waiting: 2, taken: 0, done: 2 });
  });

  test("a call for jobs that is under way is owed too, and what it brings goes back as if it had not been tried", async () => {
    await queue.client().put("captures");
    const ran: string[] = [];
    const worker = await start({ pollMs: 5_000, run: ({ id }) => void ran.push(id) });
    await expect.poll(() => worker.slots.isTaking).toBe(true);
    await worker.instance.perform("drain", "step-1", null);
    expect(worker.instance.obligations().requests).toBe(1);
    await put(1);
    await worker.instance.whenIdle();
    expect([ran, worker.counts.returnedUntried, (await counts()).waiting]).toEqual([[], 1, 1]);
    const [again] = await queue.client().take("captures", { worker: "another", max: 1, leaseMs: 1_000 });
    expect(again?.attempt).toBe(1);
  });

  test("a drain that was only a hint is taken back, and it takes jobs again", async () => {
    const worker = await start({ env: { HOST: "127.0.0.1", PORT: "0", RELEVO_INSTANCE: "capture-1" } });
    await worker.instance.perform("admit", "step-1", null);
    await worker.instance.perform("drain", "hint-1", null);
    await put(1);
    expect((await counts()).waiting).toBe(1);
    await worker.instance.perform("resume", "hint-2", null);
    await expect.poll(async () => (await counts()).done).toBe(1);
  });

  test("stopped with jobs that do not end, it ends them after its time and gives them back untried", async () => {
    await put(2);
    const worker = await start({ run: (_job, { signal }) => hang(signal) });
    await expect.poll(() => worker.slots.busy).toBe(2);
    await worker.stop(50);
    expect([worker.slots.busy, await counts()]).toMatchObject([0, { waiting: 2, taken: 0, failed: 0 }]);
  });
});

describe("a job completes once", () => {
  test("the end of a lease that another has by now is dropped and counted (I1)", async () => {
    await put(1);
    const gate = Promise.withResolvers<void>();
    // It cannot extend: to the queue it is dead.
    const source = { ...builtInQueue(queue.client(), "captures"), extend: () => Promise.reject(new Error("cut off")) };
    const first = await start({ queue: source, leaseMs: 150, slots: 1, run: () => gate.promise });
    await expect.poll(() => first.slots.busy).toBe(1);
    await first.instance.perform("drain", "step-1", null);
    const second = await start();
    await expect.poll(async () => (await counts()).done).toBe(1);
    gate.resolve();
    await first.instance.whenIdle();
    expect([first.counts.overtaken, second.counts.overtaken, (await counts()).done]).toEqual([1, 0, 1]);
    expect(first.slots.view().outcomes.done).toBe(0);
    expect(reports.join()).toMatch(/The end of job job-1 \(done\) is dropped: Another worker has the job: .*lease_lost/);
  });

  test("one whose lease is lost while it runs is told to stop", async () => {
    await put(1);
    let why: unknown;
    const worker = await start({ leaseMs: 300, run: (_job, { signal }) => hang(signal).catch((error: unknown) => void (why = error)) });
    await expect.poll(() => worker.slots.busy).toBe(1);
    await queue.client().delete("captures");
    await expect.poll(() => worker.slots.busy).toBe(0);
    expect([worker.counts.overtaken + worker.counts.unheard, String(why)]).toEqual([1, expect.stringContaining("Stopped")]);
  });

  test("a writer that was declared dead is refused by its epoch (S10)", async () => {
    await put(1);
    await queue.client().put("others");
    const stamp = { workload: "default/capture#0", epoch: "1.8" as Epoch };
    await queue.client().take("captures", { worker: "next", max: 1, leaseMs: 60_000, stamp });
    const source = builtInQueue(queue.client(), "captures");
    const old = { workload: stamp.workload, epoch: "1.7" as Epoch };
    await expect(
      source.take({ worker: "old", max: 1, leaseMs: 1_000, waitMs: 0, stamp: old }, AbortSignal.timeout(5_000)),
    ).rejects.toMatchObject({
      code: "stale_epoch",
    });
  });

  test("while work is done the lease is extended for as long as it takes", async () => {
    await put(1);
    const gate = Promise.withResolvers<void>();
    const worker = await start({
      leaseMs: 150,
      run: async (_job, { progress }) => {
        const working = setInterval(progress, 20);
        await gate.promise.finally(() => clearInterval(working));
      },
    });
    await expect.poll(() => worker.slots.view().busy[0]?.ageMs ?? 0).toBeGreaterThan(600);
    gate.resolve();
    await expect.poll(async () => (await counts()).done).toBe(1);
    expect(worker.counts.overtaken).toBe(0);
  });
});

describe("what does nothing is ended (K5)", () => {
  test("a child without progress is reaped, its slot is free, and its job goes back and in the end is put away", async () => {
    await queue.client().put("captures", { maxAttempts: 2 });
    await put(1);
    const worker = await start({
      noProgressMs: 150,
      run: async (_job, { runChild }) => {
        const end = await runChild("sh", ["-c", "sleep 60 & while :; do echo alive; sleep 0.02; done"], { killAfterMs: 50 }).ended;
        return { outcome: end.kind === "exited" ? "done" : "reaped", reason: end.sentence };
      },
    });
    await expect.poll(async () => (await counts()).dead, { timeout: 5_000 }).toBe(1);
    expect(worker.slots.view()).toMatchObject({ busy: [], outcomes: { reaped: 2 } });
    expect(await queue.client().dead("captures")).toMatchObject([{ reason: expect.stringContaining("It did no work for") }]);
  });

  test("a function of this process that does nothing loses its lease, is told to stop, and counts as reaped", async () => {
    await queue.client().put("captures", { maxAttempts: 1 });
    await put(1);
    const worker = await start({ leaseMs: 300, noProgressMs: 100, run: (_job, { signal }) => hang(signal) });
    await expect.poll(async () => (await counts()).dead, { timeout: 5_000 }).toBe(1);
    await expect.poll(() => worker.slots.view().outcomes.reaped).toBe(1);
  });

  test("what a job left running is ended with it", async () => {
    await put(1);
    let child: { readonly ended: Promise<{ readonly reason: string }> } | undefined;
    await start({
      run: (_job, { runChild }) => {
        child = runChild("sleep", ["60"]);
      },
    });
    await expect.poll(async () => (await counts()).done).toBe(1);
    expect(await child?.ended).toMatchObject({ reason: "cancelled" });
  });

  test("two hundred jobs leave every slot free, and each ends once (I22)", async () => {
    await put(200);
    const worker = await start({
      slots: 20,
      run: ({ id }) => {
        if (id.endsWith("7")) throw new Error("no such page");
      },
      onFailed: "complete",
    });
    await expect.poll(async () => (await counts()).done + (await counts()).failed, { timeout: 10_000 }).toBe(200);
    await expect.poll(() => worker.slots.free).toBe(20);
    expect(worker.slots.view().outcomes).toEqual({ done: 180, nothing: 0, reaped: 0, failed: 20 });
  });

  test("a function that does not stop when it is told to holds up a stop for no longer than its bound", async () => {
    await put(1);
    const worker = await start({ slots: 1, landMs: 50, run: () => new Promise(() => undefined) });
    await expect.poll(() => worker.slots.busy).toBe(1);
    await worker.stop(0);
    expect([worker.instance.state, worker.slots.busy]).toEqual(["closed", 1]);
  });
});
