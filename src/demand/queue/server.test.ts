/** The queue over HTTP, with the client that workers use. */
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { epoch } from "../../kernel/epoch.ts";
import { systemClock } from "../../kernel/system.ts";
import type { QueueClient, TakenJob } from "../../sdk/queue-client.ts";
import type { QueueLimits } from "./limits.ts";
import { QueueUnderTest } from "./testing/queue-under-test.ts";

let queue: QueueUnderTest;
let client: QueueClient;

beforeAll(() => start());
afterEach(async () => {
  await client.delete("q").catch(() => undefined); // some have none
});
afterAll(() => queue.remove());

/** Also again, with the file of before. */
async function start(limits: Partial<QueueLimits> = {}): Promise<void> {
  queue ??= new QueueUnderTest();
  await queue.stop();
  await queue.start({ limits });
  client = queue.client();
}

const take = (more: Partial<Parameters<QueueClient["take"]>[1]> = {}) =>
  client.take("q", { worker: "w", max: 1, leaseMs: 60_000, ...more });

async function takeOne(more: Parameters<typeof take>[0] = {}): Promise<TakenJob> {
  const [job] = await take(more);
  if (job === undefined) throw new Error("no job was given");
  return job;
}

test("a job goes in, is taken, and is completed once: the numbers tell of it (K4)", async () => {
  await client.put("q", { maxAttempts: 3 });
  expect(await client.add("q", [{ id: "a", payload: { url: "x" } }, { payload: null }])).toEqual(["a", expect.stringMatching(/^job-/)]);
  const job = await takeOne();
  expect(job).toEqual({ id: "a", payload: { url: "x" }, attempt: 1, lease: expect.stringMatching(/^lease-/) });
  expect(await client.counts("q")).toMatchObject({ waiting: 1, taken: 1, done: 0, maxAttempts: 3 });
  await client.complete("q", "a", { lease: job.lease, outcome: "done", result: { frames: 3 } });
  await client.complete("q", "a", { lease: job.lease, outcome: "done" }); // the answer was lost, say
  expect(await client.counts("q")).toEqual({
    queue: "q",
    waiting: 1,
    taken: 0,
    dead: 0,
    done: 1,
    nothing: 0,
    failed: 0,
    reaped: 0,
    maxAttempts: 3,
    oldestAgeMs: expect.any(Number),
    now: expect.any(Number),
    createdAt: expect.any(Number),
  });
  await expect(client.complete("q", "a", { lease: job.lease, outcome: "failed" })).rejects.toMatchObject({ code: "lease_lost" });
});

test("an id that was given twice is kept once, also after its job is finished", async () => {
  await client.add("q", [{ id: "a", payload: 1 }]);
  await client.add("q", [{ id: "a", payload: 2 }]);
  const job = await takeOne();
  expect(job.payload).toBe(1);
  await client.complete("q", "a", { lease: job.lease, outcome: "nothing" });
  await client.add("q", [{ id: "a", payload: 3 }]);
  expect(await client.counts("q")).toMatchObject({ waiting: 0, taken: 0, nothing: 1, oldestAgeMs: null });
});

test("a lease that runs out gives the job to another one, and the first can do nothing with it any more", async () => {
  await client.add("q", [{ id: "a", payload: 1 }]);
  const first = await takeOne({ leaseMs: 100 });
  const second = await takeOne({ waitMs: 10_000 });
  expect(second).toMatchObject({ id: "a", attempt: 2 });
  const lost = { code: "lease_lost", class: "conflict" };
  await expect(client.complete("q", "a", { lease: first.lease, outcome: "done" })).rejects.toMatchObject(lost);
  await expect(client.extend("q", "a", { lease: first.lease, leaseMs: 1_000 })).rejects.toMatchObject(lost);
  await expect(client.return("q", "a", { lease: first.lease, reason: "late" })).rejects.toMatchObject(lost);
  await client.complete("q", "a", { lease: second.lease, outcome: "done" });
});

test("a lease that is extended lasts", async () => {
  await client.add("q", [{ id: "a", payload: 1 }]);
  const job = await takeOne({ leaseMs: 100 });
  const { until } = await client.extend("q", "a", { lease: job.lease, leaseMs: 60_000 });
  expect(until - (await client.counts("q")).now).toBeGreaterThan(50_000);
  expect(await take({ waitMs: 500 })).toEqual([]);
});

