import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { at, draining, finding, instance, node, NOON, openStepOf, pod, poolOf, serving } from "../../test/builders/pool.ts";
import { EVIDENCE_REASONS } from "../model/evidence.ts";
import { PHASES } from "../model/phase.ts";
import { capacityLimit } from "../model/pool.ts";
import { REASONS } from "../model/reasons.ts";
import type { Effect, Move, Plan } from "./decision.ts";
import { planPool } from "./plan.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";

/** Decisions without their reasons, short enough to be compared whole. */
const brief = ({ decisions }: Plan): readonly string[] => decisions.map(line);

function line(decision: Effect | Move): string {
  switch (decision.kind) {
    case "add_instance":
      return `add #${decision.ordinal} ${decision.purpose}${decision.replaces === null ? "" : ` for ${decision.replaces}`}`;
    case "record_evidence":
      return `evidence ${decision.evidence.instance} ${decision.evidence.reason}${decision.evidence.nodeName === null ? "" : ` ${decision.evidence.nodeName}`}`;
    case "move":
      return `move ${decision.instance} ${decision.from}→${decision.to}${decision.failure ? ` ${decision.failure}` : ""}${decision.seal ? ` ${decision.seal}` : ""}`;
    case "cordon_node":
      return `cordon ${decision.node.name}`;
    case "drain_instance":
      return `drain ${decision.instance} ${decision.loss}`;
    case "trust":
      return `trust ${decision.instance} ${decision.to}`;
    case "set_desired":
      return `size ${decision.from}→${decision.to}`;
    case "scale_target":
      return `target ${decision.from}→${decision.to}`;
    default:
      return `${decision.kind.replace("_instance", "").replace("_pod", "")} ${decision.instance}`;
  }
}

const holds = ({ holds: all }: Plan): readonly string[] => all.map(({ subject, reason }) => `${subject || "pool"}: ${reason.code}`);

describe("evidence", () => {
  test("drift on the last node is recorded although a foreign cordon is on the first (D9)", () => {
    const pool = poolOf({}, [serving({ on: [node("a", { cordoned: "by_other" }), node("z", { drifted: true })] })]);
    expect(brief(planPool(pool, NOON))).toEqual(["evidence orders-a node_drifted z"]);
  });

  test("what is recorded is not recorded again, whatever is seen now (D3, I3)", () => {
    const pool = poolOf({}, [serving({ on: [node("z", { findings: [finding("node_deleting")] })], evidence: ["node_drifted"] })]);
    expect(brief(planPool(pool, NOON))).not.toContain("evidence orders-a node_deleting z");
  });

  test("a graver class is recorded beside a lighter one", () => {
    const gone = node("z", { findings: [finding("node_drifted"), finding("spot_interruption", at("12:00:20"), "notice-1")] });
    const pool = poolOf({}, [serving({ on: [gone], evidence: ["node_drifted"] })]);
    expect(brief(planPool(pool, NOON))).toContain("evidence orders-a spot_interruption z");
  });

  test("with mode Off nothing that is seen of nodes is decided (D1, I26)", () => {
    const bad = node("z", { drifted: true, findings: [finding("node_drifted"), finding("spot_interruption", at("12:00:20"))] });
    const pool = poolOf({ disruption: { mode: "Off" } }, [serving({ on: [bad], pods: [pod("p", bad, { protectedByUs: false })] })]);
    expect(brief(planPool(pool, NOON))).toEqual([]);
  });

  test("with mode Observe evidence is recorded and what would be done is said (D1)", () => {
    const drifted = node("z", { drifted: true });
    const observed = poolOf({ disruption: { mode: "Observe" } }, [serving({ on: [drifted] })]);
    expect(brief(planPool(observed, NOON))).toEqual(["evidence orders-a node_drifted z"]);
    const recorded = poolOf({ disruption: { mode: "Observe" } }, [serving({ on: [drifted], evidence: ["node_drifted"] })]);
    expect([brief(planPool(recorded, NOON)), holds(planPool(recorded, NOON))]).toEqual([[], ["orders-a: mode_observe"]]);
  });

  test("a lost process is recorded in every mode: a repair is no disruption (D12)", () => {
    const pool = poolOf({ disruption: { mode: "Off" } }, [
      serving({ lost: "node_lost", health: { state: "failing", since: NOON - 4_000, code: "refused" } }),
    ]);
    expect(brief(planPool(pool, NOON))).toEqual(["evidence orders-a node_lost n1", "trust orders-a suspect"]);
  });

  test("a process that fails our check is looked at again at the moment when it counts as lost", () => {
    const health = { state: "failing", since: NOON - 4_000, code: "timeout" } as const;
    const plan = planPool(poolOf({ disruption: { unreachableAfter: "10s" } }, [serving({ health })]), NOON);
    expect([brief(plan), plan.nextLookAt]).toEqual([["trust orders-a suspect"], NOON + 6_000]);
  });

  test("a lost process is not believed before the observer has settled, and says so (D11)", () => {
    const pool = poolOf({}, [serving({ lost: "node_lost" })], { settledAt: NOON + 3_000 });
    expect([brief(planPool(pool, NOON)), holds(planPool(pool, NOON))]).toEqual([[], ["orders-a: observer_new", "orders-a: serving"]]);
  });

  test("while the brake is on, our own failing check alone condemns nobody", () => {
    const health = { state: "failing", since: NOON - 20_000, code: "timeout" } as const;
    const pool = poolOf({}, [serving({ lost: "process_unreachable", health })], { brake: { suspect: 3, total: 4 } });
    expect(brief(planPool(pool, NOON))).toEqual(["trust orders-a suspect"]);
    expect(holds(planPool(pool, NOON))).toContain("pool: brake");
  });
});

