import { expect, test } from "vitest";
import { instance, NOON, node, openStepOf, poolOf } from "../../test/builders/pool.ts";
import type { InstanceSlots } from "../model/slots.ts";
import type { Decision, Hold } from "./decision.ts";
import { planPool } from "./plan.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";

const PASSING = { state: "passing", since: NOON - 1_000, bootId: "boot-1" } as const;

/** Nobody routes to it: there is no gateway. */
function workers(
  instances: readonly InstanceSnapshot[],
  spec: Record<string, unknown> = {},
  rest: Partial<PoolSnapshot> = {},
): PoolSnapshot {
  return poolOf({ desired: 1, spec: { driver: "worker", ...spec } }, instances, { gateways: [], ...rest });
}

function slots(busy: Partial<Pick<InstanceSlots, "progressing" | "stuck">> = {}): InstanceSlots {
  const { progressing = 0, stuck = 0 } = busy;
  return { total: 4, free: 4 - progressing - stuck, progressing, stuck, longestQuietMs: 0, flow: null };
}

function decided(pool: PoolSnapshot): readonly Decision[] {
  return planPool(pool, NOON).decisions;
}

function held(pool: PoolSnapshot): readonly Hold[] {
  return planPool(pool, NOON).holds;
}

test("an admitted worker serves when its check passes: no gateway is waited for, and none is needed", () => {
  expect(decided(workers([instance("admitted", { health: PASSING })]))).toMatchObject([
    { kind: "move", from: "admitted", to: "serving", reason: { code: "worker_admitted" } },
  ]);
  const failing = { state: "unknown" } as const;
  expect(held(workers([instance("admitted", { health: failing })]))).toMatchObject([{ reason: { code: "waiting_for_health" } }]);
});

const draining = (more: Partial<InstanceSnapshot>) =>
  instance("draining", { health: PASSING, obligations: null, ...more, record: { drainLoss: "voluntary", drainSince: NOON - 1_000 } });

test("a draining worker is sealed by its own word: nothing that it has not finished, and no busy slot", () => {
  const seal = (more: Partial<InstanceSnapshot>) => decided(workers([draining(more)], { size: { desired: 0 } }));

  expect(seal({ ownObligations: 0, slots: slots() })).toMatchObject([{ to: "sealed", seal: "confirmed", reason: { code: "worker_done" } }]);
  expect(seal({ ownObligations: 0, slots: null })).toMatchObject([{ to: "sealed", seal: "confirmed" }]);
  for (const more of [
    { ownObligations: 1, slots: slots() },
    { ownObligations: 0, slots: slots({ progressing: 1 }) },
    { ownObligations: 0, slots: slots({ stuck: 1 }) },
    { ownObligations: null, slots: slots() },
    { ownObligations: null, slots: null },
  ])
    expect(seal(more)).toEqual([]);
  expect(held(workers([draining({ ownObligations: 3, slots: slots({ progressing: 3 }) })], { size: { desired: 0 } }))[0]).toMatchObject({
    reason: { code: "worker_finishes", params: { jobs: 3 } },
  });
});

test("a worker is not sealed by its word before it was told to take nothing new: it may take a job a moment later (K5)", () => {
  const idle = draining({ ownObligations: 0, slots: slots() });
  const untold = { openSteps: [openStepOf("drain_instance", idle.record.id, { attempts: 2 })] };
  for (const service of [{}, { protocol: "none" }]) {
    expect(decided(workers([idle], { size: { desired: 0 }, service }, untold))).toEqual([]);
    expect(decided(workers([idle], { size: { desired: 0 }, service }))).toMatchObject([{ to: "sealed" }]);
  }
  const late = { ...idle, record: { ...idle.record, drainLoss: "deadline" as const, drainDeadline: NOON - 60_000 } };
  expect(decided(workers([late], { size: { desired: 0 } }, untold))).toMatchObject([{ to: "sealed", seal: "forced" }]);
});

test("a worker without the protocol that says what its slots do is waited for; one that says nothing has the grace period of its pod", () => {
  const spec = { size: { desired: 0 }, service: { protocol: "none" } };
  const seal = (more: Partial<InstanceSnapshot>) => decided(workers([draining({ ownObligations: null, ...more })], spec));

  expect(seal({ slots: null })).toMatchObject([{ to: "sealed", seal: "assumed", reason: { code: "worker_silent" } }]);
  // A controller that was begun anew has not asked it yet: it may be busy.
  expect(seal({ slots: null, slotsAwaited: true })).toEqual([]);
  expect(seal({ slots: slots() })).toMatchObject([{ to: "sealed", seal: "confirmed" }]);
  expect(seal({ slots: slots({ progressing: 1 }) })).toEqual([]);
});

test("what a lost worker had in its slots is lost and counted (D13, D18)", () => {
  const lost = draining({ ownObligations: null, slots: slots({ progressing: 2, stuck: 1 }), evidence: [] });
  const evidence = instance("draining", { on: [node("n1")], evidence: ["process_unreachable"] }).evidence;

  expect(decided(workers([{ ...lost, evidence }], { size: { desired: 0 } }))).toMatchObject([
    { kind: "trust", to: "fenced" },
    { kind: "move", to: "sealed", seal: "forced", lostObligations: 3 },
  ]);
});

test("a worker whose machine goes has until then, and a minute more; what it still has is given up and counted", () => {
  const gone = (deadline: number) =>
    instance("draining", {
      health: PASSING,
      obligations: null,
      ownObligations: 2,
      slots: slots({ progressing: 2 }),
      record: { drainLoss: "deadline", drainDeadline: deadline, drainSince: NOON - 90_000 },
    });

  expect(decided(workers([gone(NOON - 59_000)], { size: { desired: 0 } }))).toEqual([]);
  expect(decided(workers([gone(NOON - 60_000)], { size: { desired: 0 } }))).toMatchObject([
    { to: "sealed", seal: "forced", lostObligations: 2, reason: { code: "deadline_passed" } },
  ]);
});

test("a silent gateway replica is nothing to a pool of workers", () => {
  const silent = [{ replica: "gw-1", applied: null, silent: true, lostAt: null }];
  const pool = workers([draining({ ownObligations: 0, slots: slots() })], { size: { desired: 0 } }, { gateways: silent });

  expect(decided(pool)).toMatchObject([{ to: "sealed", seal: "confirmed" }]);
});
