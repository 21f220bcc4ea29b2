import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { at, finding, instance, node, NOON, openStepOf, poolOf, serving } from "../../test/builders/pool.ts";
import { NO_ORDINAL } from "../model/instance.ts";
import { PHASES } from "../model/phase.ts";
import { capacityLimit } from "../model/pool.ts";
import type { Effect, Move, Plan } from "./decision.ts";
import { planPool } from "./plan.ts";
import type { InstanceSnapshot } from "./snapshot.ts";

const line = (decision: Effect | Move): string => {
  switch (decision.kind) {
    case "add_instance":
      return `add ${decision.purpose} #${decision.ordinal}${decision.replaces === null ? "" : ` for ${decision.replaces}`}`;
    case "take_standby":
      return `take ${decision.instance} #${decision.ordinal} for ${decision.replaces}`;
    case "move":
      return `move ${decision.instance} ${decision.from}→${decision.to} ${decision.failure ?? ""}`.trim();
    case "record_evidence":
      return `evidence ${decision.evidence.instance} ${decision.evidence.reason}`;
    case "cordon_node":
      return `cordon ${decision.node.name}`;
    default:
      return `${decision.kind} ${"instance" in decision ? decision.instance : ""}`;
  }
};
const brief = ({ decisions }: Plan): readonly string[] => decisions.map(line);
const holds = ({ holds: all }: Plan): readonly string[] => all.map(({ subject, reason }) => `${subject || "pool"}: ${reason.code}`);

type Input = NonNullable<Parameters<typeof instance>[1]>;
/** A standby of its own node, warm unless said otherwise. */
const standby = (id: string, { record = {}, ...rest }: Input = {}, phase: Parameters<typeof instance>[0] = "standby"): InstanceSnapshot =>
  instance(phase, {
    id,
    on: [node(`node-of-${id}`)],
    ...rest,
    record: { purpose: "standby", ordinal: NO_ORDINAL, admittedGeneration: null, ...record },
  });
const spec = (count: number, more: Parameters<typeof poolOf>[0] = {}): Parameters<typeof poolOf>[0] => ({
  ...more,
  spec: { standby: { count }, ...more.spec },
});
const going = node("z", { cordoned: "by_us", findings: [finding("spot_interruption", at("12:02:00"))] });
const noticed = (rest: Input = {}): InstanceSnapshot =>
  serving({ on: [going], evidence: ["spot_interruption"], deadline: at("12:02:00"), ...rest });
const unwell = { state: "failing", since: NOON - 2_000, code: "status_503" } as const;

