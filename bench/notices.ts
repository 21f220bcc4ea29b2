/**
 * Notices from SQS with correlation: messages a minute on one core, and what is lost when the process is killed twenty times while it receives. Prints one
 * JSON document. Targets: 5,000 messages a minute on one core, 0 lost.
 *
 * The queue is a stand-in in this process, the taker (SDK, poller, desk, SQLite with an fsync at every commit) one of its own, whose CPU time counts. A tenth
 * of the messages are about machines of others and come back again and again, as on a queue that two clusters share.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { integerBetween } from "../src/kernel/random.ts";
import { systemClock, systemRandom } from "../src/kernel/system.ts";
import { startSqsStandIn, type StandInQueue } from "../src/notices/testing/sqs-server.ts";
import { openStore } from "../src/store/store.ts";
import { messageOf, Taker, type TakerSetting } from "../test/notices/taking.ts";

const MESSAGES = 10_000;
const NODES = 1_000;
const KILLS = 20;
const MESSAGES_KILLED = 4_000;
const TARGET_PER_MIN = 5_000;

const folder = mkdtempSync(join(tmpdir(), "relevo-bench-notices-"));
const sqs = await startSqsStandIn();
try {
  const rate = await measureRate();
  const kills = await killRepeatedly();
  const result = {
    bench: "notices",
    messagesPerMinOnOneCore: rate.perMinOnOneCore,
    lost: kills.lost,
    target: { messagesPerMinOnOneCore: TARGET_PER_MIN, lost: 0 },
    ratio: Math.round((rate.perMinOnOneCore / TARGET_PER_MIN) * 100) / 100,
    rate,
    kills,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (kills.lost > 0) process.exitCode = 1;
} finally {
  await sqs.close();
  rmSync(folder, { recursive: true, force: true });
}

async function measureRate(): Promise<{ messages: number; seconds: number; cpuSeconds: number; perMinOnOneCore: number; rssMiB: number }> {
  const queue = sqs.queue("rate");
  const messages = Array.from({ length: MESSAGES }, (_, number) => messageOf(number, NODES));
  const taker = await Taker.start(settingOf(queue, "rate.db"));
  const start = systemClock.monotonic();
  queue.send(...messages);
  await until(() => queue.messages().every(({ receiveCount }) => receiveCount > 0));
  const seconds = (systemClock.monotonic() - start) / 1_000;
  const { cpuMs, rssMiB } = await taker.end();
  return {
    messages: MESSAGES,
    seconds: Math.round(seconds * 10) / 10,
    cpuSeconds: Math.round(cpuMs / 100) / 10,
    // Whichever is slower: the processor or the disk.
    perMinOnOneCore: Math.round((MESSAGES / Math.max(cpuMs / 1_000, seconds)) * 60),
    rssMiB,
  };
}

async function killRepeatedly(): Promise<{ kills: number; messages: number; lost: number }> {
  const queue = sqs.queue("kills");
  const setting = { ...settingOf(queue, "kills.db"), visibilitySeconds: 2 };
  let sent = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const upTo = Math.round((MESSAGES_KILLED / KILLS) * (kill + 1));
    const taker = await Taker.start(setting);
    queue.send(...Array.from({ length: upTo - sent }, (_, index) => messageOf(sent + index, NODES)));
    sent = upTo;
    await systemClock.sleep(integerBetween(systemRandom, 20, 600));
    await taker.kill();
  }
  const taker = await Taker.start(setting);
  // What a killed process had in hand comes back first.
  await until(() => queue.messages().every(({ body }) => isOfOthers(body)), 60_000);
  await taker.end();
  const store = await openStore({ path: setting.store });
  const known = new Set((await store.listNotices(2 * MESSAGES_KILLED)).map(({ dedupeKey }) => dedupeKey));
  await store.close();
  const missing = Array.from({ length: sent }, (_, number) => `event-${number}`).filter((key) => !known.has(key));
  return { kills: KILLS, messages: sent, lost: missing.length };
}

function settingOf(queue: StandInQueue, file: string): TakerSetting {
  return { store: join(folder, file), queue: queue.url, nodes: NODES, visibilitySeconds: 30 };
}

function isOfOthers(body: string): boolean {
  const { detail } = JSON.parse(body) as { readonly detail: { readonly "instance-id": string } };
  return Number(detail["instance-id"].slice(2)) >= NODES;
}

async function until(isSo: () => boolean, withinMs = 120_000): Promise<void> {
  const end = systemClock.monotonic() + withinMs;
  while (!isSo()) {
    if (systemClock.monotonic() > end) throw new Error("the messages were not taken in time");
    await systemClock.sleep(50);
  }
}
