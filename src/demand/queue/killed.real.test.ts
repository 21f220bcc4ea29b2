/** The queue's process is killed again and again while producers and workers are at it: what was acknowledged is there, and no job completes twice. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { QueueClient } from "../../sdk/queue-client.ts";

const MAIN = join(import.meta.dirname, "..", "..", "main.ts");
const TOKEN = "a-token-of-the-tests";
const KILLS = 5;
const WORKERS = 4;

interface Running {
  readonly process: ChildProcess;
  readonly url: string;
}

/** `port` 0 the first time; then the same again, as a supervisor would. */
async function start(folder: string, port: string): Promise<Running> {
  const args = [MAIN, "queue", "--store", join(folder, "queue.db"), "--token-file", join(folder, "tokens"), "--port", port];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    log += text;
    const url = /"url":"([^"]+)"/.exec(log)?.[1];
    if (url !== undefined) resolve(url);
  });
  child.once("exit", (code) => reject(new Error(`the queue ended with ${code}: ${log}`)));
  return { process: child, url: await promise };
}

test("kill -9 loses no job that was acknowledged, and lets none complete twice (S10)", async () => {
  const folder = mkdtempSync(join(tmpdir(), "relevo-queue-"));
  writeFileSync(join(folder, "tokens"), TOKEN);
  let running = await start(folder, "0");
  const { port } = new URL(running.url);
  const client = new QueueClient({ url: running.url, token: TOKEN, timeoutMs: 2_000 });
  const acknowledged = new Set<string>();
  /** How often a completion was answered with yes, by job; a repeat with the same lease counts once. */
  const completed = new Map<string, Set<string>>();
  let isOver = false;
  let killed = 0;

  await client.put("q", { maxAttempts: 1_000 });
  const produce = async (): Promise<void> => {
    for (let number = 0; !isOver; number++) {
      const ids = Array.from({ length: 10 }, (_, index) => `j${number}-${index}`);
      await insist(async () =>
        client.add(
          "q",
          ids.map((id) => ({ id, payload: id })),
        ),
      );
      for (const id of ids) acknowledged.add(id);
      await pause(5);
    }
  };
  const work = async (worker: string): Promise<void> => {
    while (!isOver || completed.size < acknowledged.size) {
      const jobs = await client.take("q", { worker, max: 5, leaseMs: 2_000, waitMs: 200 }).catch(() => []);
      for (const { id, lease } of jobs) {
        const isDone = await insist(() => client.complete("q", id, { lease, outcome: "done" }));
        if (isDone !== LOST) completed.set(id, (completed.get(id) ?? new Set()).add(lease));
      }
    }
  };
  const everybody = [produce(), ...Array.from({ length: WORKERS }, (_, index) => work(`w${index}`))];
  try {
    for (; killed < KILLS; killed++) {
      const before = acknowledged.size;
      await expect.poll(() => acknowledged.size, { timeout: 20_000 }).toBeGreaterThan(before + 100);
      const gone = once(running.process, "exit");
      running.process.kill("SIGKILL");
      await gone;
      running = await start(folder, port);
    }
    isOver = true;
    // What was taken by an answer that was lost comes back when its lease runs out.
    await Promise.all(everybody);
    expect(await client.counts("q")).toMatchObject({ waiting: 0, taken: 0, dead: 0, done: acknowledged.size });
  } finally {
    isOver = true;
    running.process.kill("SIGTERM");
    await once(running.process, "exit");
    rmSync(folder, { recursive: true, force: true });
  }
  expect(acknowledged.size).toBeGreaterThan(KILLS * 100);
  expect([...acknowledged].filter((id) => !completed.has(id))).toEqual([]);
  expect([...completed].filter(([, leases]) => leases.size > 1)).toEqual([]);
});

const LOST = Symbol("another attempt has it");

/** Until the queue has answered. */
async function insist<T>(call: () => Promise<T>): Promise<T | typeof LOST> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof RelevoError)) throw error;
      if (error.code === "lease_lost") return LOST;
      if (error.class !== "retryable") throw error;
      await pause(20);
    }
  }
}