describe("the number of standby", () => {
  test("is made beside what serves, one plan for all that are missing (S2)", () => {
    const plan = planPool(poolOf(spec(2), [serving()]), NOON);
    expect(brief(plan)).toEqual(["add standby #-1", "add standby #-1"]);
  });

  test("comes step by step when it is large: what there may be no place for is not made thousandfold (I15)", () => {
    const first = planPool(poolOf(spec(10_000), [serving()]), NOON);
    expect([brief(first).length, holds(first)]).toEqual([100, ["orders-a: serving", "pool: standby_paced"]]);
    const coming = Array.from({ length: 99 }, (_, index) => standby(`s${index}`, {}, "preparing"));
    const warm = Array.from({ length: 40 }, (_, index) => standby(`w${index}`));
    const next = planPool(poolOf(spec(10_000), [serving(), ...coming, ...warm]), NOON);
    expect([brief(next).filter((text) => text.startsWith("add")), holds(next)]).toEqual([
      ["add standby #-1"],
      expect.arrayContaining(["pool: standby_paced"]),
    ]);
  });

  test("waits while one that shall serve has no place yet", () => {
    const plan = planPool(poolOf(spec(1), []), NOON);
    expect([brief(plan), holds(plan)]).toEqual([["add fill #0"], ["pool: standby_waits"]]);
    const coming = instance("preparing", { pods: [], record: { incarnation: { ...serving().record.incarnation, number: 0 } } });
    expect(holds(planPool(poolOf(spec(1), [coming]), NOON))).toContain("pool: standby_waits");
  });

  test("does not count as serving and holds no place: a pool of one with one standby stays one", () => {
    const plan = planPool(poolOf(spec(1), [serving(), standby("s1")]), NOON);
    expect([brief(plan), holds(plan)]).toEqual([[], ["orders-a: serving", "s1: standby_ready", "pool: nothing_to_do"]]);
    expect(brief(planPool(poolOf(spec(1), [standby("s1")]), NOON))).toEqual(["add fill #0"]);
  });

  test("is bounded apart from the others: max + surge + draining + standby (I21)", () => {
    expect(capacityLimit(poolOf(spec(3, { desired: 2, max: 4 }), []).spec)).toBe(4 + 1 + 2 + 3);
    const leaving = standby("s1", {}, "retiring");
    const plan = planPool(poolOf(spec(1), [serving(), leaving], { openSteps: [openStepOf("delete_instance", "s1")] }), NOON);
    expect([brief(plan), holds(plan)]).toContainEqual(expect.arrayContaining(["pool: standby_room_used"]));
  });

  test("is given up when fewer are wanted, the least useful first", () => {
    const plan = planPool(poolOf(spec(1), [serving(), standby("s1"), standby("s2", { podsWanted: 2 }, "preparing")]), NOON);
    expect(brief(plan)).toContain("move s2 preparing→failed not_wanted");
    expect(brief(plan)).not.toContain("move s1 standby→failed not_wanted");
    const drained = poolOf(spec(1, { spec: { deletion: "drain" } }), [standby("s1")], { deleting: true });
    expect(brief(planPool(drained, NOON))).toEqual(["move s1 standby→failed not_wanted"]);
  });

  test("makes room for somebody more important, one for each, and is refilled once nobody needs it any more (S12)", () => {
    const two = [serving(), standby("s1"), standby("s2")];
    const asked = planPool(poolOf(spec(3), two, { makesRoom: 1 }), NOON);
    expect([brief(asked), asked.decisions[0]?.reason.code]).toEqual([["move s2 standby→failed makes_room"], "standby_makes_room"]);
    const failures = [{ instance: "s2", at: NOON - 1_000, failure: "makes_room", replaces: null, purpose: "standby" as const }];
    const given = planPool(poolOf(spec(3), two.slice(0, 2), { makesRoom: 1, failures }), NOON);
    expect([brief(given), holds(given)]).toEqual([[], ["orders-a: serving", "s1: standby_ready", "pool: standby_makes_room"]]);
    expect(brief(planPool(poolOf(spec(3), two.slice(0, 2), { failures }), NOON))).toEqual(["add standby #-1", "add standby #-1"]);
  });

  test("one whose candidates fail is tried less often, and keeps nobody else back (I15, I18)", () => {
    const failures = [{ instance: "s0", at: NOON - 200, failure: "not_ready_in_time", replaces: null, purpose: "standby" as const }];
    const plan = planPool(poolOf(spec(1, { desired: 2 }), [serving()], { failures }), NOON);
    expect(brief(plan)).toEqual(["add fill #1"]);
    expect(holds(planPool(poolOf(spec(1), [serving()], { failures }), NOON))).toContain("pool: candidate_backoff");
  });

  test("is kept in every mode, and not while the pool is frozen", () => {
    expect(brief(planPool(poolOf(spec(1, { disruption: { mode: "Off" } }), [serving()]), NOON))).toEqual(["add standby #-1"]);
    const freeze = { until: NOON + 60_000, why: "night", by: "me" };
    expect(brief(planPool(poolOf(spec(1), [serving()], { freeze }), NOON))).toEqual([]);
  });
});

