import { expect, test } from "vitest";
import type { InstanceDriver, InstanceTarget } from "../drivers/port.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Clock } from "../kernel/clock.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { HealthMonitor } from "./health.ts";

const NOON = Date.UTC(2030, 0, 1, 12);
const TARGET: InstanceTarget = { host: "127.64.0.2", port: 8080, bootId: "b1", protocol: "relevo/v1", healthPath: "/relevo/v1/health" };
const LIMIT_MS = 2_000;

/** Answers at once, or hangs until the driver's own limit. */
function monitorOf(clock: VirtualClock, isHanging: () => boolean) {
  const health: InstanceDriver["health"] = async () => {
    if (!isHanging()) return { ok: true, bootId: "b1" } as Awaited<ReturnType<InstanceDriver["health"]>>;
    await clock.sleep(LIMIT_MS);
    throw new RelevoError("instance_timeout", "no answer");
  };
  const monitor = new HealthMonitor({ health } as InstanceDriver, clock, () => undefined);
  monitor.follow(new Set(["orders-a"]), [{ instance: "orders-a", incarnation: 1, target: TARGET, everyMs: 1_000, isDraining: false }]);
  return monitor;
}

test("a process that hangs is failing after two answers that did not come, since the first was asked for", async () => {
  const clock = new VirtualClock(NOON);
  let isHanging = false;
  const monitor = monitorOf(clock, () => isHanging);
  await clock.advance(1);
  expect(monitor.healthOf("orders-a", 1)).toEqual({ state: "passing", since: NOON, bootId: "b1" });

  isHanging = true; // asked again 1 s after the first answer, then 150 ms after the time-out
  await clock.advance(1_000 + LIMIT_MS);
  expect(monitor.healthOf("orders-a", 1).state).toBe("passing");
  await clock.advance(150 + LIMIT_MS);
  expect(monitor.healthOf("orders-a", 1)).toEqual({ state: "failing", since: NOON + 1_000, code: "instance_timeout" });

  isHanging = false;
  await clock.advance(150 + LIMIT_MS);
  expect(monitor.healthOf("orders-a", 1).state).toBe("passing");
  monitor.stop();
});

test("one answer that fails between two that pass changes nothing", async () => {
  const clock = new VirtualClock(NOON);
  let isHanging = false;
  const monitor = monitorOf(clock, () => isHanging);
  await clock.advance(500);
  isHanging = true;
  await clock.advance(1_000);
  isHanging = false;
  await clock.advance(5_000);

  expect(monitor.healthOf("orders-a", 1)).toEqual({ state: "passing", since: NOON, bootId: "b1" });
  monitor.stop();
});

test("a wall clock that is put forward makes a failing instance no longer failing than it is", async () => {
  const clock = new VirtualClock(NOON);
  let setForwardMs = 0;
  const wall: Clock = {
    now: () => clock.now() + setForwardMs,
    monotonic: () => clock.monotonic(),
    after: (delayMs, fire) => clock.after(delayMs, fire),
    sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
  };
  const health: InstanceDriver["health"] = () => Promise.reject(new RelevoError("instance_unreachable", "no connection"));
  const monitor = new HealthMonitor({ health } as InstanceDriver, wall, () => undefined);
  monitor.follow(new Set(["orders-a"]), [{ instance: "orders-a", incarnation: 1, target: TARGET, everyMs: 1_000, isDraining: false }]);
  await clock.advance(1_000);

  setForwardMs = 3_600_000;

  expect(monitor.healthOf("orders-a", 1)).toEqual({ state: "failing", since: NOON + setForwardMs, code: "instance_unreachable" });
  monitor.stop();
});

test("one that says that it only lacks its writer lease is there: it fails by that name, and its silence begins when it falls silent", async () => {
  const clock = new VirtualClock(NOON);
  const lapsed = { ok: false, bootId: "b1", reason: "lease_lapsed: the writer lease was not renewed in time" };
  let answer: () => ReturnType<InstanceDriver["health"]> = async () => lapsed;
  const monitor = new HealthMonitor({ health: () => answer() } as unknown as InstanceDriver, clock, () => undefined);
  monitor.follow(new Set(["orders-a"]), [{ instance: "orders-a", incarnation: 1, target: TARGET, everyMs: 1_000, isDraining: false }]);
  await clock.advance(60_000);
  expect(monitor.healthOf("orders-a", 1)).toEqual({ state: "failing", since: NOON, code: "lease_lapsed" });

  answer = () => Promise.reject(new RelevoError("instance_unreachable", "no connection"));
  await clock.advance(5_000);
  const silent = monitor.healthOf("orders-a", 1);
  expect(silent).toMatchObject({ state: "failing", code: "instance_unreachable" });
  expect(silent.state === "failing" && silent.since).toBeGreaterThanOrEqual(NOON + 60_000);

  answer = async () => ({ ...lapsed, reason: "the disk is full" });
  await clock.advance(2_000);
  expect(monitor.healthOf("orders-a", 1)).toMatchObject({ state: "failing", code: "unhealthy" });
  answer = async () => lapsed;
  await clock.advance(2_000);
  expect(monitor.healthOf("orders-a", 1)).toMatchObject({ state: "failing", code: "lease_lapsed" });
  monitor.stop();
});

test("another process at the same address is told at once, though it passes too", async () => {
  const clock = new VirtualClock(NOON);
  let bootId = "b1";
  const told: string[] = [];
  const health: InstanceDriver["health"] = async () => ({ ok: true, bootId }) as Awaited<ReturnType<InstanceDriver["health"]>>;
  const monitor = new HealthMonitor({ health } as InstanceDriver, clock, (instance) => told.push(instance));
  monitor.follow(new Set(["orders-a"]), [{ instance: "orders-a", incarnation: 1, target: TARGET, everyMs: 1_000, isDraining: false }]);
  await clock.advance(1_500);
  expect(told).toEqual(["orders-a"]);
  bootId = "b2";
  await clock.advance(1_000);
  expect(told).toEqual(["orders-a", "orders-a"]);
  expect(monitor.healthOf("orders-a", 1)).toEqual({ state: "passing", since: NOON + 2_000, bootId: "b2" });
  monitor.stop();
});
