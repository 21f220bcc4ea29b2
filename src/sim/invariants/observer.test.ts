import { expect, test } from "vitest";
import { evidenceOf, NOON, serving } from "../../../test/builders/pool.ts";
import { EPOCH_ZERO } from "../../kernel/epoch.ts";
import type { SimEvent, Truth } from "../events.ts";
import type { Mirror, MirroredInstance } from "../mirror.ts";
import { oneObserverCondemnsNoMajority } from "./observer.ts";

const AN_INSTANCE: MirroredInstance = {
  id: "orders-a",
  pool: "default/orders",
  ordinal: 0,
  replaces: null,
  phase: "serving",
  incarnation: 1,
  bootId: "b",
  drainLoss: null,
  evidence: new Map(),
};

/** The only instance of all is condemned at 40 s, and is well; a request was counted at 35 s. */
function saidWhen(isGatewayBlindAt35: boolean, bootId = "b"): readonly string[] {
  const said: string[] = [];
  const checker = oneObserverCondemnsNoMajority();
  const { record } = serving({ id: AN_INSTANCE.id });
  const evidence = evidenceOf(record, "process_unreachable", null);
  const step = (event: SimEvent, second: number, blind: boolean) => {
    if (!checker.watches.includes(event.type)) return;
    const process = { podName: evidence.podName ?? "", bootId, answers: true, isWell: true, hasStoodStill: false, defiesLease: false };
    const truth = { now: () => NOON + second * 1_000, isGatewayBlind: () => blind, processes: () => [process] } as Partial<Truth> as Truth;
    const mirror = { get: () => AN_INSTANCE, living: () => [AN_INSTANCE] } as Partial<Mirror> as Mirror;
    checker.on(event, { truth, mirror, violate: (sentence) => void said.push(sentence) });
  };
  const counts = { accepted: 1, completed: 0, inFlight: 0, queued: 0, rejected: 1, cut: 0, retried: 0 };
  step({ type: "counted", replica: "gateway-1", route: "orders", counts }, 35, isGatewayBlindAt35);
  const at = NOON + 40_000;
  const authority = { pool: AN_INSTANCE.pool, epoch: EPOCH_ZERO };
  const changes = [{ kind: "record_evidence", id: evidence.id, evidence } as const];
  step({ type: "committed", process: "controller-1", authority, changes, now: at, askedAt: at }, 40, false);
  return said;
}

test("whoever is well and is condemned for the controller's own blindness is a violation, unless a gateway saw nobody just before (D12)", () => {
  expect(saidWhen(false)).toEqual(["1 of 1 are condemned as unreachable, the last orders-a, and they are well"]);
  // The controller stood still: nothing but requests told that time went by.
  expect(saidWhen(true)).toEqual([]);
  // Its own process is gone; what answers in its pod is the next one (seed 5532).
  expect(saidWhen(false, "c")).toEqual([]);
});
