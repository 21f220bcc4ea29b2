import { beforeEach, expect, test } from "vitest";
import type { Connections } from "../demand/availability.ts";
import type { Connection } from "../demand/connections.ts";
import type { DemandAdapter } from "../demand/port.ts";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { DemandReading } from "../model/demand.ts";
import { type PoolDocument, poolSchema } from "../model/pool.ts";
import { DemandMonitor, READ_LIMIT_MS } from "./demand-monitor.ts";

const POOL = "default/capture";
const READING: DemandReading = {
  backlog: 10,
  inFlight: 0,
  oldestAgeMs: 1_000,
  flow: "queue/captures",
  valueAt: null,
  sourceNow: null,
};

function documentOf(scale: Readonly<Record<string, unknown>> | null = {}, name = "capture"): PoolDocument {
  return poolSchema.parse({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name },
    spec: {
      driver: "worker",
      size: { desired: 1 },
      worker: { flow: "queue/captures" },
      ...(scale === null
        ? {}
        : { scale: { signal: { kind: "queue", connection: "main", queue: "captures" }, target: 2, pollEvery: "1s", ...scale } }),
      blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
    },
  });
}

class Queue {
  reads = 0;
  running = 0;
  mostAtOnce = 0;
  open = 0;
  answer: (signal: AbortSignal) => Promise<DemandReading> = async () => READING;
  listener: (() => void) | undefined;
  pushes = false;
  flow: string | null = null;

  readonly adapter: DemandAdapter<"queue"> = {
    kind: "queue",
    needs: { infrastructure: "relevo queue", permissions: [] },
    flowOf: () => this.flow,
    open: () => {
      this.open += 1;
      return {
        read: async (signal) => {
          this.reads += 1;
          this.running += 1;
          this.mostAtOnce = Math.max(this.mostAtOnce, this.running);
          try {
            return await this.answer(signal);
          } finally {
            this.running -= 1;
          }
        },
        ...(this.pushes
          ? {
              onChange: (listener: () => void) => {
                this.listener = listener;
                return () => (this.listener = undefined);
              },
            }
          : {}),
        close: async () => {
          this.open -= 1;
        },
      };
    },
  };
}

let clock: VirtualClock;
let queue: Queue;
let known: Connection | undefined;
let woken: string[];
let logged: string[];
let monitor: DemandMonitor;
beforeEach(() => {
  clock = new VirtualClock();
  queue = new Queue();
  known = { name: "main", kind: "queue", url: "http://127.0.0.1:7091", token: "t" };
  woken = [];
  logged = [];
  const connections: Connections = { find: (name) => (name === "main" ? known : undefined) };
  monitor = new DemandMonitor({
    adapters: { queue: queue.adapter },
    connections,
    clock,
    random: { next: () => 0 },
    kube: {} as never,
    onChange: (pool) => void woken.push(pool),
    log: (_level, message) => void logged.push(message),
  });
});

const backlog = (value: number) => {
  queue.answer = async () => ({ ...READING, backlog: value });
};
const fails = (code: string) => {
  queue.answer = async () => {
    throw new RelevoError(`demand_${code}`, "No.", { class: "retryable" });
  };
};

test("a pool with scale is asked at once, then as often as it says; it is woken only when another size may be wanted", async () => {
  monitor.follow(POOL, documentOf());
  expect(monitor.viewOf(POOL)).toEqual({ reading: null, readAt: null, trouble: null });
  await clock.settle();

  expect(monitor.viewOf(POOL)).toEqual({ reading: READING, readAt: clock.now(), trouble: null });
  expect([woken, queue.reads]).toEqual([[POOL], 1]);

  backlog(9); // 5 instances as before
  await clock.advance(3_000);
  expect([woken.length, queue.reads, monitor.viewOf(POOL)?.reading?.backlog]).toEqual([1, 4, 9]);
  backlog(11);
  await clock.advance(1_000);
  expect([woken.length, queue.reads]).toEqual([2, 5]);
});

test("a pool without scale is not asked, and one that is forgotten or whose scale is taken out no more", async () => {
  monitor.follow("default/other", documentOf(null));
  monitor.follow(POOL, documentOf());
  await clock.settle();
  expect([queue.open, monitor.viewOf("default/other")]).toEqual([1, null]);

  monitor.follow(POOL, documentOf(null));
  await clock.advance(60_000);
  expect([queue.open, queue.reads, monitor.viewOf(POOL), clock.pendingTimers]).toEqual([0, 1, null, 0]);
});