test("a job that is given back waits in its old place; after its last attempt, or by a word, it is dead", async () => {
  await client.put("q", { maxAttempts: 2 });
  await client.add("q", [
    { id: "a", payload: "A" },
    { id: "b", payload: "B" },
  ]);
  const untried = await takeOne();
  expect(await client.return("q", "a", { lease: untried.lease, reason: "drains", untried: true })).toEqual({ state: "waiting" });
  const first = await takeOne();
  expect(first).toMatchObject({ id: "a", attempt: 1 });
  expect(await client.return("q", "a", { lease: first.lease, reason: "no page" })).toEqual({ state: "waiting" });
  const second = await takeOne();
  expect(await client.return("q", "a", { lease: second.lease, reason: "no page" })).toEqual({ state: "dead" });
  const other = await takeOne();
  expect(await client.return("q", "b", { lease: other.lease, reason: "poison", dead: true })).toEqual({ state: "dead" });
  expect(await client.dead("q")).toEqual([
    { id: "a", payload: "A", attempts: 2, reason: "no page (attempt 2 of 2)", diedAt: expect.any(Number) },
    { id: "b", payload: "B", attempts: 1, reason: "poison", diedAt: expect.any(Number) },
  ]);
  expect(await client.counts("q")).toMatchObject({ waiting: 0, taken: 0, dead: 2 });
});

test("the result of a worker that was replaced is rejected by its epoch, and it gets no more jobs (S10)", async () => {
  const stampOf = (counter: number) => ({ workload: "default/capture#0", epoch: epoch(0, counter) });
  await client.add("q", [
    { id: "a", payload: 1 },
    { id: "b", payload: 2 },
  ]);
  const old = await takeOne({ stamp: stampOf(1) });
  await takeOne({ stamp: stampOf(2) });
  const stale = { code: "stale_epoch", class: "conflict", found: "0.1" };
  await expect(client.complete("q", "a", { lease: old.lease, outcome: "done", stamp: stampOf(1) })).rejects.toMatchObject(stale);
  await expect(take({ stamp: stampOf(1) })).rejects.toMatchObject(stale);
  expect(await client.counts("q")).toMatchObject({ taken: 2, done: 0 });
});

test("a taker that waits is given a job as soon as it is there, and each job goes to one", async () => {
  await client.put("q");
  const takers = Array.from({ length: 20 }, () => take({ waitMs: 10_000 }));
  await pause(50);
  await client.add(
    "q",
    Array.from({ length: 20 }, (_, index) => ({ id: `j${index}`, payload: index })),
  );
  const ids = (await Promise.all(takers)).flat().map(({ id }) => id);
  expect(new Set(ids).size).toBe(20);
});

test("a taker that went away while it waited takes no job with it", async () => {
  await client.put("q");
  const gone = new AbortController();
  const leaving = client.take("q", { worker: "leaving", max: 1, leaseMs: 60_000, waitMs: 10_000 }, gone.signal);
  await pause(50);
  gone.abort(new Error("gone"));
  await expect(leaving).rejects.toThrow("gone");
  await client.add("q", [{ id: "a", payload: 1 }]);
  expect(await takeOne({ waitMs: 5_000 })).toMatchObject({ id: "a", attempt: 1 });
});

test("a queue that is deleted is gone with all that is in it, and another one when it is made again", async () => {
  await client.add("q", [{ id: "a", payload: 1 }]);
  const before = await client.counts("q");
  const job = await takeOne();
  await client.delete("q");
  await expect(client.counts("q")).rejects.toMatchObject({ code: "queue_missing" });
  await expect(take({ waitMs: 1_000 })).rejects.toMatchObject({ code: "queue_missing" });
  await client.add("q", [{ id: "a", payload: 2 }]);
  await expect(client.complete("q", "a", { lease: job.lease, outcome: "done" })).rejects.toMatchObject({ code: "lease_lost" });
  const after = await client.counts("q");
  expect(after).toMatchObject({ waiting: 1, taken: 0 });
  expect(after.createdAt).toBeGreaterThan(before.createdAt);
});

test("jobs whose ids begin alike are counted and taken back apart from all others", async () => {
  await client.add("q", [{ id: "run-0001-1", payload: 1 }, { id: "run-0002-1", payload: 1 }, { payload: 1 }]);
  await client.add("q", [
    { id: "run-0001-2", payload: 1 },
    { id: "run-0001-3", payload: 1 },
  ]);
  const [done, , , held] = await take({ max: 4 });
  await client.complete("q", "run-0001-1", { lease: done?.lease ?? "", outcome: "reaped" });
  expect(held?.id).toBe("run-0001-2");
  const none = { waiting: 0, taken: 0, dead: 0, done: 0, nothing: 0, failed: 0, reaped: 0 };
  expect(await client.tagged("q", "run-0001-")).toEqual({ ...none, waiting: 1, taken: 1, reaped: 1, oldestAgeMs: expect.any(Number) });
  expect(await client.removeTagged("q", "run-0001-")).toBe(1);
  expect(await client.tagged("q", "run-0001-")).toEqual({ ...none, taken: 1, reaped: 1, oldestAgeMs: null });
  expect(await client.counts("q")).toMatchObject({ waiting: 0, taken: 3, reaped: 1 });
  await expect(client.removeTagged("q", "run")).rejects.toMatchObject({ code: "body_invalid" });
});