describe("a voluntary replacement", () => {
  const drifted = node("z", { drifted: true });

  test("cordons the node and creates the replacement before anything drains (D4, D5, D6)", () => {
    const pool = poolOf({}, [serving({ on: [drifted], evidence: ["node_drifted"] })]);
    const plan = planPool(pool, NOON);
    expect(brief(plan)).toEqual(["cordon z", "add #0 replace for orders-a"]);
    expect(holds(plan)).toEqual(["orders-a: serving_not_above_desired"]);
  });

  test("is not asked for twice", () => {
    const pool = poolOf({}, [
      serving({ on: [node("z", { drifted: true, cordoned: "by_us" })], evidence: ["node_drifted"] }),
      instance("preparing", {
        id: "orders-b",
        pods: [],
        record: { purpose: "replace", replaces: "orders-a", incarnation: { ...serving().record.incarnation, number: 0 } },
      }),
    ]);
    const plan = planPool(pool, NOON);
    expect(brief(plan)).toEqual([]);
    expect(holds(plan)).toEqual(["orders-b: waiting_for_schedule", "orders-a: waiting_for_replacement"]);
  });

  test("drains once more instances serve than are desired (D6, I5)", () => {
    const pool = poolOf({}, [
      serving({ on: [node("z", { drifted: true, cordoned: "by_us" })], evidence: ["node_drifted"] }),
      serving({ id: "orders-b", record: { purpose: "replace", replaces: "orders-a" } }),
    ]);
    expect(brief(planPool(pool, NOON))).toEqual(["drain orders-a voluntary"]);
  });

  test("also when desired exceeds the floor (D6)", () => {
    const pool = poolOf({ desired: 3, floor: 1 }, [
      serving({ id: "a", evidence: ["node_drifted"], on: [node("z", { cordoned: "by_us" })] }),
      serving({ id: "b", record: { ordinal: 1 } }),
      instance("preparing", { id: "c", record: { ordinal: 2 }, pods: [] }),
    ]);
    expect(brief(planPool(pool, NOON)).filter((each) => each.startsWith("drain"))).toEqual([]);
  });

  test("goes on when drift has cleared and mode was turned Off (D10)", () => {
    const pool = poolOf({ disruption: { mode: "Off" } }, [
      serving({ on: [node("z", { cordoned: "by_us" })], evidence: ["node_drifted"] }),
      serving({ id: "orders-b", record: { purpose: "replace", replaces: "orders-a" } }),
    ]);
    expect(brief(planPool(pool, NOON))).toEqual(["drain orders-a voluntary"]);
  });

  test("goes on with another candidate after the first failed, though mode was turned Off (D10, D14)", () => {
    const old = serving({ on: [node("z", { cordoned: "by_us" })], evidence: ["node_drifted"] });
    const failed = instance("failed", { id: "orders-b", record: { purpose: "replace", replaces: "orders-a", failure: "x" } });
    const off = { disruption: { mode: "Off" } };
    expect(holds(planPool(poolOf(off, [old, failed]), NOON))).not.toContain("orders-a: mode_off");
    const failures = [{ instance: "orders-b", at: at("11:59:00"), failure: "x", replaces: "orders-a", purpose: "replace" as const }];
    expect(brief(planPool(poolOf(off, [old], { failures }), NOON))).toEqual(["add #0 replace for orders-a"]);
  });

  test("is not begun when mode is Off, and the reason says so (D1, D11)", () => {
    const pool = poolOf({ disruption: { mode: "Off" } }, [serving({ on: [drifted], evidence: ["node_drifted"] })]);
    expect([brief(planPool(pool, NOON)), holds(planPool(pool, NOON))]).toEqual([[], ["orders-a: mode_off"]]);
  });

  test("one at a time with surge 1; the other says why it waits", () => {
    const pool = poolOf({ desired: 2 }, [
      serving({ id: "a", evidence: ["node_drifted"], on: [node("y", { cordoned: "by_us" })] }),
      serving({ id: "b", evidence: ["node_drifted"], on: [node("z", { cordoned: "by_us" })], record: { ordinal: 1 } }),
    ]);
    const plan = planPool(pool, NOON);
    expect(brief(plan)).toEqual(["add #0 replace for a"]);
    expect(holds(plan)).toContain("b: surge_used");
  });

  test("a drain that never ends uses no surge and does not block the next (D5)", () => {
    const pool = poolOf({ desired: 2 }, [
      draining({ id: "a", evidence: ["node_drifted"], on: [node("y", { cordoned: "by_us" })], obligations: { requests: 1, sessions: 0 } }),
      serving({ id: "a2", record: { replaces: "a", purpose: "replace" } }),
      serving({ id: "b", evidence: ["node_drifted"], on: [node("z", { cordoned: "by_us" })], record: { ordinal: 1 } }),
    ]);
    const plan = planPool(pool, NOON);
    expect(brief(plan)).toEqual(["add #1 replace for b"]);
    expect(holds(plan)).toContain("a: drain_in_progress");
  });

  test("an overdue drain is reported and nothing is killed (D5)", () => {
    const pool = poolOf({}, [
      draining({
        evidence: ["node_drifted"],
        obligations: { requests: 1, sessions: 0 },
        on: [node("z", { cordoned: "by_us" })],
        record: { drainSince: NOON - 11 * 60_000 },
      }),
      serving({ id: "b" }),
    ]);
    expect([brief(planPool(pool, NOON)), holds(planPool(pool, NOON))]).toEqual([[], ["b: serving", "orders-a: drain_overdue"]]);
  });
});

