/** What is done beside an instance (its node, its pods) never stands in the way of what the instance itself must do. */
import { describe, expect, test } from "vitest";
import { at, draining, finding, instance, node, NOON, pod, poolOf, serving } from "../../test/builders/pool.ts";
import { epoch } from "../kernel/epoch.ts";
import { planPool } from "./plan.ts";
import type { PoolSnapshot } from "./snapshot.ts";

const kinds = (pool: PoolSnapshot): readonly string[] =>
  planPool(pool, NOON).decisions.map((decision) => `${decision.kind} ${"instance" in decision ? decision.instance : ""}`.trim());

const going = node("z", { findings: [] });

test("a node that cannot be cordoned does not keep its instance from draining before the deadline (D12, I15)", () => {
  const pool = poolOf({}, [serving({ on: [going], evidence: ["spot_interruption"], deadline: at("12:00:05") })]);
  expect(kinds(pool)).toContain("drain_instance orders-a");
});

test("an operator who uncordons a node does not end the replacement of what runs on it (D10)", () => {
  const pool = poolOf({}, [
    serving({ on: [going], evidence: ["node_drifted"] }),
    serving({ id: "orders-b", record: { purpose: "replace", replaces: "orders-a" } }),
  ]);
  expect(kinds(pool)).toContain("drain_instance orders-a");
});

test("a pod that cannot be marked does not keep its instance from leaving (I15)", () => {
  const pool = poolOf({}, [
    serving({ pods: [pod("p", going, { protectedByUs: false })], evidence: ["process_unreachable"] }),
    serving({ id: "orders-b", record: { purpose: "replace", replaces: "orders-a" } }),
  ]);
  expect(kinds(pool)).toContain("drain_instance orders-a");
});

test("a pod that its owner let go loses our marks, once, and only in mode Act; one whose owner is not seen keeps them (D1, D2)", () => {
  const letGo = (rest: object, mode = "Act") =>
    kinds(
      poolOf({ disruption: { mode } }, [
        serving({ pods: [pod("p", node("a")), pod("q", node("a"), { lead: false, owned: false, ...rest })] }),
      ]),
    );
  expect([
    letGo({ foreign: true }),
    letGo({ foreign: false }),
    letGo({ foreign: true, protectedByUs: false }),
    letGo({ foreign: true, deleting: true }),
    letGo({ foreign: true }, "Off"),
    letGo({ foreign: true }, "Observe"),
  ]).toEqual([["unprotect_pod orders-a"], [], [], [], [], []]);
});

test("a condemned candidate is given up in the same pass in which its node is cordoned", () => {
  const candidate = instance("validating", { on: [going], evidence: ["node_drifted"], health: { state: "unknown" } });
  expect(kinds(poolOf({}, [candidate]))).toContain("move orders-a");
});

test("in mode Observe a candidate may land where it would not in Act: what is seen of nodes causes no change (D1)", () => {
  const on = [node("z", { drifted: true })];
  const candidate = instance("preparing", { on });
  const briefly = (mode: string) => kinds(poolOf({ disruption: { mode } }, [candidate])).filter((kind) => kind !== "record_evidence");
  expect([briefly("Act"), briefly("Observe"), briefly("Off")]).toEqual([["move orders-a"], ["move orders-a"], ["move orders-a"]]);
  const to = (mode: string) =>
    planPool(poolOf({ disruption: { mode } }, [candidate]), NOON).decisions.flatMap((each) => (each.kind === "move" ? each.to : []));
  expect([to("Act"), to("Observe"), to("Off")]).toEqual([["failed"], ["validating"], ["validating"]]);
});

test("a node whose owner is not seen yet is waited for, and only then unsafe (D7, D8)", () => {
  const on = node("z", { owned: false });
  const candidate = (scheduledAt: number) => instance("preparing", { pods: [pod("p", on, { scheduledAt })] });
  const fresh = planPool(poolOf({}, [candidate(NOON - 2_000)]), NOON);
  expect([fresh.decisions, fresh.holds[0]?.reason.code, fresh.nextLookAt]).toEqual([[], "node_owner_unknown", NOON + 8_000]);
  expect(kinds(poolOf({}, [candidate(NOON - 10_000)]))).toEqual(["move orders-a"]);
});