test("changes are told at most every 100 ms, and the last one always", async () => {
  await client.put("q");
  const over = new AbortController();
  const seen: { at: number; waiting: number }[] = [];
  const reader = (async () => {
    for await (const { waiting } of client.changes("q", over.signal)) {
      seen.push({ at: performance.now(), waiting });
      if (waiting === 60) over.abort(new Error("enough"));
    }
  })();
  await expect.poll(() => seen.length).toBeGreaterThan(0);
  for (let index = 0; index < 60; index++) await client.add("q", [{ payload: index }]);
  await expect(reader).rejects.toThrow("enough");
  expect(seen[0]?.waiting).toBe(0);
  const lasted = (seen.at(-1)?.at ?? 0) - (seen[0]?.at ?? 0);
  expect(seen.length).toBeLessThan(lasted / 100 + 3);
});

test("nobody gets in without a token", async () => {
  await expect(queue.client("another-token-of-tests").counts("q")).rejects.toMatchObject({ code: "unauthorized" });
  expect((await fetch(`${queue.url}/v1/queues/q`)).status).toBe(401);
  expect((await fetch(`${queue.url}/v1/queues/q`, { headers: { authorization: "Basic YTpi" } })).status).toBe(401);
  expect((await fetch(`${queue.url}/healthz`)).status).toBe(200);
});

test("a queue that is full takes no more, and says so", async () => {
  await start({ jobsPerQueue: 2 });
  await client.add("q", [{ payload: 1 }, { payload: 2 }]);
  await expect(client.add("q", [{ payload: 3 }])).rejects.toMatchObject({ code: "queue_full", class: "retryable" });
  await start();
});

test("a connection on which nothing was said does not hold up the end: a call that was given up while it connected leaves one", async () => {
  const { hostname, port } = new URL(queue.url);
  const silent = connect(Number(port), hostname);
  const closed = once(silent, "close");
  await once(silent, "connect");
  await client.put("q"); // it came after the silent one, so the server has that one too
  const began = systemClock.monotonic();
  await queue.stop();
  await closed;
  expect(systemClock.monotonic() - began).toBeLessThan(2_500); // what is in flight would be waited for twice as long
  await start();
});

test("what was acknowledged is there after a stop, and who held a job has time to say so", async () => {
  await client.add("q", [{ id: "a", payload: 1 }]);
  const job = await takeOne({ leaseMs: 100 });
  const waiting = take({ waitMs: 30_000 });
  await pause(20);
  await queue.stop();
  expect(await waiting).toEqual([]);
  await start();
  expect(await client.counts("q")).toMatchObject({ taken: 1, waiting: 0 });
  await client.complete("q", "a", { lease: job.lease, outcome: "done" });
  expect(await client.counts("q")).toMatchObject({ taken: 0, done: 1 });
});

test("one file has one owner", async () => {
  const second = new QueueUnderTest();
  await expect(second.start({ store: queue.store })).rejects.toMatchObject({ code: "queue_store_in_use" });
  await second.remove();
});

test("finished jobs are forgotten by and by, and the numbers stay", async () => {
  await start({ finishedJobs: 1 });
  for (const id of ["a", "b", "c"]) {
    await client.add("q", [{ id, payload: 1 }]);
    const { lease } = await takeOne();
    await client.complete("q", id, { lease, outcome: "done" });
  }
  await expect.poll(async () => (await client.add("q", [{ id: "a", payload: 1 }]), (await client.counts("q")).waiting)).toBe(1);
  expect(await client.counts("q")).toMatchObject({ done: 3 });
});

test("a stream that is one too many is refused with an answer", async () => {
  await start({ streams: 1 });
  await client.put("q");
  const over = new AbortController();
  const first = client.changes("q", over.signal)[Symbol.asyncIterator]();
  await first.next();
  const refused = client.changes("q", AbortSignal.timeout(5_000))[Symbol.asyncIterator]().next();
  await expect(refused).rejects.toMatchObject({ code: "too_many_streams" });
  over.abort();
  await first.next().catch(() => undefined); // it ends in one way or the other
  await start();
});