describe("a cordon", () => {
  test("waits for a complete inventory; the evidence does not (D8, D9, I6)", () => {
    const lost = node("z", { drifted: true });
    const incomplete = { inventory: { state: "incomplete", missing: "the node of pod q" } } as const;
    expect(brief(planPool(poolOf({}, [serving({ on: [lost] })], incomplete), NOON))).toEqual(["evidence orders-a node_drifted z"]);
    const plan = planPool(poolOf({}, [serving({ on: [lost], evidence: ["node_drifted"] })], incomplete), NOON);
    expect(brief(plan)).toEqual(["add #0 replace for orders-a"]);
    expect(holds(plan)).toContain("z: inventory_incomplete");
  });

  test("is never set while the inventory has an error (I6)", () => {
    const pool = poolOf({}, [serving({ on: [node("z", { drifted: true })], evidence: ["node_drifted"] })], {
      inventory: { state: "error", error: "timeout" },
    });
    expect(brief(planPool(pool, NOON))).toEqual(["add #0 replace for orders-a"]);
    expect(holds(planPool(pool, NOON))).toContain("z: inventory_error");
  });

  test("leaves a node alone that somebody else cordoned (D4, I7)", () => {
    const pool = poolOf({}, [serving({ on: [node("z", { drifted: true, cordoned: "by_other" })], evidence: ["node_drifted"] })]);
    expect(brief(planPool(pool, NOON))).toEqual(["add #0 replace for orders-a"]);
    expect(holds(planPool(pool, NOON))).toContain("z: foreign_cordon");
  });

  test("is not set on a node of the same name with another UID (D4, I6)", () => {
    const first = serving({ on: [node("z", { drifted: true })], evidence: ["node_drifted"] });
    const replaced = pod("orders-a-0", node("z", { uid: "uid-another", drifted: true }));
    expect(brief(planPool(poolOf({}, [{ ...first, pods: [replaced] }]), NOON))).toEqual(["add #0 replace for orders-a"]);
  });
});