test("a pod that only bears our label condemns nobody (D2)", () => {
  const stranger = pod("stranger", node("z", { drifted: true }), { owned: false, lead: false });
  const mine = pod("p", node("a"));
  expect(kinds(poolOf({}, [serving({ pods: [mine, stranger] })]))).toEqual([]);
});

test("what was tied to the former process of one that served is a forced loss (D18)", () => {
  const renewal = { ...serving().record.incarnation, number: 2, containerId: "c2" };
  const at = (phase: "serving" | "validating") =>
    planPool(
      poolOf({}, [instance(phase, { newIncarnation: renewal, obligations: { requests: 2, sessions: 1 }, ownObligations: null })]),
      NOON,
    ).decisions[0];
  expect([at("serving"), at("validating")]).toMatchObject([
    { kind: "renew_incarnation", lostObligations: 3 },
    { kind: "renew_incarnation", lostObligations: null },
  ]);
});

test.each(["creating", "retiring"] as const)(
  "an instance whose step ended without its consequences does not stay %s for ever (D14)",
  (phase) => {
    expect(kinds(poolOf({ desired: 0 }, [instance(phase)]))).toEqual([phase === "creating" ? "move orders-a" : "delete_instance orders-a"]);
  },
);

describe("a replica that was given up", () => {
  const sealing = (lostAt: number | null, protocol = "relevo/v1") => {
    const gateways = [
      { replica: "gw-1", applied: null, silent: true, lostAt },
      { replica: "gw-2", applied: epoch(0, 10), silent: false, lostAt: null },
    ];
    const { decisions, holds } = planPool(poolOf({ desired: 0, spec: { service: { protocol } } }, [draining()], { gateways }), NOON);
    return [
      ...decisions.map((each) => (each.kind === "move" ? `${each.to} ${each.seal}` : each.kind)),
      ...holds.map((each) => each.reason.code),
    ];
  };

  test("may still send to what it knows: its door is shut, and the seal is only assumed, however long ago it was (D5)", () => {
    expect(sealing(NOON - 1_000)).toEqual(["close_instance"]);
  });

  test("knows nothing of what was made since: that is sealed as confirmed", () => {
    expect(sealing(NOON - 600_000)).toEqual(["sealed confirmed"]);
  });

  test("may hold requests that only the instance knows of: its door is not shut before it has said that there are none (D5)", () => {
    const gateways = [{ replica: "gw-1", applied: null, silent: true, lostAt: null }];
    const { decisions, holds } = planPool(poolOf({ desired: 0 }, [draining({ ownObligations: null })], { gateways }), NOON);
    expect([decisions, holds.map((each) => each.reason.code)]).toEqual([[], ["drain_in_progress"]]);
  });

  test("is waited for where there is no door, until it is given up", () => {
    expect([sealing(null, "none"), sealing(NOON - 1_000, "none")]).toEqual([["waiting_for_silent_replica"], ["sealed assumed"]]);
  });
});

test("a nearer deadline than the recorded one counts as soon as it is seen (S4, I3)", () => {
  const interrupted = node("z", { cordoned: "by_us", findings: [finding("spot_interruption", at("12:00:10"), "n2")] });
  const pool = (phase: "serving" | "draining") =>
    poolOf({}, [
      instance(phase, {
        on: [interrupted],
        evidence: ["scheduled_maintenance"],
        deadline: at("18:00:00"),
        record: { drainDeadline: at("18:00:00") },
      }),
    ]);
  const deadlines = (phase: "serving" | "draining") =>
    planPool(pool(phase), NOON).decisions.flatMap((each) => (each.kind === "drain_instance" ? each.deadline : []));
  expect([deadlines("serving"), deadlines("draining")]).toEqual([[at("12:00:10")], [at("12:00:10")]]);
});