test("another signal in the document is another source: nothing of the former one is believed for it", async () => {
  monitor.follow(POOL, documentOf());
  await clock.settle();
  queue.answer = () => new Promise(() => undefined);
  monitor.follow(POOL, documentOf({ signal: { kind: "queue", connection: "main", queue: "other" } }));
  await clock.settle();

  expect([queue.open, monitor.viewOf(POOL)]).toEqual([1, { reading: null, readAt: null, trouble: null }]);
  monitor.stop();
});

test("trouble stands beside the last valid reading, since it began; who does not answer is asked ever less often, up to a bound (K11)", async () => {
  monitor.follow(POOL, documentOf());
  await clock.settle();
  const readAt = clock.now();
  fails("unreachable");
  await clock.advance(1_000);
  const since = clock.now();
  expect(monitor.viewOf(POOL)).toEqual({ reading: READING, readAt, trouble: { code: "unreachable", detail: "No", since } });

  await clock.advance(59_000);
  // At 1, 2, 4, 8, 16, 32 s, and then every 30 s.
  expect([queue.reads, woken.length]).toEqual([7, 2]);
  await clock.advance(600_000);
  expect(queue.reads).toBe(27);
  expect(monitor.viewOf(POOL)?.trouble?.since).toBe(since);

  backlog(10);
  await clock.advance(30_000);
  expect(monitor.viewOf(POOL)).toMatchObject({ reading: READING, trouble: null });
  expect(woken.length).toBe(3);
  const { reads } = queue;
  await clock.advance(3_000);
  expect(queue.reads).toBeGreaterThanOrEqual(reads + 2);
});

test("trouble of one kind after another is one trouble: a fallback counts from its first, also where nothing was ever valid (K11)", async () => {
  fails("unreachable");
  monitor.follow(POOL, documentOf());
  await clock.settle();
  const since = clock.now();
  for (const code of ["partial", "unreachable", "missing"]) {
    fails(code);
    await clock.advance(2_000);
    expect(monitor.viewOf(POOL)?.trouble).toMatchObject({ code, since });
  }
});

test("pools of a server that hangs keep those of another one waiting once and no longer (K11)", async () => {
  const reads = { main: 0, dead: 0 };
  const isBack = Promise.withResolvers<DemandReading>();
  const adapter: DemandAdapter<"queue"> = {
    ...queue.adapter,
    open: (_spec, connection) => ({
      read: () => {
        reads[connection?.name === "dead" ? "dead" : "main"] += 1;
        return connection?.name === "dead" ? isBack.promise : Promise.resolve(READING);
      },
      close: () => Promise.resolve(),
    }),
  };
  const both = new Map(["main", "dead"].map((name) => [name, { name, kind: "queue", url: "http://127.0.0.1:1", token: "t" } as const]));
  const connections: Connections = { find: (name) => both.get(name) };
  const log = (): void => undefined;
  monitor = new DemandMonitor({
    ...{ adapters: { queue: adapter }, connections, clock, random: { next: () => 0 }, kube: {} as never, log },
    onChange: (pool) => void woken.push(pool),
  });
  const dead = documentOf({ signal: { kind: "queue", connection: "dead", queue: "captures" } });
  for (let each = 0; each < 100; each += 1) monitor.follow(`default/dead-${each}`, dead);
  monitor.follow(POOL, documentOf());

  await clock.advance(READ_LIMIT_MS);
  expect(reads.dead).toBeLessThanOrEqual(34);
  const before = reads.main;
  await clock.advance(50_000);
  expect(reads.main - before).toBe(50);

  woken = [];
  isBack.resolve(READING);
  await clock.advance(READ_LIMIT_MS);
  expect(new Set(woken).size).toBe(100);
  monitor.stop();
});

test("who answers nonsense is asked as often as ever: it costs nothing more", async () => {
  monitor.follow(POOL, documentOf());
  await clock.settle();
  backlog(Number.NaN);
  await clock.advance(10_000);

  expect([queue.reads, monitor.viewOf(POOL)?.trouble?.code, woken.length]).toEqual([11, "not_a_number", 2]);
  backlog(-1);
  await clock.advance(1_000);
  expect([monitor.viewOf(POOL)?.trouble?.code, woken.length]).toEqual(["negative", 3]);
});