describe("a deadline", () => {
  const going = node("z", { cordoned: "by_us", findings: [finding("spot_interruption", at("12:01:00"))] });
  const condemned = (input: object = {}) => serving({ on: [going], evidence: ["spot_interruption"], deadline: at("12:01:00"), ...input });

  test("asks for the replacement at once and drains when it serves (S4)", () => {
    expect(brief(planPool(poolOf({}, [condemned()]), NOON))).toEqual(["add #0 replace for orders-a"]);
    const ready = poolOf({}, [condemned(), serving({ id: "b", record: { replaces: "orders-a", purpose: "replace" } })]);
    expect(brief(planPool(ready, NOON))).toEqual(["drain orders-a deadline"]);
  });

  test("drains without a replacement at the latest moment that leaves the drain its time (S4)", () => {
    const pool = poolOf({}, [
      condemned(),
      instance("preparing", { id: "b", pods: [], record: { replaces: "orders-a", purpose: "replace" } }),
    ]);
    expect(planPool(pool, NOON).nextLookAt).toBe(at("12:00:45"));
    expect(brief(planPool(pool, at("12:00:44")))).toEqual([]);
    expect(brief(planPool(pool, at("12:00:45")))).toEqual(["drain orders-a deadline"]);
  });

  test("is not bounded by surge (design: deadline and forced ones are bounded by quota)", () => {
    const pool = poolOf({ desired: 2 }, [condemned({ id: "a" }), condemned({ id: "b", record: { ordinal: 1 } })]);
    expect(brief(planPool(pool, NOON))).toEqual(["add #0 replace for a", "add #1 replace for b"]);
  });

  test("of one whose successor does not serve yet is not met by the successor of another: both together would leave too few (S4)", () => {
    const first = condemned({ id: "a" });
    const second = condemned({ id: "b", record: { ordinal: 1 } });
    const ofSecond = serving({ id: "c", record: { ordinal: 1, replaces: "b", purpose: "replace" } });
    const ofFirst = instance("preparing", { id: "d", pods: [], record: { replaces: "a", purpose: "replace" } });
    const pool = poolOf({ desired: 2 }, [first, second, ofSecond, ofFirst]);
    expect(brief(planPool(pool, NOON))).toEqual(["drain b deadline"]);
    // One that serves beyond all that are desired or promised may be gone by.
    const more = poolOf({ desired: 2 }, [first, second, ofSecond, ofFirst, serving({ id: "e", record: { ordinal: 2 } })]);
    expect(brief(planPool(more, NOON)).filter((line) => line.startsWith("drain"))).toEqual(["drain a deadline", "drain b deadline"]);
  });

  test("that becomes known during a voluntary drain is told to the instance", () => {
    const pool = poolOf({}, [
      draining({ on: [going], evidence: ["node_drifted", "spot_interruption"], deadline: at("12:01:00") }),
      serving({ id: "b" }),
    ]);
    expect(
      brief(planPool({ ...pool, instances: pool.instances.map((each) => ({ ...each, obligations: { requests: 1, sessions: 0 } })) }, NOON)),
    ).toEqual(["drain orders-a deadline"]);
  });
});

test("a deadline without a time may come at any moment: the drain begins at once (S4)", () => {
  const pool = poolOf({}, [serving({ on: [node("z", { cordoned: "by_us" })], evidence: ["instance_state_change"] })]);
  expect(brief(planPool(pool, NOON))).toEqual(["add #0 replace for orders-a", "drain orders-a deadline"]);
});

describe("a forced loss", () => {
  test("drains at once, is sealed when the gateways have applied it, and is replaced as a repair (D13, D18)", () => {
    const lost = serving({
      evidence: ["node_lost"],
      health: { state: "failing", since: NOON, code: "refused" },
      record: { trust: "fenced" },
    });
    expect(brief(planPool(poolOf({}, [lost]), NOON))).toEqual(["drain orders-a forced"]);
    const leaving = draining({ evidence: ["node_lost"], record: { trust: "fenced", drainLoss: "forced" } });
    expect(brief(planPool(poolOf({}, [leaving]), NOON))).toEqual(["move orders-a draining→sealed forced", "add #0 replace for orders-a"]);
  });

  test("a draining instance whose process is replaced leaves the drain as a forced loss (D13)", () => {
    const next = { ...serving().record.incarnation, number: 2, containerId: "c2" };
    const pool = poolOf({}, [draining({ newIncarnation: next, obligations: { requests: 2, sessions: 1 } }), serving({ id: "b" })]);
    expect(planPool(pool, NOON).decisions).toMatchObject([
      { kind: "move", to: "sealed", seal: "forced", lostObligations: 3, drain: { loss: "forced" } },
    ]);
  });

  test("what ends at its deadline is counted as deadline, not as forced (D18)", () => {
    const leaving = draining({
      on: [node("z", { cordoned: "by_us" })],
      evidence: ["spot_interruption", "node_lost"],
      deadline: at("11:59:59"),
      record: { trust: "fenced", drainLoss: "deadline", drainDeadline: at("11:59:59") },
    });
    expect(planPool(poolOf({}, [leaving, serving({ id: "b" })]), NOON).decisions).toEqual([
      {
        kind: "move",
        instance: "orders-a",
        from: "draining",
        to: "sealed",
        seal: "forced",
        lostObligations: 0,
        reason: { code: "process_lost", params: {} },
      },
    ]);
  });

  test("a restarted process is prepared and admitted anew, as the same instance", () => {
    const next = { ...serving().record.incarnation, number: 2, containerId: "c2" };
    expect(brief(planPool(poolOf({}, [serving({ newIncarnation: next })]), NOON))).toEqual(["renew_incarnation orders-a"]);
  });
});

