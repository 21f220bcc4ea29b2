/** The lease holder under a virtual clock (S10). */
import { describe, expect, test } from "vitest";
import type { Epoch } from "../kernel/epoch.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { type LeaseOptions, WriterLease } from "./lease.ts";
import type { LeaseAccess, LeaseAnswer } from "./lease-call.ts";

const ACCESS: LeaseAccess = { url: "http://127.0.0.1:1/", token: "secret", pool: "default/orders", instance: "orders-1", ttlMs: 9_000 };
const renewed = (epoch: string, ttlMs = 9_000): LeaseAnswer => ({ kind: "renewed", ordinal: 2, epoch: epoch as Epoch, ttlMs });
const refused = (code: "lease_not_held" | "lease_fenced"): LeaseAnswer => ({ kind: "refused", code });
const failed: LeaseAnswer = { kind: "failed", why: "connect ECONNREFUSED" };

function holder(given: Partial<LeaseOptions> & { answers?: LeaseAnswer } = {}) {
  const clock = new VirtualClock();
  const calls: { readonly at: number; readonly epoch: string | null }[] = [];
  const reports: string[] = [];
  const world = { answer: given.answers ?? renewed("1.1"), takesMs: 0, lost: 0 };
  const lease = new WriterLease({
    bootId: "boot-1",
    clock,
    call: async (_access, _bootId, held, limitMs) => {
      calls.push({ at: clock.monotonic(), epoch: held?.epoch ?? null });
      const { answer } = world;
      await clock.sleep(Math.min(world.takesMs, limitMs));
      return world.takesMs > limitMs ? { kind: "failed", why: "no answer" } : answer;
    },
    graceMs: 20_000,
    onLost: () => {
      world.lost += 1;
    },
    report: (sentence) => reports.push(sentence),
    ...given,
  });
  return { lease, clock, calls, reports, world };
}

async function held(given: Parameters<typeof holder>[0] = {}) {
  const made = holder(given);
  made.lease.take(ACCESS);
  await made.clock.advance(0);
  expect(made.lease.epoch()).toBe("1.1");
  return made;
}

test("without a lease there is no epoch and nothing is refused", () => {
  const { lease } = holder();
  expect([lease.state, lease.epoch(), lease.refuses, lease.reason]).toEqual(["none", null, false, null]);
});

test("it is acquired without an epoch, and renewed with it every third of its TTL", async () => {
  const { lease, clock, calls } = await held();
  await clock.advance(9_000);
  expect(calls).toEqual([
    { at: 0, epoch: null },
    { at: 3_000, epoch: "1.1" },
    { at: 6_000, epoch: "1.1" },
    { at: 9_000, epoch: "1.1" },
  ]);
  expect([lease.state, lease.epoch(), lease.workload]).toEqual(["held", "1.1", "default/orders#2"]);
});

test("a candidate waits until the former holder is gone; meanwhile it is not refused anything", async () => {
  const { lease, clock, world, calls } = holder({ answers: refused("lease_not_held") });
  lease.take(ACCESS);
  await clock.advance(30_000);
  expect([lease.state, lease.epoch(), lease.refuses, world.lost]).toEqual(["waiting", null, false, 0]);
  expect(calls.length).toBeGreaterThan(20);
  world.answer = renewed("1.2");
  const waiting = lease.whenHeld(5_000);
  await clock.advance(1_000);
  expect([await waiting, lease.state, lease.epoch()]).toEqual([true, "held", "1.2"]);
});

test("the lease follows an admission within milliseconds: it is asked for again soon, and then ever less often", async () => {
  const { lease, clock, calls } = holder({ answers: refused("lease_not_held") });
  lease.take(ACCESS);
  await clock.advance(4_000);
  expect(calls.map(({ at }) => at)).toEqual([0, 25, 75, 175, 375, 775, 1_575, 2_575, 3_575]);
});

test("a TTL that became shorter is kept from the next renewal on", async () => {
  const { lease, clock, world, calls } = await held();
  world.answer = renewed("1.1", 3_000);
  await clock.advance(7_000);
  const gaps = calls.slice(1).map(({ at }, index) => at - (calls[index]?.at ?? 0));
  expect(gaps.at(-1)).toBe(1_000);
  expect(lease.epoch()).toBe("1.1");
  world.takesMs = 1_000_000;
  await clock.advance(3_000);
  expect(lease.state).toBe("lapsed");
});

test("a renewal counts from before its request was sent, not from its answer", async () => {
  const { lease, clock, world } = await held();
  world.takesMs = 2_900;
  // Sent at 3,000, answered at 5,900; from then on nothing is answered any more.
  await clock.advance(5_900);
  world.takesMs = 1_000_000;
  await clock.advance(6_099); // 11,999
  expect(lease.epoch()).toBe("1.1");
  await clock.advance(1);
  expect([lease.epoch(), lease.state]).toEqual([null, "lapsed"]);
});