describe("a standby", () => {
  test("is prepared when its check passed, and not admitted", () => {
    const plan = planPool(poolOf(spec(1), [serving(), standby("s1", {}, "validating")]), NOON);
    expect(brief(plan)).toEqual(["prepare_instance s1"]);
  });

  test("of a former blueprint is made anew, one at a time and never all at once", () => {
    const old = { record: { blueprintHash: "b0" } };
    const both = poolOf(spec(2), [serving(), standby("s1", old), standby("s2", old)]);
    expect(brief(planPool(both, NOON))).toEqual(["move s1 standby→failed outdated"]);
    const oneComes = poolOf(spec(2), [serving(), standby("s2", old), standby("s3", {}, "preparing")]);
    expect(brief(planPool(oneComes, NOON)).filter((each) => each.includes("outdated"))).toEqual([]);
  });

  test("whose node will go is given up (D7), and one whose process is lost too", () => {
    const bad = node("z", { findings: [finding("spot_interruption", at("12:02:00"))] });
    const seen = planPool(poolOf(spec(1), [serving(), standby("s1", { on: [bad] })]), NOON);
    expect(brief(seen)).toEqual(["evidence s1 spot_interruption"]);
    const recorded = planPool(poolOf(spec(1), [serving(), standby("s1", { on: [bad], evidence: ["spot_interruption"] })]), NOON);
    expect(brief(recorded)).toEqual(["cordon z", "move s1 standby→failed evidence_spot_interruption"]);
    const cordoned = planPool(poolOf(spec(1), [serving(), standby("s1", { on: [node("z", { cordoned: "by_other" })] })]), NOON);
    expect(brief(cordoned)).toContain("move s1 standby→failed node_cordoned");
    const lost = poolOf(spec(1), [serving(), standby("s1", { evidence: ["node_lost"], health: unwell })]);
    expect(brief(planPool(lost, NOON))).toContain("move s1 standby→failed evidence_node_lost");
  });

  test("that is not well for a moment is only not taken", () => {
    const plan = planPool(poolOf(spec(1), [serving(), standby("s1", { health: unwell })]), NOON);
    expect([brief(plan), holds(plan)]).toEqual([[], ["orders-a: serving", "s1: standby_unhealthy"]]);
  });

  test("whose container was restarted is prepared again", () => {
    const newIncarnation = { ...serving().record.incarnation, number: 2, containerId: "c2" };
    const plan = planPool(poolOf(spec(1), [serving(), standby("s1", { newIncarnation })]), NOON);
    expect(brief(plan)).toEqual(["renew_incarnation s1"]);
  });
});