describe("a candidate", () => {
  const candidate = (input: object = {}) =>
    instance("preparing", { id: "b", record: { replaces: "orders-a", purpose: "replace" }, ...input });
  const condemned = serving({ on: [node("z", { cordoned: "by_us" })], evidence: ["node_drifted"] });

  test.each([
    ["drifting", node("y", { drifted: true }), "node_drifting"],
    ["being deleted", node("y", { deleting: true }), "node_deleting"],
    ["cordoned", node("y", { cordoned: "by_other" }), "node_cordoned"],
    ["of an unknown owner", node("y", { owned: false }), "node_owner_unknown"],
    ["about to be interrupted", node("y", { findings: [finding("spot_interruption", at("12:02:00"))] }), "node_about_to_go"],
  ])("on a node that is %s is given up (D7)", (_, bad, failure) => {
    expect(brief(planPool(poolOf({}, [condemned, candidate({ on: [bad] })]), NOON))).toContain(`move b preparing→failed ${failure}`);
  });

  test("waits quietly for a place, without end (D7, D8)", () => {
    const plan = planPool(poolOf({}, [condemned, candidate({ pods: [pod("b-0", null)] })]), at("13:00:00"));
    expect([brief(plan), holds(plan)]).toEqual([[], ["b: waiting_for_schedule", "orders-a: waiting_for_replacement"]]);
  });

  test("whose objects are gone is given up, not waited for: no pod will ever come (D7)", () => {
    const orphan = candidate({ pods: [], objectsGone: true, record: { replaces: "orders-a", purpose: "replace", phaseSince: NOON } });
    expect(brief(planPool(poolOf({}, [condemned, orphan]), NOON))).toEqual(["move b preparing→failed objects_gone"]);
  });

  test("that is not ready in time fails and is cleaned up, and occupies capacity until then (D14)", () => {
    const stuck = candidate({ pods: [pod("b-0", node("y"), { ready: false })] });
    expect(brief(planPool(poolOf({}, [condemned, stuck]), at("12:00:59")))).toEqual([]);
    expect(brief(planPool(poolOf({}, [condemned, stuck]), at("12:01:00")))).toContain("move b preparing→failed not_ready_in_time");
    const failed = instance("failed", { id: "b", record: { replaces: "orders-a", failure: "not_ready_in_time" } });
    expect(brief(planPool(poolOf({}, [condemned, failed]), NOON))).toContain("delete b");
  });

  test("is not given up for time while the cluster cannot be read (D12)", () => {
    const stuck = candidate({ pods: [pod("b-0", node("y"), { ready: false })] });
    const plan = planPool(poolOf({}, [condemned, stuck], { inventory: { state: "error", error: "kube_unavailable" } }), at("13:00:00"));
    expect([brief(plan), holds(plan)]).toEqual([[], ["b: waiting_for_pods", "orders-a: waiting_for_replacement"]]);
  });

  test("is admitted only after its own health check passed (I11)", () => {
    const unknown = instance("validating", { id: "b", health: { state: "unknown" }, record: { phaseSince: NOON } });
    expect(holds(planPool(poolOf({}, [unknown]), NOON))).toContain("b: waiting_for_health");
    expect(brief(planPool(poolOf({}, [instance("validating", { id: "b" })]), NOON))).toEqual(["admit b"]);
    const late = poolOf({}, [instance("validating", { id: "b" })], { openSteps: [openStepOf("admit_instance", "b")] });
    expect(brief(planPool(late, at("12:01:00")))).toEqual(["move b validating→failed not_ready_in_time"]);
  });

  const failures = (times: readonly string[], replaces: string | null) => ({
    failures: times.map((time) => ({ instance: "x", at: at(time), failure: "not_ready_in_time", replaces, purpose: "replace" as const })),
  });

  test("after a failure the next waits, longer each time; after too many it is held with its reason (D14, I18)", () => {
    const pool = (times: readonly string[]) => poolOf({}, [condemned], failures(times, "orders-a"));
    expect(holds(planPool(pool(["11:59:59.500"]), NOON))).toContain("orders-a: candidate_backoff");
    expect(brief(planPool(pool(["11:59:58"]), NOON))).toEqual(["add #0 replace for orders-a"]);
    expect(holds(planPool(pool(["11:59:50", "11:59:59"]), NOON))).toContain("orders-a: candidate_backoff");
    const many = ["11:55:00", "11:56:00", "11:57:00", "11:58:00"];
    expect(holds(planPool(pool(many), NOON))).toContain("orders-a: candidates_held");
    expect(planPool(pool(many), NOON).nextLookAt).toBe(at("12:05:00"));
    expect(brief(planPool(pool(many), at("12:05:00")))).toEqual(["add #0 replace for orders-a"]);
  });

  test("that keeps failing does not stop an unrelated repair (D14, I15)", () => {
    const many = failures(["11:55:00", "11:56:00", "11:57:00", "11:58:00"], "orders-a");
    const lost = draining({ id: "b", evidence: ["node_lost"], record: { ordinal: 1, drainLoss: "forced", trust: "fenced" } });
    expect(brief(planPool(poolOf({ desired: 2 }, [condemned, lost], many), NOON))).toEqual([
      "move b draining→sealed forced",
      "add #1 replace for b",
    ]);
  });
});