test("a connection that is absent is trouble by its name; when it is configured it is asked at once (K2)", async () => {
  known = undefined;
  monitor.follow(POOL, documentOf());
  await clock.settle();
  expect(monitor.viewOf(POOL)?.trouble).toMatchObject({
    code: "not_available",
    detail: "no connection main is configured (relevo controller --connections): relevo queue",
  });
  expect(queue.reads).toBe(0);

  known = { name: "main", kind: "queue", url: "http://127.0.0.1:7091", token: "t" };
  monitor.connectionsChanged();
  await clock.settle();
  expect(monitor.viewOf(POOL)).toMatchObject({ reading: READING, trouble: null });

  monitor.connectionsChanged();
  await clock.settle();
  expect([queue.open, queue.reads]).toEqual([1, 1]);
  known = { ...known, token: "another" };
  monitor.connectionsChanged();
  await clock.settle();
  expect([queue.open, queue.reads]).toEqual([1, 2]);
});

test("a document whose signal is of another flow than its workers is refused before anything is asked (K1)", async () => {
  queue.flow = "queue/other";
  monitor.follow(POOL, documentOf());
  await clock.settle();

  expect(monitor.viewOf(POOL)?.trouble).toMatchObject({
    code: "other_flow",
    detail: "its signal is of queue/other, and the workers take queue/captures",
  });
  expect([queue.open, queue.reads]).toEqual([0, 0]);
});

test("an answer that does not come is trouble after ten seconds, and the next call goes by another source", async () => {
  let signal: AbortSignal | undefined;
  queue.answer = (given) => {
    signal = given;
    return new Promise(() => undefined);
  };
  monitor.follow(POOL, documentOf());
  await clock.advance(READ_LIMIT_MS - 1);
  expect([monitor.viewOf(POOL)?.trouble, signal?.aborted]).toEqual([null, false]);
  await clock.advance(1);
  expect(monitor.viewOf(POOL)?.trouble).toMatchObject({ code: "unreachable", detail: "no answer within 10 s" });
  expect([signal?.aborted, queue.open]).toEqual([true, 0]);

  backlog(10);
  await clock.advance(1_000);
  expect([queue.open, monitor.viewOf(POOL)?.trouble]).toEqual([1, null]);
});

test("a source that tells of changes is asked then, once for many that come while a call is on its way, and now and then all the same", async () => {
  queue.pushes = true;
  monitor.follow(POOL, documentOf());
  await clock.settle();
  expect(queue.reads).toBe(1);

  backlog(40);
  queue.listener?.();
  await clock.settle();
  expect([queue.reads, woken.length]).toEqual([2, 2]);

  const answer = Promise.withResolvers<DemandReading>();
  queue.answer = () => answer.promise;
  queue.listener?.();
  await clock.settle();
  queue.listener?.();
  queue.listener?.();
  backlog(60);
  answer.resolve({ ...READING, backlog: 50 });
  await clock.settle();
  expect([queue.reads, monitor.viewOf(POOL)?.reading?.backlog]).toEqual([4, 60]);

  await clock.advance(60_000);
  expect(queue.reads).toBe(8);
  monitor.forget(POOL);
  expect(queue.listener).toBeUndefined();
});

test("hundreds of pools are asked at most 32 at once, none of them is left out", async () => {
  queue.answer = async () => {
    await clock.sleep(100);
    return READING;
  };
  for (let each = 0; each < 320; each += 1) monitor.follow(`default/p${each}`, documentOf({ pollEvery: "5s" }, `p${each}`));
  await clock.advance(1_500);

  expect([queue.reads, queue.mostAtOnce, new Set(woken).size]).toEqual([320, 32, 320]);
  monitor.stop();
  await clock.advance(1_000);
  expect([queue.open, clock.pendingTimers]).toEqual([0, 0]);
});

test("what was wanted is remembered for the longer of both windows, in order; a clock that was set back forgets the future", async () => {
  monitor.follow(POOL, documentOf({ up: { window: "1s" }, down: { window: "10s" } }));
  const at = clock.now();
  for (const [seconds, size] of [
    [0, 3],
    [5, 4],
    [12, 2],
  ] as const)
    monitor.remember(POOL, size, at + seconds * 1_000);
  expect(monitor.recommendedOf(POOL)).toEqual([
    { at, size: 3 },
    { at: at + 5_000, size: 4 },
    { at: at + 12_000, size: 2 },
  ]);
  monitor.remember(POOL, 2, at + 20_000);
  expect(monitor.recommendedOf(POOL)[0]).toEqual({ at: at + 5_000, size: 4 });
  monitor.remember(POOL, 1, at + 6_000);
  expect(monitor.recommendedOf(POOL)).toEqual([
    { at: at + 5_000, size: 4 },
    { at: at + 6_000, size: 1 },
  ]);
  monitor.forget(POOL);
  expect(monitor.recommendedOf(POOL)).toEqual([]);
});
