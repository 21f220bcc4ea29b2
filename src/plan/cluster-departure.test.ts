/** How a cluster leaves: by its engine's own word, without a door, and each query counted once (D5, D13, D18). */
import { expect, test } from "vitest";
import { at, draining, NOON, poolOf, serving } from "../../test/builders/pool.ts";
import type { InstanceInput } from "../../test/builders/pool.ts";
import { planPool } from "./plan.ts";
import type { GatewayState, InstanceSnapshot } from "./snapshot.ts";

const SPEC = { driver: "trino" };
const SILENT: GatewayState = { replica: "gw-2", applied: null, silent: true, lostAt: null };

function planOf(seen: InstanceSnapshot, gateways?: readonly GatewayState[]) {
  const { decisions, holds } = planPool(poolOf({ spec: SPEC }, [seen], gateways === undefined ? {} : { gateways }), NOON);
  return {
    decisions: decisions.map((decision) => ({ ...decision, reason: decision.reason.code })),
    holds: holds.map(({ reason }) => reason.code),
  };
}

const leaving = (input: InstanceInput = {}) => draining({ record: { ordinal: 7 }, ...input });
const sealOf = (seen: InstanceSnapshot, gateways?: readonly GatewayState[]) =>
  planOf(seen, gateways).decisions.find((decision) => decision.kind === "move");

test("the gateways report nothing and the engine has not said it: no seal (D5)", () => {
  expect(sealOf(leaving({ ownObligations: null }))).toBeUndefined();
  expect(sealOf(leaving({ ownObligations: 1 }))).toBeUndefined();
  expect(sealOf(leaving({ ownObligations: 0 }))).toMatchObject({ to: "sealed", seal: "confirmed" });
});

test("a silent replica is waited for: a coordinator has no door that could be shut; given up, the seal is assumed", () => {
  const waiting = planOf(leaving(), [SILENT]);
  expect(waiting.holds).toContain("waiting_for_silent_replica");
  expect(waiting.decisions.filter(({ kind }) => kind === "close_instance" || kind === "move")).toEqual([]);

  expect(sealOf(leaving(), [{ ...SILENT, lostAt: NOON - 1_000 }])).toMatchObject({ to: "sealed", seal: "assumed" });
});

test("a query that the gateways hold, the engine runs and a client polls is one lost obligation (D13, D18)", () => {
  const held = { obligations: { requests: 2, sessions: 3 }, ownObligations: 3 };
  const dead = leaving({ ...held, evidence: ["process_unreachable"] });
  expect(sealOf(dead)).toMatchObject({ seal: "forced", lostObligations: 3 });

  const over = leaving({ ...held, record: { ordinal: 7, drainLoss: "deadline", drainDeadline: at("11:58:00") } });
  expect(sealOf(over)).toMatchObject({ seal: "forced", lostObligations: 3 });
});

test("what ran on a coordinator that was replaced in its pod is counted as lost, from what the gateways hold (D13)", () => {
  const seen = serving({ obligations: { requests: 2, sessions: 3 }, ownObligations: null });
  const renewed = { ...seen, newIncarnation: { ...seen.record.incarnation, number: 2, containerId: "c2", bootId: null } };
  expect(planOf(renewed).decisions).toContainEqual(expect.objectContaining({ kind: "renew_incarnation", lostObligations: 3 }));
});