describe("a seal", () => {
  const leaving = (input: object = {}) =>
    poolOf({}, [draining({ evidence: ["node_drifted"], on: [node("z", { cordoned: "by_us" })], ...input }), serving({ id: "b" })]);

  test("needs every replica's generation and no obligation, the instance's own included (D5)", () => {
    expect(brief(planPool(leaving(), NOON))).toEqual(["move orders-a draining→sealed confirmed"]);
    expect(holds(planPool(leaving({ drainAppliedEverywhere: false }), NOON))).toContain("orders-a: waiting_for_gateways");
    expect(holds(planPool(leaving({ obligations: { requests: 0, sessions: 1 } }), NOON))).toContain("orders-a: drain_in_progress");
    expect(holds(planPool(leaving({ ownObligations: 1 }), NOON))).toContain("orders-a: drain_in_progress");
    expect(holds(planPool(leaving({ obligations: null }), NOON))).toContain("orders-a: drain_in_progress");
  });

  test("a process that does not answer may have ended with what it had: that is no confirmed seal (D13)", () => {
    expect(holds(planPool(leaving({ ownObligations: null }), NOON))).toContain("orders-a: drain_in_progress");
  });

  test("a drain with a deadline ends a minute after it, also where the machine was spared; one without has no end (D18)", () => {
    const going = (over: object) => leaving({ evidence: ["scheduled_maintenance"], obligations: { requests: 1, sessions: 0 }, ...over });
    const record = { drainLoss: "deadline", drainDeadline: NOON - 60_000 };
    expect(brief(planPool(going({ record }), NOON))).toEqual(["move orders-a draining→sealed forced"]);
    expect(planPool(going({ record: { ...record, drainDeadline: NOON - 59_999 } }), NOON).nextLookAt).toBe(NOON + 1);
    expect(brief(planPool(going({ record: { ...record, drainDeadline: NOON - 59_999 } }), NOON))).toEqual([]);
    expect(brief(planPool(leaving({ obligations: { requests: 1, sessions: 0 }, record: { drainSince: 0 } }), NOON))).toEqual([]);
  });

  test("with a silent replica the door at the instance is shut first, and not before the observer has settled", () => {
    const silent = { gateways: [{ replica: "gw-1", applied: null, silent: true, lostAt: null }] };
    expect(brief(planPool({ ...leaving(), ...silent }, NOON))).toEqual(["close orders-a"]);
    expect(brief(planPool({ ...leaving(), ...silent, settledAt: NOON + 1 }, NOON))).toEqual([]);
  });

  test("only what is sealed is deleted", () => {
    expect(brief(planPool(poolOf({ desired: 0, floor: 0, max: 1 }, [instance("sealed")]), NOON))).toEqual(["delete orders-a"]);
    const retired = (objectsGone: boolean | null) =>
      brief(planPool(poolOf({ desired: 0, floor: 0, max: 1 }, [instance("retired", { objectsGone })]), NOON));
    expect([retired(false), retired(null), retired(true)]).toEqual([[], [], ["move orders-a retired→deleted"]]);
  });

  test("what was only just made may be unseen rather than gone; a clock that was set back keeps nobody (D5)", () => {
    const retired = (createdAt: number) =>
      planPool(
        poolOf({ desired: 0, floor: 0, max: 1 }, [instance("retired", { objectsGone: true, record: { phase: "retired", createdAt } })]),
        NOON,
      );
    expect(brief(retired(NOON - 9_999))).toEqual([]);
    expect(retired(NOON - 9_999).nextLookAt).toBe(NOON + 1);
    expect(brief(retired(NOON - 10_000))).toEqual(["move orders-a retired→deleted"]);
    expect(brief(retired(NOON + 1))).toEqual(["move orders-a retired→deleted"]);
  });
});