describe("taking one", () => {
  test("at a notice: it takes the place of the one that goes, and the next look makes another (S2, S3)", () => {
    const plan = planPool(poolOf(spec(1), [noticed(), standby("s1")]), NOON);
    expect(brief(plan)).toEqual(["take s1 #0 for orders-a"]);
    const taken = standby("s1", { record: { purpose: "replace", replaces: "orders-a", ordinal: 0 } });
    expect(brief(planPool(poolOf(spec(1), [noticed(), taken]), NOON))).toEqual(["admit_instance s1", "add standby #-1"]);
    expect(plan.decisions[0]?.reason).toEqual({
      code: "standby_taken",
      params: { standby: "s1", instance: "orders-a", evidence: "spot_interruption of z" },
    });
  });

  test("for a lost process: without room for another one too", () => {
    const lost = instance("sealed", { evidence: ["node_lost"], record: { drainLoss: "forced" } });
    const plan = planPool(
      poolOf(spec(1, { disruption: { mode: "Off" } }), [lost, standby("s1")], { openSteps: [openStepOf("delete_instance", "orders-a")] }),
      NOON,
    );
    expect(brief(plan)).toEqual(["take s1 #0 for orders-a"]);
  });

  test("for a voluntary replacement, bounded by surge, and not the one that a graver loss needs", () => {
    const drifted = (id: string) =>
      serving({
        id,
        on: [node(`n-${id}`, { drifted: true, cordoned: "by_us" })],
        evidence: ["node_drifted"],
        record: { ordinal: id === "a" ? 0 : 1 },
      });
    const two = poolOf(spec(2, { desired: 2 }), [drifted("a"), drifted("b"), standby("s1"), standby("s2")]);
    expect(brief(planPool(two, NOON))).toEqual(["take s1 #0 for a"]);
    const both = poolOf(spec(1, { desired: 2 }), [drifted("a"), noticed({ id: "b", record: { ordinal: 1 } }), standby("s1")]);
    const plan = planPool(both, NOON);
    expect(brief(plan)).toEqual(["take s1 #1 for b", "add replace #0 for a"]);
    const lost = instance("sealed", { id: "b", on: [], evidence: ["node_lost"], record: { ordinal: 1, drainLoss: "forced" } });
    const open = poolOf(spec(1, { desired: 2 }), [drifted("a"), lost, standby("s1")], { openSteps: [openStepOf("delete_instance", "b")] });
    expect(brief(planPool(open, NOON))).toContain("take s1 #1 for b");
  });

  test("one that is not well is passed over for the next, and without one the replacement is made anew with its reason (S4)", () => {
    const sick = standby("s1", { health: unwell });
    const passed = planPool(poolOf(spec(2), [noticed(), sick, standby("s2")]), NOON);
    expect(brief(passed)).toContain("take s2 #0 for orders-a");
    const none = planPool(poolOf(spec(1), [noticed(), sick]), NOON);
    expect(brief(none)).toEqual(["add replace #0 for orders-a"]);
    expect(holds(none)).toContain("orders-a: standby_none");
  });

  test("a taken one is admitted; one that fails then is given up at once, and the one that it was for hears nothing (S4)", () => {
    const taken = (rest: Input = {}) => standby("s1", { ...rest, record: { purpose: "replace", replaces: "orders-a", ordinal: 0 } });
    expect(brief(planPool(poolOf(spec(1), [noticed(), taken(), standby("s2")]), NOON))).toEqual(["admit_instance s1"]);
    const failing = planPool(poolOf(spec(2), [noticed(), taken({ health: unwell }), standby("s2")]), NOON);
    expect(brief(failing).filter((each) => !each.startsWith("add"))).toEqual(["move s1 standby→failed standby_unhealthy"]);
    const failures = [
      { instance: "s1", at: NOON - 2_000, failure: "standby_unhealthy", replaces: "orders-a", purpose: "replace" as const },
    ];
    const next = planPool(poolOf(spec(1), [noticed(), standby("s2")], { failures }), NOON);
    expect(brief(next)).toContain("take s2 #0 for orders-a");
  });
});

// ---- properties

const WELL_OR_NOT = fc.constantFrom("passing", "failing", "unknown");
const healthOf = (state: string): InstanceSnapshot["health"] =>
  state === "passing"
    ? { state, since: NOON - 30_000, bootId: "boot-1" }
    : state === "failing"
      ? { state, since: NOON - 2_000, code: "timeout" }
      : { state: "unknown" };

const aMember = (id: string): fc.Arbitrary<InstanceSnapshot> =>
  fc
    .record({
      phase: fc.constantFrom(...PHASES.filter((phase) => phase !== "deleted" && phase !== "creating")),
      isStandby: fc.boolean(),
      health: WELL_OR_NOT,
      on: fc.constantFrom("well", "drifted", "going", "cordoned"),
      hash: fc.constantFrom("b1", "b0"),
      evidence: fc.constantFrom<("node_drifted" | "spot_interruption" | "node_lost")[]>(
        [],
        ["node_drifted"],
        ["spot_interruption"],
        ["node_lost"],
      ),
      ordinal: fc.integer({ min: 0, max: 3 }),
    })
    .map(({ phase, isStandby, health, on, hash, evidence, ordinal }) => {
      const place = node(`node-${id}`, {
        drifted: on === "drifted",
        ...(on === "going" ? { findings: [finding("spot_interruption", at("12:01:00"))] } : {}),
        ...(on === "cordoned" ? { cordoned: "by_other" as const } : {}),
      });
      const waits = isStandby && phase !== "admitted" && phase !== "serving" && phase !== "draining" && phase !== "sealed";
      return instance(phase, {
        id,
        on: [place],
        evidence,
        deadline: at("12:01:00"),
        health: healthOf(health),
        record: {
          blueprintHash: hash,
          ...(waits ? { purpose: "standby" as const, ordinal: NO_ORDINAL } : { ordinal, purpose: "fill" as const }),
        },
      });
    });

