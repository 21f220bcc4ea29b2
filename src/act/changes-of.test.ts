import { expect, test } from "vitest";
import { reason } from "../model/reasons.ts";
import type { EvidenceDraft } from "../model/evidence.ts";
import type { Move } from "../plan/decision.ts";
import { changesOf } from "./changes-of.ts";
import { aSnapshot, INCARNATION } from "./testing/snapshot.ts";
import { countingIds, INSTANCE } from "./testing/world.ts";

const WHY = reason("created");
const changes = (move: Move, snapshot = aSnapshot()) => changesOf(move, snapshot, countingIds());

test("a new instance gets an id that fits names and labels, and the blueprint as it is now", () => {
  const snapshot = aSnapshot();

  expect(changes({ kind: "add_instance", ordinal: 2, purpose: "replace", replaces: "orders-old", reason: WHY }, snapshot)).toEqual([
    {
      kind: "create_instance",
      instance: {
        id: "orders-0000000001",
        ordinal: 2,
        purpose: "replace",
        replaces: "orders-old",
        blueprintHash: "hash-1",
        blueprint: { ...snapshot.spec.blueprint, service: { protocol: "relevo/v1", healthPath: "/relevo/v1/health" } },
      },
    },
  ]);
});

test("an id that would be no DNS label is a fault", () => {
  const move: Move = { kind: "add_instance", ordinal: 0, purpose: "fill", replaces: null, reason: WHY };

  expect(() => changes(move, { ...aSnapshot(), name: "x".repeat(60) })).toThrow("is no DNS label");
});

test("evidence gets an id and is otherwise as it was seen (D3)", () => {
  const evidence = { instance: INSTANCE, loss: "voluntary", reason: "node_drifted" } as EvidenceDraft;

  expect(changes({ kind: "record_evidence", evidence, reason: WHY })).toEqual([
    { kind: "record_evidence", id: "evidence-0000000001", evidence },
  ]);
});

test("a plain move is one compare-and-set", () => {
  expect(changes({ kind: "move", instance: INSTANCE, from: "preparing", to: "validating", reason: WHY })).toEqual([
    { kind: "move_instance", instance: INSTANCE, from: "preparing", to: "validating", set: {} },
  ]);
});

test("a failed candidate keeps why", () => {
  expect(changes({ kind: "move", instance: INSTANCE, from: "preparing", to: "failed", failure: "not_ready_in_time", reason: WHY })).toEqual(
    [{ kind: "move_instance", instance: INSTANCE, from: "preparing", to: "failed", set: { failure: "not_ready_in_time" } }],
  );
});

test("a seal counts the instance in its class of loss, with the obligations that were lost (D18)", () => {
  const draining = aSnapshot({ phase: "draining", drainLoss: "voluntary" });

  expect(changes({ kind: "move", instance: INSTANCE, from: "draining", to: "sealed", seal: "confirmed", reason: WHY }, draining)).toEqual([
    { kind: "move_instance", instance: INSTANCE, from: "draining", to: "sealed", set: { seal: "confirmed" } },
    { kind: "count_loss", instance: INSTANCE, loss: "voluntary", obligations: 0, seal: "confirmed" },
  ]);
  const lost = { loss: "forced", deadline: null } as const;
  expect(
    changes(
      { kind: "move", instance: INSTANCE, from: "draining", to: "sealed", seal: "forced", drain: lost, lostObligations: 3, reason: WHY },
      draining,
    ),
  ).toEqual([
    {
      kind: "move_instance",
      instance: INSTANCE,
      from: "draining",
      to: "sealed",
      set: { drainLoss: "forced", drainDeadline: null, seal: "forced" },
    },
    { kind: "count_loss", instance: INSTANCE, loss: "forced", obligations: 3, seal: "forced" },
  ]);
});

test.each(["validating", "admitted", "serving"] as const)("a new process of an instance that is %s is prepared anew (D13)", (phase) => {
  const incarnation = { ...INCARNATION, number: 2 };

  expect(
    changes({ kind: "renew_incarnation", instance: INSTANCE, after: 1, incarnation, phase, lostObligations: null, reason: WHY }),
  ).toEqual([
    { kind: "renew_incarnation", instance: INSTANCE, after: 1, incarnation },
    { kind: "move_instance", instance: INSTANCE, from: phase, to: "preparing" },
  ]);
});

test.each(["creating", "preparing", "draining"] as const)("a new process of an instance that is %s changes no phase", (phase) => {
  const incarnation = { ...INCARNATION, number: 2 };

  expect(
    changes({ kind: "renew_incarnation", instance: INSTANCE, after: 1, incarnation, phase, lostObligations: null, reason: WHY }),
  ).toEqual([{ kind: "renew_incarnation", instance: INSTANCE, after: 1, incarnation }]);
});

test("what was tied to the former process of one that took traffic is counted in the same commit (D18)", () => {
  const incarnation = { ...INCARNATION, number: 2 };

  expect(
    changes({ kind: "renew_incarnation", instance: INSTANCE, after: 1, incarnation, phase: "serving", lostObligations: 3, reason: WHY }),
  ).toEqual([
    { kind: "renew_incarnation", instance: INSTANCE, after: 1, incarnation },
    { kind: "move_instance", instance: INSTANCE, from: "serving", to: "preparing" },
    { kind: "count_loss", instance: INSTANCE, loss: "forced", obligations: 3, seal: "forced" },
  ]);
});

test("trust is compared with incarnation and former trust", () => {
  expect(changes({ kind: "trust", instance: INSTANCE, incarnation: 1, from: "ok", to: "suspect", reason: WHY })).toEqual([
    { kind: "set_trust", instance: INSTANCE, incarnation: 1, from: "ok", to: "suspect" },
  ]);
});
