/** The example's worker as a process, with real browsers: one page shows its video, the other never does (K5, I22). */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { QueueUnderTest, TOKEN } from "../../src/demand/queue/testing/queue-under-test.ts";
import { slotsSchema } from "../../src/model/slots.ts";

const WORKER = new URL("../../examples/capture/worker.mjs", import.meta.url).pathname;
const WITH_VIDEO = "data:text/html,<h1>A page</h1><video></video>";
const WITHOUT_VIDEO = "data:text/html,<h1>A page</h1>";

let queue: QueueUnderTest;
let root: string;
const started: ChildProcess[] = [];

beforeEach(async () => {
  queue = await new QueueUnderTest().start();
  root = mkdtempSync(join(tmpdir(), "rc-"));
});
afterEach(async () => {
  for (const worker of started.splice(0)) if (worker.exitCode === null && worker.signalCode === null) await end(worker, "SIGTERM");
  await queue.remove();
  rmSync(root, { recursive: true, force: true });
});

async function end(worker: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const exited = once(worker, "exit");
  worker.kill(signal);
  await exited;
}

interface Serving {
  readonly worker: ChildProcess;
  readonly base: string;
  readonly leftovers: { readonly folders: number; readonly processes: number };
}

async function startWorker(env: Readonly<Record<string, string>>): Promise<Serving> {
  const worker = spawn(process.execPath, [WORKER], {
    env: {
      ...process.env,
      QUEUE_URL: queue.url,
      QUEUE_TOKEN: TOKEN,
      HOST: "127.0.0.1",
      PORT: "0",
      TMPDIR: root,
      ON_REAPED: "complete",
      ...env,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(worker);
  for await (const line of createInterface({ input: worker.stdout })) {
    const { host, port, leftovers } = JSON.parse(line) as { host: string; port: number; leftovers: Serving["leftovers"] };
    return { worker, base: `http://${host}:${port}/relevo/v1`, leftovers };
  }
  throw new Error("the worker ended before it took jobs");
}

const counts = () => queue.client().counts("captures");
const slotsOf = async ({ base }: Serving) => slotsSchema.parse(await (await fetch(`${base}/slots`)).json());

/** Of the browsers beneath this folder, those that name it on their command line. */
function browsers(): readonly number[] {
  return readdirSync("/proc").flatMap((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/cmdline`, "latin1").includes(`--user-data-dir=${root}`)
        ? [Number(entry)]
        : [];
    } catch {
      return []; // it ended meanwhile
    }
  });
}

test("a page with its video is captured; a browser that waits for one that never comes is ended with all its processes and files", async () => {
  await queue.client().add("captures", [
    { id: "good", payload: { url: WITH_VIDEO, frames: 3 } },
    { id: "stuck", payload: { url: WITHOUT_VIDEO } },
  ]);
  const serving = await startWorker({ NO_PROGRESS: "30000", WAIT: "3000" });
  await expect.poll(() => browsers().length, { timeout: 30_000 }).toBeGreaterThan(1);
  await expect.poll(counts, { timeout: 60_000, interval: 100 }).toMatchObject({ waiting: 0, taken: 0, done: 1, reaped: 1 });
  expect(await slotsOf(serving)).toMatchObject({ total: 2, busy: [], outcomes: { done: 1, nothing: 0, reaped: 1, failed: 0 } });
  expect([browsers(), readdirSync(join(root, `relevo-children-${process.getuid?.()}`))]).toEqual([[], []]);
});

test("after a SIGKILL with all slots busy the next life ends what was left, and each job comes to one end", async () => {
  await queue.client().add("captures", [
    { id: "one", payload: { url: WITHOUT_VIDEO } },
    { id: "two", payload: { url: WITHOUT_VIDEO } },
  ]);
  const first = await startWorker({ NO_PROGRESS: "off", LEASE: "1500" });
  await expect
    .poll(async () => (await slotsOf(first)).busy.filter(({ progress, quietMs }) => progress === 0 && quietMs > 500).length)
    .toBe(2);
  await expect.poll(() => browsers().length, { timeout: 30_000 }).toBeGreaterThan(3);
  await end(first.worker, "SIGKILL");
  const orphans = browsers();
  expect(orphans.length).toBeGreaterThan(1);

  const second = await startWorker({ NO_PROGRESS: "20000", WAIT: "2000", LEASE: "1500" });
  expect(second.leftovers).toMatchObject({ folders: 1 });
  expect(second.leftovers.processes).toBeGreaterThan(1);
  await expect.poll(() => orphans.filter((pid) => browsers().includes(pid))).toEqual([]);
  await expect.poll(counts, { timeout: 60_000, interval: 100 }).toMatchObject({ waiting: 0, taken: 0, reaped: 2, done: 0 });
  expect((await slotsOf(second)).outcomes.reaped).toBe(2);
  await expect.poll(browsers).toEqual([]);
});