describe("size", () => {
  test("fills every free place, and no more", () => {
    expect(brief(planPool(poolOf({ desired: 3 }, [serving({ record: { ordinal: 1 } })]), NOON))).toEqual(["add #0 fill", "add #2 fill"]);
  });

  test("drains the highest ordinal when more serve than are desired", () => {
    expect(brief(planPool(poolOf({ desired: 1 }, [serving({ id: "a" }), serving({ id: "b", record: { ordinal: 1 } })]), NOON))).toEqual([
      "drain b voluntary",
    ]);
  });

  test("a replacement that had to go itself is replaced once: its successor is that of both (I21)", () => {
    const first = serving({ id: "a", evidence: ["node_drifted"] });
    const between = draining({ id: "b", evidence: ["process_unreachable"], record: { replaces: "a", purpose: "replace" } });
    const last = serving({ id: "c", record: { replaces: "b", purpose: "replace" } });
    const other = serving({ id: "d", record: { ordinal: 1 } });
    const decided = (instances: readonly InstanceSnapshot[]) =>
      brief(planPool(poolOf({ desired: 2 }, instances), NOON)).filter((each) => !each.startsWith("cordon"));
    expect(decided([first, between, last, other])).toEqual(["trust b fenced", "move b draining→sealed forced", "drain a voluntary"]);
    expect(decided([first, instance("preparing", { id: "c", record: { replaces: "b", purpose: "replace" } }), other])).not.toContain(
      "add #0 replace for a",
    );
  });

  test("two that hold one place while another is free: the free one is filled, then one of the two is drained", () => {
    const twice = [serving({ id: "a" }), serving({ id: "b" })];
    const filled = serving({ id: "c", record: { ordinal: 1 } });
    expect(brief(planPool(poolOf({ desired: 2 }, twice), NOON))).toEqual(["add #1 fill"]);
    const coming = instance("validating", { id: "c", health: { state: "unknown" }, record: { ordinal: 1 } });
    expect(brief(planPool(poolOf({ desired: 2 }, [...twice, coming]), NOON))).toEqual([]);
    expect(brief(planPool(poolOf({ desired: 2 }, [...twice, filled]), NOON))).toEqual(["drain a voluntary"]);
  });

  test("a pool that goes keeps within its voluntary drains, also of those that nobody serves from yet (D6)", () => {
    const instances = ["a", "b", "c"].map((id, ordinal) => instance("admitted", { id, appliedEverywhere: false, record: { ordinal } }));
    const pool = poolOf({ desired: 3, disruption: { draining: 2 } }, instances, { deleting: true });
    expect(brief(planPool({ ...pool, spec: { ...pool.spec, deletion: "drain" } }, NOON))).toEqual([
      "drain c voluntary",
      "drain b voluntary",
    ]);
  });

  test("never occupies more than max, surge and draining together", () => {
    const full = Array.from({ length: 5 }, (_, index) => instance("retired", { id: `r${index}`, record: { ordinal: index } }));
    const plan = planPool(poolOf({ desired: 1, max: 2 }, full), NOON);
    expect(brief(plan)).toEqual([]);
    expect(holds(plan)).toContain("pool: capacity_used");
  });

  test("a pool that is deleted with policy refuse goes on, and says why (D11)", () => {
    const plan = planPool(poolOf({}, [serving()], { deleting: true }), NOON);
    expect([brief(plan), holds(plan)]).toEqual([[], ["pool: deletion_refused", "orders-a: serving"]]);
  });
});

test.each([
  ["nobody froze it", "", ["pool: deletion_cause_unknown"]],
  ["somebody froze it too", "; ann: an audit", ["pool: deletion_cause_unknown", "pool: frozen"]],
])("a pool that is held because nobody knows why it is deleted says that, and as frozen only when %s", (_, other, told) => {
  const why =
    "it is being deleted, and whether its CRD or its namespace goes too cannot be read, so nothing of it is drained: answered 503";
  const freeze = { until: NOON + 10_000, why: `${why}${other}`, by: "relevo" };
  const plan = planPool(poolOf({}, [instance("serving")], { deleting: true, freeze, deletionCauseUnknown: "answered 503" }), NOON);
  expect([brief(plan), holds(plan)]).toEqual([[], told]);
});

test("while frozen nothing new is begun, what was promised a deadline still moves, and the reason is said", () => {
  const freeze = { until: at("13:00:00"), why: "audit", by: "eve" };
  const going = node("z", { cordoned: "by_us" });
  const pool = poolOf(
    { desired: 3 },
    [
      serving({ id: "a", on: [going], evidence: ["spot_interruption"], deadline: at("12:01:00") }),
      serving({ id: "b", evidence: ["node_drifted"], record: { ordinal: 1 } }),
    ],
    { freeze },
  );
  const plan = planPool(pool, NOON);
  expect([brief(plan), holds(plan)]).toEqual([["add #0 replace for a"], ["pool: frozen"]]);
});

test("a step that is open is not decided again", () => {
  const pool = poolOf({ desired: 0, floor: 0, max: 1 }, [instance("sealed")], { openSteps: [openStepOf("delete_instance", "orders-a")] });
  expect(brief(planPool(pool, NOON))).toEqual([]);
});

// ---- properties

const aNode = fc
  .record({
    name: fc.constantFrom("n1", "n2", "n3", "n4"),
    drifted: fc.boolean(),
    cordoned: fc.constantFrom(undefined, "by_us", "by_other"),
    owned: fc.boolean(),
    ready: fc.boolean(),
  })
  .map(({ name, drifted, cordoned, owned, ready }) =>
    node(name, { drifted, ready, owned, ...(cordoned === undefined ? {} : { cordoned: cordoned as "by_us" }) }),
  );

