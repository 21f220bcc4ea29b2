import { beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { Slots } from "../model/slots.ts";
import type { Watched } from "./health.ts";
import { SlotsMonitor } from "./slots-monitor.ts";

const POOL = "default/capture";
const STUCK_AFTER = 10_000;

let clock: VirtualClock;
let answers: Map<string, Slots | null | Error>;
let asked: number;
let woken: number;
let jobs: string[];
let monitor: SlotsMonitor;
beforeEach(() => {
  clock = new VirtualClock();
  answers = new Map();
  asked = 0;
  woken = 0;
  jobs = [];
  monitor = new SlotsMonitor({
    driver: {
      slots: async ({ host }) => {
        asked += 1;
        const answer = answers.get(host) ?? null;
        if (answer instanceof Error) throw answer;
        return answer;
      },
    },
    clock,
    onChange: () => (woken += 1),
    onJobs: (_pool, outcome, count) => void jobs.push(`${count} ${outcome}`),
  });
});

function slots(more: Partial<Slots> = {}, quiet: readonly number[] = []): Slots {
  const busy = quiet.map((quietMs, slot) => ({ slot, job: `job-${slot}`, ageMs: quietMs + 1_000, quietMs, progress: 1 }));
  return { bootId: "boot-1", flow: "queue/captures", total: 4, busy, outcomes: { done: 0, nothing: 0, reaped: 0, failed: 0 }, ...more };
}

function watched(instance: string, more: Partial<Watched> = {}): Watched {
  const target = { host: instance, port: 8080, bootId: "boot-1", protocol: "relevo/v1", healthPath: "/" } as const;
  return { instance, incarnation: 1, target, everyMs: 1_000, isDraining: false, ...more };
}

function follow(...instances: readonly Watched[]): void {
  monitor.follow(POOL, instances, STUCK_AFTER);
}

test("busy slots are told apart by whether work was done lately (K4)", async () => {
  answers.set("a", slots({}, [0, 9_999, 10_000]));
  follow(watched("a"));
  await clock.advance(0);

  const seen = monitor.slotsOf("a", 1);
  expect(seen).toEqual({ total: 4, free: 1, progressing: 2, stuck: 1, longestQuietMs: 10_000, flow: "queue/captures" });
  expect(monitor.together(POOL, seen === null ? [] : [seen], [])).toEqual({
    instances: 1,
    total: 4,
    free: 1,
    progressing: 2,
    stuck: 1,
    throughput: null,
    busySeconds: null,
    perBusySlot: null,
    usualPerBusySlot: null,
  });
  const finishing = { total: 4, free: 2, progressing: 1, stuck: 1, longestQuietMs: 10_000, flow: null };
  const both = monitor.together(POOL, seen === null ? [] : [seen], [finishing]);
  expect(both, "who drains offers no slot, and its stuck ones are a sign as before (K6)").toMatchObject({
    ...{ instances: 1, total: 6, free: 1, progressing: 3, stuck: 2 },
  });
  expect(monitor.slotsOf("a", 2)).toBeNull();
  expect(monitor.together(POOL, [], [])).toBeNull();
});

test("a slot that was quiet for long at the last answer is stuck before the next one: no growth is decided on what is not so any more (K6)", async () => {
  answers.set("a", slots({}, [0, 9_600]));
  follow(watched("a"));
  await clock.advance(0);
  expect(monitor.slotsOf("a", 1)).toMatchObject({ progressing: 2, stuck: 0 });
  await clock.advance(400);
  expect(monitor.slotsOf("a", 1)).toMatchObject({ progressing: 1, stuck: 1, longestQuietMs: 10_000 });
});

test("one that nobody has asked yet is awaited, and one that said something and is silent now; not one that does not know the call (K4)", async () => {
  const awaited = () => ["a", "b", "c"].map((each) => monitor.isAwaited(POOL, each, 1));
  expect(awaited()).toEqual([true, true, true]);
  answers.set("a", slots());
  answers.set("b", null);
  follow(watched("a"), watched("b", { isDraining: true }));
  expect(awaited()).toEqual([true, true, false]);
  await clock.advance(0);
  expect([awaited(), woken]).toEqual([[true, false, false], 2]);

  answers.set("a", new Error("away"));
  await clock.advance(60_000);
  expect([monitor.slotsOf("a", 1), awaited()]).toEqual([null, [true, false, false]]);
});

test("an answer of another process is none, one that is too old neither; who does not know the call is asked seldom", async () => {
  answers.set("a", slots({ bootId: "boot-2" }));
  answers.set("b", null);
  follow(watched("a"), watched("b"));
  await clock.advance(10_000);
  expect([monitor.slotsOf("a", 1), monitor.slotsOf("b", 1)]).toEqual([null, null]);
  expect(asked).toBe(11 + 3);

  answers.set("a", slots());
  await clock.advance(1_000);
  expect(monitor.slotsOf("a", 1)).not.toBeNull();
  answers.set("a", new Error("no connection"));
  await clock.advance(10_000);
  expect(monitor.slotsOf("a", 1)).not.toBeNull();
  await clock.advance(1_000);
  expect(monitor.slotsOf("a", 1)).toBeNull();
});

test("the pool is woken when slots become stuck or free of it, when one has nothing to do, and when the flow is another; not at each job", async () => {
  answers.set("a", slots({}, [0, 0]));
  follow(watched("a"));
  await clock.advance(0);
  expect(woken).toBe(1);

  answers.set("a", slots({}, [0, 0, 500]));
  await clock.advance(1_000);
  expect(woken).toBe(1);
  answers.set("a", slots({}, [0, 20_000]));
  await clock.advance(1_000);
  expect(woken).toBe(2);
  answers.set("a", slots());
  await clock.advance(1_000);
  expect(woken).toBe(3);
  answers.set("a", slots({ flow: "queue/other" }));
  await clock.advance(1_000);
  expect(woken).toBe(4);
});

test("jobs are counted by outcome as they end; what was done before the first look is not, nor what another process did (K4)", async () => {
  answers.set("a", slots({ outcomes: { done: 100, nothing: 5, reaped: 1, failed: 0 } }));
  follow(watched("a"));
  await clock.advance(0);
  answers.set("a", slots({ outcomes: { done: 103, nothing: 5, reaped: 2, failed: 4 } }));
  await clock.advance(1_000);
  expect(jobs).toEqual(["3 done", "1 reaped", "4 failed"]);

  jobs = [];
  answers.set("a", slots({ bootId: "boot-2", outcomes: { done: 7, nothing: 0, reaped: 0, failed: 0 } }));
  const target = { ...watched("a").target, bootId: "boot-2" };
  follow(watched("a", { incarnation: 2, target }));
  await clock.advance(2_000);
  expect(jobs).toEqual([]);
});

test("throughput counts done and nothing to do, over all instances of the pool, and per slot that was busy", async () => {
  const done = { a: 0, b: 0 };
  const look = (): void => {
    answers.set("a", slots({ outcomes: { done: done.a, nothing: 0, reaped: 9, failed: 9 } }, [0, 0]));
    answers.set("b", slots({ outcomes: { done: 0, nothing: done.b, reaped: 0, failed: 0 } }, [0, 0]));
  };
  look();
  follow(watched("a"), watched("b"));
  for (let second = 0; second < 180; second += 1) {
    await clock.advance(1_000);
    done.a += 1;
    done.b += 1;
    look();
  }

  const figures = monitor.together(
    POOL,
    [monitor.slotsOf("a", 1), monitor.slotsOf("b", 1)].filter((each) => each !== null),
    [],
  );
  expect(figures).toMatchObject({ instances: 2, total: 8, free: 4 });
  expect(figures?.throughput).toBeCloseTo(2, 0);
  expect(figures?.perBusySlot).toBeCloseTo(0.5, 1);
  expect(figures?.usualPerBusySlot).toBeCloseTo(0.5, 1);
});

test("instances that are not followed any more are not asked, of a pool that is forgotten none", async () => {
  answers.set("a", slots());
  answers.set("b", slots());
  follow(watched("a"), watched("b"));
  await clock.advance(0);
  follow(watched("a"));
  await clock.advance(1_000);
  expect([asked, monitor.slotsOf("b", 1)]).toEqual([3, null]);

  monitor.forget(POOL);
  await clock.advance(10_000);
  expect([asked, monitor.slotsOf("a", 1), clock.pendingTimers]).toEqual([3, null, 0]);
});

test("of thousands each is asked less often, and believed for as long", async () => {
  const many = Array.from({ length: 2_000 }, (_, at) => `i-${at}`);
  for (const each of many) answers.set(each, slots());
  follow(...many.map((each) => watched(each)));
  await clock.advance(0);
  asked = 0;
  await clock.advance(8_000);
  expect(asked).toBe(4_000);
  answers.set("i-0", new Error("no connection"));
  await clock.advance(11_000);
  expect(monitor.slotsOf("i-0", 1)).not.toBeNull();
  await clock.advance(2_000);
  expect(monitor.slotsOf("i-0", 1)).toBeNull();
  monitor.stop();
});