const aFleet = fc
  .record({
    members: fc.tuple(...["i0", "i1", "i2", "i3", "i4", "i5"].map(aMember)),
    count: fc.integer({ min: 0, max: 6 }),
    desired: fc.integer({ min: 0, max: 4 }),
    standbyCount: fc.integer({ min: 0, max: 3 }),
    mode: fc.constantFrom("Off", "Observe", "Act"),
    makesRoom: fc.integer({ min: 0, max: 2 }),
  })
  .map(({ members, count, desired, standbyCount, mode, makesRoom }) =>
    poolOf(spec(standbyCount, { desired, floor: 0, max: 4, disruption: { mode } }), members.slice(0, count), { makesRoom }),
  );

describe("properties", () => {
  test("what is taken is warm and taken once, for one that has no other successor (S4)", () => {
    fc.assert(
      fc.property(aFleet, (pool) => {
        const takes = planPool(pool, NOON).decisions.flatMap((each) => (each.kind === "take_standby" ? [each] : []));
        for (const take of takes) {
          const taken = pool.instances.find(({ record }) => record.id === take.instance);
          const former = pool.instances.find(({ record }) => record.id === take.replaces);
          expect([taken?.record.phase, taken?.record.purpose, taken?.health.state, taken?.record.blueprintHash, taken?.evidence]).toEqual([
            "standby",
            "standby",
            "passing",
            "b1",
            [],
          ]);
          expect(former?.record.ordinal).toBe(take.ordinal);
        }
        expect(new Set(takes.map(({ instance: id }) => id)).size).toBe(takes.length);
        expect(new Set(takes.map(({ replaces }) => replaces)).size).toBe(takes.length);
      }),
    );
  });

  test("neither all nor the standby alone exceed what they may occupy (I21)", () => {
    fc.assert(
      fc.property(aFleet, (pool) => {
        const { decisions } = planPool(pool, NOON);
        const added = decisions.flatMap((each) => (each.kind === "add_instance" ? [each.purpose] : []));
        const warm = pool.instances.filter(({ record }) => record.purpose === "standby").length;
        const addedStandby = added.filter((purpose) => purpose === "standby").length;
        if (added.length > 0) expect(pool.instances.length + added.length).toBeLessThanOrEqual(capacityLimit(pool.spec));
        if (addedStandby > 0) expect(warm + addedStandby).toBeLessThanOrEqual(pool.spec.standby.count);
      }),
    );
  });

  test("the plan does not depend on the order of what is seen (I17), and every standby that is left alone has a reason (D11)", () => {
    fc.assert(
      fc.property(aFleet, (pool) => {
        const plan = planPool(pool, NOON);
        expect(planPool({ ...pool, instances: pool.instances.toReversed() }, NOON)).toEqual(plan);
        const told = new Set([
          ...plan.decisions.flatMap((each) => ("instance" in each ? [each.instance] : [])),
          ...plan.decisions.flatMap((each) => (each.kind === "record_evidence" ? [each.evidence.instance] : [])),
          ...plan.holds.map(({ subject }) => subject),
        ]);
        for (const { record } of pool.instances)
          if (record.purpose === "standby" && record.phase !== "retiring") expect([...told]).toContain(record.id);
      }),
    );
  });
});
