import { beforeEach, expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { Workload } from "../model/writer.ts";
import { LeaseWatch } from "./lease-watch.ts";

const POOL = "default/orders";
const TTL_MS = 10_000;

let clock: VirtualClock;
let watch: LeaseWatch;
let returned: string[];

beforeEach(() => {
  clock = new VirtualClock();
  returned = [];
  watch = new LeaseWatch({ clock, onReturn: (pool) => returned.push(pool) });
});

function held(renewals: number, more: Partial<Workload> & { readonly instance?: string; readonly incarnation?: number } = {}): Workload {
  const { instance = "orders-1", incarnation = 1, ...rest } = more;
  return {
    pool: POOL,
    ordinal: 0,
    writerEpoch: epoch(0, 1),
    minAcceptedEpoch: epoch(0, 1),
    holder: { instance, incarnation, bootId: "boot-1" },
    renewals,
    ttlMs: TTL_MS,
    ...rest,
  };
}

const stateNow = (instance = "orders-1", incarnation = 1): string => watch.stateOf(POOL, instance, incarnation).state;
const observe = (...workloads: Workload[]): void => watch.observe(POOL, workloads, TTL_MS);

test("a lease is renewed while its count changes, late after a TTL without, expired after two", async () => {
  observe(held(3));
  expect(watch.stateOf(POOL, "orders-1", 1)).toEqual({ state: "unproven", lateAt: clock.now() + TTL_MS });
  await clock.advance(4_000);
  observe(held(4));
  expect(watch.stateOf(POOL, "orders-1", 1)).toEqual({ state: "renewed", lateAt: clock.now() + TTL_MS });
  const seenAt = clock.now();

  await clock.advance(TTL_MS - 1);
  observe(held(4));
  expect(stateNow()).toBe("renewed");
  await clock.advance(1);
  expect(watch.stateOf(POOL, "orders-1", 1)).toEqual({ state: "late", since: seenAt + TTL_MS, expiresAt: seenAt + 2 * TTL_MS });
  await clock.advance(TTL_MS - 1);
  expect(stateNow()).toBe("late");
  await clock.advance(1);
  expect(watch.stateOf(POOL, "orders-1", 1)).toEqual({ state: "expired", since: seenAt + TTL_MS });
  observe(held(4));
  expect(stateNow()).toBe("expired");
  observe(held(5));
  expect(stateNow()).toBe("renewed");
});

test("a renewal that was committed here counts from that moment, and a holder that was late wakes its pool", async () => {
  observe(held(3));
  await clock.advance(9_000);
  watch.renewed(held(4));
  expect(returned, "the first since the watch began").toEqual([POOL]);
  await clock.advance(9_000);
  watch.renewed(held(5));
  expect(returned).toEqual([POOL]);
  await clock.advance(TTL_MS);
  expect(stateNow()).toBe("late");
  watch.renewed(held(6));
  expect([stateNow(), returned]).toEqual(["renewed", [POOL, POOL]]);
});

test("who has never asked cannot write and is not judged; its first renewal is news", async () => {
  observe(held(0));
  await clock.advance(5 * TTL_MS);
  expect(stateNow()).toBe("unasked");
  watch.renewed(held(1));
  expect([stateNow(), returned]).toEqual(["renewed", [POOL]]);
});

test("only the process that holds it is judged: not another of its instance, not another instance, nobody without a lease", () => {
  observe(held(3));
  expect([stateNow(), stateNow("orders-1", 2), stateNow("orders-2"), watch.stateOf("default/other", "orders-1", 1).state]).toEqual([
    "unproven",
    "none",
    "none",
    "none",
  ]);
  watch.observe(POOL, [held(3)], null);
  expect([stateNow(), watch.isWatching]).toEqual(["none", false]);
  observe(held(3, { holder: null }));
  expect(watch.isWatching).toBe(false);
});

test("another writer of the workload is watched anew", async () => {
  observe(held(3));
  await clock.advance(2 * TTL_MS);
  observe(held(3, { writerEpoch: epoch(0, 2), incarnation: 2 }));
  expect(watch.stateOf(POOL, "orders-1", 2)).toEqual({ state: "unproven", lateAt: clock.now() + TTL_MS });
});

test("after the store could not be asked everybody has a full TTL anew, also who was late", async () => {
  observe(held(3), held(7, { ordinal: 1, instance: "orders-2" }));
  await clock.advance(TTL_MS + 1);
  expect([stateNow(), stateNow("orders-2")]).toEqual(["late", "late"]);
  watch.interrupted();
  expect([stateNow(), stateNow("orders-2")]).toEqual(["unproven", "unproven"]);
  await clock.advance(TTL_MS - 1);
  expect(stateNow()).toBe("unproven");
  await clock.advance(1);
  expect(stateNow()).toBe("late");
});

/** A process that stands still: time goes on, its timers do not fire. */
class PausableClock extends VirtualClock {
  ahead = 0;
  override monotonic(): number {
    return super.monotonic() + this.ahead;
  }
}

test("a pause of this very process is nobody's silence: a full TTL begins anew", async () => {
  const own = new PausableClock();
  watch = new LeaseWatch({ clock: own, onReturn: () => undefined });
  watch.observe(POOL, [held(3)], TTL_MS);
  await own.advance(9_500);
  own.ahead += 60_000;
  expect(watch.stateOf(POOL, "orders-1", 1)).toEqual({ state: "unproven", lateAt: own.now() + TTL_MS });
  await own.advance(TTL_MS - 1);
  expect(stateNow()).toBe("unproven");
  await own.advance(TTL_MS);
  expect(stateNow(), "an ordinary wait is no pause").toBe("late");
});

test("while a renewal is being committed nobody says that there was none", async () => {
  observe(held(3));
  const end = watch.asking(POOL, "orders-1");
  const endOther = watch.asking(POOL, "orders-1");
  await clock.advance(3 * TTL_MS);
  expect(stateNow()).toBe("unproven");
  end();
  expect(stateNow()).toBe("unproven");
  endOther();
  expect(stateNow()).toBe("expired");
});

test("a TTL that became shorter holds for a holder only from its next renewal, one that became longer at once", async () => {
  watch.observe(POOL, [held(3)], TTL_MS);
  watch.observe(POOL, [held(3)], 2_000);
  await clock.advance(5_000);
  expect(stateNow()).toBe("unproven");
  const told = held(4, { ttlMs: 2_000 });
  watch.observe(POOL, [told], 2_000);
  await clock.advance(2_000);
  expect(stateNow()).toBe("late");
  watch.observe(POOL, [told], 60_000);
  expect(stateNow()).toBe("renewed");
});

test("a judge that begins after the TTL became shorter knows what each holder was told: it stops itself no earlier", async () => {
  watch.observe(POOL, [held(3, { ttlMs: 60_000 }), held(0, { ordinal: 1, instance: "orders-2", ttlMs: 0 })], 2_000);
  await clock.advance(59_999);
  expect([stateNow(), stateNow("orders-2")]).toEqual(["unproven", "unasked"]);
  await clock.advance(1);
  expect(stateNow()).toBe("late");
  watch.renewed(held(4, { ttlMs: 2_000 }));
  await clock.advance(2_000);
  expect(stateNow()).toBe("late");
});

test("nothing runs on while nothing is watched", async () => {
  observe(held(3));
  watch.forget(POOL);
  observe(held(3));
  watch.stop();
  observe(held(3));
  expect([watch.isWatching, stateNow()]).toEqual([false, "none"]);
  await clock.advance(60_000);
});