test("a process that stood still finds its lease lapsed before any timer has fired", async () => {
  let offset = 0;
  const clock = new VirtualClock();
  const paused = { ...holder(), clock };
  const lease = new WriterLease({
    bootId: "boot-1",
    clock: {
      now: () => clock.now() + offset,
      monotonic: () => clock.monotonic() + offset,
      after: (ms, fire) => clock.after(ms, fire),
      sleep: (ms, signal) => clock.sleep(ms, signal),
    },
    call: async () => paused.world.answer,
    graceMs: 20_000,
    onLost: () => {
      paused.world.lost += 1;
    },
    report: () => undefined,
  });
  lease.take(ACCESS);
  await clock.advance(0);
  expect(lease.epoch()).toBe("1.1");

  offset = 60_000;
  expect([lease.epoch(), lease.refuses, lease.state]).toEqual([null, true, "lapsed"]);

  // It asks before it gives itself up, though it stood still for longer than the grace.
  paused.world.answer = refused("lease_fenced");
  await clock.advance(0);
  expect([lease.state, lease.reason, paused.world.lost]).toEqual([
    "lost",
    "lease_fenced: the controller says that this instance may not write",
    1,
  ]);
});

describe("when nobody answers", () => {
  test("it stops exactly at its TTL, says why, and holds it again under the same epoch when the controller is back", async () => {
    const { lease, clock, world, reports } = await held();
    world.answer = failed;
    await clock.advance(8_999);
    expect(lease.epoch()).toBe("1.1");
    await clock.advance(1);
    expect([lease.epoch(), lease.reason]).toEqual([null, "lease_lapsed: the writer lease was not renewed in time (connect ECONNREFUSED)"]);
    world.answer = renewed("1.1");
    await clock.advance(1_000);
    expect([lease.state, lease.epoch(), lease.reason, world.lost]).toEqual(["held", "1.1", null, 0]);
    expect(reports).toEqual([
      "The writer lease could not be renewed: connect ECONNREFUSED.",
      "Stopped writing: lease_lapsed: the writer lease was not renewed in time (connect ECONNREFUSED).",
    ]);
  });

  test("it is lost after the grace, once", async () => {
    const { lease, clock, world, calls } = await held();
    world.answer = failed;
    await clock.advance(9_000 + 19_000);
    expect([lease.state, world.lost]).toEqual(["lapsed", 0]);
    await clock.advance(2_000);
    expect([lease.state, world.lost]).toEqual(["lost", 1]);
    const asked = calls.length;
    world.answer = renewed("1.1");
    await clock.advance(60_000);
    expect([lease.state, lease.epoch(), world.lost, calls.length]).toEqual(["lost", null, 1, asked]);
  });

  test("it tries again soon, and not without end", async () => {
    const { clock, world, calls } = await held();
    world.answer = failed;
    await clock.advance(9_000);
    expect(calls.length).toBeGreaterThan(6);
    expect(calls.length).toBeLessThan(12);
  });
});

test.each([
  ["it was fenced", refused("lease_fenced"), "lease_fenced"],
  ["somebody else holds it", refused("lease_not_held"), "lease_not_held"],
  ["it came back under another epoch", renewed("1.3"), "lease_fenced"],
])("when it hears that %s it stops at once and for good", async (_, answer, code) => {
  const { lease, clock, world } = await held();
  world.answer = answer;
  await clock.advance(3_000);
  expect([lease.state, lease.epoch(), lease.refuses, world.lost]).toEqual(["lost", null, true, 1]);
  expect(lease.reason?.split(":")[0]).toBe(code);
  world.answer = renewed("1.1");
  await clock.advance(60_000);
  expect([lease.state, world.lost]).toEqual(["lost", 1]);
});

test("a candidate that is fenced before it held anything is lost too", async () => {
  const { lease, clock, world } = holder({ answers: refused("lease_fenced") });
  lease.take(ACCESS);
  await clock.advance(0);
  expect([lease.state, world.lost]).toEqual(["lost", 1]);
});

test("the epoch cannot be used before the landing was told of it; a landing that fails is told again", async () => {
  const told: string[] = [];
  let fails = true;
  const { lease, clock } = holder({
    onLease: ({ workload, epoch }) => {
      told.push(`${workload} ${epoch}`);
      if (fails) throw new Error("the landing is away");
    },
  });
  lease.take(ACCESS);
  await clock.advance(0);
  expect([lease.state, lease.epoch()]).toEqual(["waiting", null]);
  fails = false;
  await clock.advance(1_000);
  expect([lease.state, lease.epoch()]).toEqual(["held", "1.1"]);
  await clock.advance(10_000);
  expect(told).toEqual(["default/orders#2 1.1", "default/orders#2 1.1"]);
});

test("an answer that came while the process stood still gives back nothing that has run out", async () => {
  const { lease, clock, world } = holder();
  world.takesMs = 2_999;
  lease.take({ ...ACCESS });
  world.answer = renewed("1.1", 1_000);
  await clock.advance(2_999);
  expect(lease.epoch()).toBe(null);
});

test("after a stop nothing is asked and nothing fires", async () => {
  const { lease, clock, calls } = await held();
  lease.stop();
  const asked = calls.length;
  await clock.advance(60_000);
  expect([calls.length, clock.pendingTimers]).toEqual([asked, 0]);
});

test("whenHeld gives up after its limit, and does not wait where there is nothing to wait for", async () => {
  const { lease, clock } = holder({ answers: refused("lease_not_held") });
  expect(await lease.whenHeld(1_000)).toBe(false);
  lease.take(ACCESS);
  const waiting = lease.whenHeld(2_000);
  await clock.advance(2_000);
  expect(await waiting).toBe(false);
});
