import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { HeartbeatRegistry } from "./source-heartbeats.ts";

test("a sender is silent after three times its own period; one that is expected is silent also before it was ever heard", async () => {
  const clock = new VirtualClock(1_000_000);
  const sources = new HeartbeatRegistry(clock);
  sources.expect("sqs", "queue", 20_000);
  sources.heard("gcp", "node-a", 10_000);
  await clock.advance(30_000);
  sources.heard("gcp", "node-b", 10_000, "the API server is away");
  await clock.advance(1);
  expect(sources.senders()).toEqual([
    { source: "sqs", from: "queue", lastHeardAt: null, everyMs: 20_000, isSilent: false, trouble: null },
    { source: "gcp", from: "node-a", lastHeardAt: 1_000_000, everyMs: 10_000, isSilent: true, trouble: null },
    { source: "gcp", from: "node-b", lastHeardAt: 1_030_000, everyMs: 10_000, isSilent: false, trouble: "the API server is away" },
  ]);
  await clock.advance(30_000);
  expect(sources.summary()).toEqual([
    { source: "gcp", senders: 2, silent: 2, lastHeardAt: 1_030_000, trouble: "the API server is away" },
    { source: "sqs", senders: 1, silent: 1, lastHeardAt: null, trouble: null },
  ]);
});

test("trouble does not count as being heard, and ends with the next word", async () => {
  const clock = new VirtualClock(0);
  const sources = new HeartbeatRegistry(clock);
  sources.expect("sqs", "queue", 1_000);
  await clock.advance(5_000);
  sources.troubled("sqs", "queue", "AccessDenied");
  expect(sources.summary()).toEqual([{ source: "sqs", senders: 1, silent: 1, lastHeardAt: null, trouble: "AccessDenied" }]);
  sources.heard("sqs", "queue", 1_000);
  expect(sources.summary()).toEqual([{ source: "sqs", senders: 1, silent: 0, lastHeardAt: 5_000, trouble: null }]);
});

test("an agent that is silent for an hour is forgotten, a configured queue is not", async () => {
  const clock = new VirtualClock(0);
  const sources = new HeartbeatRegistry(clock);
  sources.expect("sqs", "queue", 1_000);
  sources.heard("gcp", "node-a", 10_000);
  await clock.advance(3_600_001);
  expect(sources.senders().map(({ source }) => source)).toEqual(["sqs"]);
});