const anInstance = (id: string): fc.Arbitrary<InstanceSnapshot> =>
  fc
    .record({
      phase: fc.constantFrom(...PHASES.filter((phase) => phase !== "standby" && phase !== "deleted")),
      on: fc.array(aNode, { minLength: 1, maxLength: 3 }),
      evidence: fc.uniqueArray(fc.constantFrom(...(Object.keys(EVIDENCE_REASONS) as (keyof typeof EVIDENCE_REASONS)[])), {
        maxLength: 3,
        selector: (why) => EVIDENCE_REASONS[why],
      }),
      ordinal: fc.integer({ min: 0, max: 4 }),
      requests: fc.integer({ min: 0, max: 2 }),
      applied: fc.boolean(),
      ready: fc.boolean(),
      lost: fc.constantFrom(null, "node_lost" as const),
      replaces: fc.constantFrom(null, "i0", "i1"),
    })
    .map(({ phase, on, evidence, ordinal, requests, applied, lost, replaces }) =>
      instance(phase, {
        id,
        on,
        evidence,
        lost,
        deadline: at("12:00:30"),
        obligations: { requests, sessions: 0 },
        appliedEverywhere: applied,
        drainAppliedEverywhere: applied,
        record: { ordinal, replaces: replaces === id ? null : replaces, purpose: replaces === null ? "fill" : "replace" },
      }),
    );

const aPool: fc.Arbitrary<PoolSnapshot> = fc
  .record({
    desired: fc.integer({ min: 0, max: 4 }),
    mode: fc.constantFrom("Off", "Observe", "Act"),
    instances: fc.tuple(anInstance("i0"), anInstance("i1"), anInstance("i2"), anInstance("i3")),
    count: fc.integer({ min: 0, max: 4 }),
    inventory: fc.constantFrom(
      { state: "complete" } as const,
      { state: "incomplete", missing: "x" } as const,
      { state: "error", error: "y" } as const,
    ),
  })
  .map(({ desired, mode, instances, count, inventory }) =>
    poolOf({ desired, floor: 0, max: 4, disruption: { mode } }, instances.slice(0, count), { inventory }),
  );

const reorder = <T>(items: readonly T[], turn: number): readonly T[] =>
  turn % 2 === 0 ? items.toReversed() : [...items.slice(turn % (items.length || 1)), ...items.slice(0, turn % (items.length || 1))];

describe("properties", () => {
  test("the plan does not depend on the order of instances, pods or evidence (I17)", () => {
    fc.assert(
      fc.property(aPool, fc.integer({ min: 1, max: 5 }), (pool, turn) => {
        const shuffled = {
          ...pool,
          instances: reorder(pool.instances, turn).map((each) => ({
            ...each,
            evidence: reorder(each.evidence, turn),
            pods: reorder(each.pods, turn),
          })),
        };
        expect(planPool(shuffled, NOON)).toEqual(planPool(pool, NOON));
      }),
    );
  });

  test("a voluntary drain leaves as many serving as are desired (I5)", () => {
    fc.assert(
      fc.property(aPool, (pool) => {
        const drains = planPool(pool, NOON).decisions.filter(
          (each): each is Extract<Effect, { kind: "drain_instance" }> => each.kind === "drain_instance",
        );
        const phaseOf = (id: string) => pool.instances.find(({ record }) => record.id === id)?.record.phase;
        const left =
          pool.instances.filter(({ record }) => record.phase === "serving").length -
          drains.filter(({ instance: id }) => phaseOf(id) === "serving").length;
        if (drains.some(({ loss }) => loss === "voluntary")) expect(left).toBeGreaterThanOrEqual(pool.spec.size.desired);
      }),
    );
  });

  test("with mode Off no node is cordoned, no pod is marked and no evidence of nodes is recorded (I26)", () => {
    fc.assert(
      fc.property(aPool, (pool) => {
        const off = { ...pool, spec: { ...pool.spec, disruption: { ...pool.spec.disruption, mode: "Off" as const } } };
        const kinds = planPool(off, NOON).decisions.map((each) =>
          each.kind === "record_evidence" ? `evidence ${each.evidence.loss}` : each.kind,
        );
        expect(kinds.filter((kind) => ["cordon_node", "protect_pod", "evidence voluntary", "evidence deadline"].includes(kind))).toEqual(
          [],
        );
      }),
    );
  });

  test("what is occupied never exceeds what may be (design: max + surge + draining)", () => {
    fc.assert(
      fc.property(aPool, (pool) => {
        const added = planPool(pool, NOON).decisions.filter(({ kind }) => kind === "add_instance").length;
        if (added > 0) expect(pool.instances.length + added).toBeLessThanOrEqual(capacityLimit(pool.spec));
      }),
    );
  });

  test("every instance that is left alone has a reason, and every reason a sentence (D11)", () => {
    fc.assert(
      fc.property(aPool, (pool) => {
        const plan = planPool(pool, NOON);
        for (const { reason } of [...plan.decisions, ...plan.holds]) expect(Object.keys(REASONS)).toContain(reason.code);
        const touched = new Set([
          ...plan.decisions.flatMap((each) => ("instance" in each ? [each.instance] : [])),
          ...plan.decisions.flatMap((each) => (each.kind === "record_evidence" ? [each.evidence.instance] : [])),
          ...plan.holds.map(({ subject }) => subject),
        ]);
        for (const { record } of pool.instances)
          if (record.phase !== "creating" && record.phase !== "retiring") expect([...touched]).toContain(record.id);
      }),
    );
  });
});
