/** The planner obeys the schedule: who waits, who goes where, and who cannot be saved (I12, I13, D11, S12). */
import { describe, expect, test } from "vitest";
import { at, evidenceOf, instance, node, NOON, poolOf, serving } from "../../../test/builders/pool.ts";
import { sentenceOf } from "../../model/reasons.ts";
import { MAKES_ROOM } from "../candidates.ts";
import type { Plan } from "../decision.ts";
import { planPool } from "../plan.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../snapshot.ts";
import { evacueesOf } from "./evacuees.ts";
import { planEvacuation } from "./schedule.ts";
import { standbySupplyId } from "./turn.ts";
import { supply } from "./testing/builders.ts";
import type { Grant, Supply } from "./types.ts";

const DEADLINE = at("12:02:00");
const noticed = (id: string, ordinal: number): InstanceSnapshot =>
  serving({ id, on: [node(`n-${id}`, { cordoned: "by_us" })], evidence: ["spot_interruption"], deadline: DEADLINE, record: { ordinal } });
const warm = (id: string): InstanceSnapshot =>
  instance("standby", { id, on: [node(`n-${id}`)], record: { purpose: "standby", ordinal: -1 } });
const granted = (...grants: readonly Grant[]): Partial<PoolSnapshot> => ({
  evacuation: new Map(grants.map((grant) => [grant.evacuee, grant])),
});

const done = ({ decisions }: Plan): readonly string[] =>
  decisions.flatMap((decision) => {
    if (decision.kind === "add_instance") return [`add for ${decision.replaces}`];
    return decision.kind === "take_standby" ? [`take ${decision.instance} for ${decision.replaces}`] : [];
  });
const said = ({ holds }: Plan, id: string): readonly string[] =>
  holds.filter(({ subject }) => subject === id).map(({ reason }) => sentenceOf(reason));

const go = (evacuee: string, place: string): Grant => ({
  kind: "go",
  evacuee,
  supply: place,
  servingAt: NOON + 5_000,
  breach: false,
  preempts: null,
  reservedUntil: NOON + 15_000,
});
const wait = (evacuee: string, startAt: number): Grant => ({
  kind: "wait",
  evacuee,
  supply: "on_demand/local",
  startAt,
  servingAt: startAt + 5_000,
  breach: false,
  preempts: null,
});

describe("a replacement takes its turn", () => {
  test("whom the schedule does not name goes by itself", () => {
    expect(done(planPool(poolOf({ desired: 1 }, [noticed("a", 0)]), NOON))).toEqual(["add for a"]);
  });

  test("one whose turn is now goes, the other waits and knows until when; the planner looks again then", () => {
    const pool = poolOf({ desired: 2 }, [noticed("a", 0), noticed("b", 1)], granted(go("a", "on_demand/local"), wait("b", NOON + 4_000)));
    const plan = planPool(pool, NOON);
    expect(done(plan)).toEqual(["add for a"]);
    expect(said(plan, "b")).toContain(
      "its turn to be evacuated comes at 2026-11-30T12:00:04.000Z, to on_demand/local: more urgent ones are before it, and a site takes over only so many at a time",
    );
    expect(plan.nextLookAt).toBe(NOON + 4_000);
    expect(done(planPool(pool, NOON + 4_000))).toEqual(["add for a", "add for b"]);
  });

  test("one for whom standby is held back hears for whom and until when, and takes it then (D11)", () => {
    const place = {
      supply: standbySupplyId("default/orders"),
      startAt: NOON + 60_000,
      servingAt: NOON + 60_000,
      breach: false,
      preempts: null,
    };
    const grant: Grant = { kind: "wait", evacuee: "a", ...place, heldBack: true };
    const pool = poolOf({ desired: 1, spec: { standby: { count: 1 } } }, [noticed("a", 0), warm("w")], granted(grant));
    const plan = planPool(pool, NOON);
    expect(done(plan)).toEqual([]);
    expect(said(plan, "a")).toContain(
      "standby/default/orders is held back for more important ones that may have to go too: it is its own at 2026-11-30T12:01:00.000Z if nothing else becomes free before",
    );
    expect(plan.nextLookAt).toBe(NOON + 60_000);
    expect(done(planPool(pool, NOON + 60_000))).toEqual(["take w for a"]);
  });

  test("a drain does not wait for the turn beyond its last start", () => {
    const pool = poolOf({ desired: 1 }, [noticed("a", 0)], granted(wait("a", DEADLINE + 60_000)));
    const plan = planPool(pool, DEADLINE - 15_000);
    expect(plan.decisions.map(({ kind }) => kind)).toContain("drain_instance");
  });

  test("the standby is for whom the schedule gave it, not for who comes first", () => {
    const instances = [noticed("a", 0), noticed("b", 1), warm("w")];
    const grants = granted(go("a", "on_demand/local"), go("b", standbySupplyId("default/orders")));
    expect(done(planPool(poolOf({ desired: 2, spec: { standby: { count: 1 } } }, instances, grants), NOON))).toEqual([
      "add for a",
      "take w for b",
    ]);
  });

  test("the lost take their turn too", () => {
    const lost = instance("draining", { id: "l", on: [], evidence: ["node_lost"], record: { drainLoss: "forced" } });
    const pool = poolOf({ desired: 1 }, [lost], granted(wait("l", NOON + 1_000)));
    expect(done(planPool(pool, NOON))).toEqual([]);
    expect(done(planPool(pool, NOON + 1_000))).toEqual(["add for l"]);
  });

  test("a voluntary replacement is none of the schedule's: it keeps its surge", () => {
    const drifting = serving({ id: "d", on: [node("n-d", { cordoned: "by_us", drifted: true })], evidence: ["node_drifted"] });
    const pool = poolOf({ desired: 1 }, [drifting]);
    expect(evacueesOf(pool, NOON)).toEqual([]);
    expect(done(planPool(pool, NOON))).toEqual(["add for d"]);
  });
});

describe("who cannot be saved hears of it at once (S12, D11)", () => {
  test("without a place it is left where it is, with what is missing", () => {
    const grant: Grant = {
      kind: "unsavable",
      evacuee: "a",
      why: "quota",
      missing: "quota for 1 more at eu",
      late: null,
      reservedUntil: null,
    };
    const plan = planPool(poolOf({ desired: 1 }, [noticed("a", 0)], granted(grant)), NOON);
    expect(done(plan)).toEqual([]);
    expect(said(plan, "a")).toContain("it cannot be saved (quota): what is missing is quota for 1 more at eu");
  });

  test("with a late one it goes, and that it comes too late is said", () => {
    const grant: Grant = {
      kind: "unsavable",
      evacuee: "a",
      why: "time",
      missing: "29000 ms",
      late: { supply: "on_demand/local", startAt: NOON, servingAt: NOON + 30_000, breach: false, preempts: null },
      reservedUntil: NOON + 15_000,
    };
    const plan = planPool(poolOf({ desired: 1 }, [noticed("a", 0)], granted(grant)), NOON);
    expect(done(plan)).toEqual(["add for a"]);
    expect(said(plan, "a")).toContain(
      "it cannot be saved in time (time: 29000 ms); its replacement is meant to serve at 2026-11-30T12:00:30.000Z",
    );
  });

  test("one whose late place comes later waits for it, and that it comes too late is said already now", () => {
    const late = { supply: "on_demand/local", startAt: NOON + 9_000, servingAt: NOON + 39_000, breach: false, preempts: null };
    const grant: Grant = { kind: "unsavable", evacuee: "a", why: "time", missing: "38000 ms", late, reservedUntil: null };
    const pool = poolOf({ desired: 1 }, [noticed("a", 0)], granted(grant));
    expect(done(planPool(pool, NOON))).toEqual([]);
    expect(said(planPool(pool, NOON), "a")).toContain(
      "it cannot be saved in time (time: 38000 ms); its replacement is meant to serve at 2026-11-30T12:00:39.000Z",
    );
    expect(done(planPool(pool, NOON + 9_000))).toEqual(["add for a"]);
  });

  test("a notice one second before the end and fifty more of it: one replacement, told to be late; then its loss escalates and it stays one", () => {
    const demand: Supply = supply("on_demand/local", { kind: "on_demand", readyInMs: 30_000, free: 60 });
    const given = serving({ id: "a", on: [node("n-a", { cordoned: "by_us" })] });
    const notices = Array.from({ length: 51 }, (_, index) => ({
      ...evidenceOf(given.record, "spot_interruption", given.pods[0]?.node ?? null, NOON + 1_000),
      id: `e-${index}`,
      firstSeen: NOON - 5_000 + index,
    }));
    const pool = poolOf({ desired: 1 }, [{ ...given, evidence: notices }]);
    const evacuees = evacueesOf(pool, NOON);
    expect(evacuees.map(({ id, deadline, noticedAt }) => [id, deadline, noticedAt])).toEqual([["a", NOON + 1_000, NOON - 5_000]]);
    const { grants } = planEvacuation({ now: NOON, evacuees, supplies: [demand], reservations: [] });
    expect(grants.map(({ kind }) => kind)).toEqual(["unsavable"]);
    expect(done(planPool({ ...pool, ...granted(...grants) }, NOON))).toEqual(["add for a"]);

    const gone: InstanceSnapshot = {
      ...given,
      record: { ...given.record, phase: "draining", drainLoss: "deadline", drainDeadline: NOON + 1_000 },
      evidence: [...notices, evidenceOf(given.record, "node_lost", null)],
      pods: [],
    };
    const next = instance("preparing", { id: "a2", on: [node("n-2")], record: { replaces: "a", purpose: "replace" } });
    const later = poolOf({ desired: 1 }, [gone, next]);
    expect(evacueesOf(later, NOON)).toEqual([]);
    expect(done(planPool(later, NOON + 5_000))).toEqual([]);
    expect(evacueesOf(poolOf({ desired: 1 }, [gone]), NOON).map(({ id, deadline }) => [id, deadline])).toEqual([["a", null]]);
  });
});

describe("standby that makes room for a higher class", () => {
  test("is given up, and not refilled while the room is needed", () => {
    const instances = [serving({ id: "s", on: [node("n-s")] }), warm("w1"), warm("w2")];
    const spec = { desired: 1, spec: { standby: { count: 2 }, priority: "batch" } };
    const given = planPool(poolOf(spec, instances, { makesRoom: 1 }), NOON).decisions;
    expect(given.map((decision) => (decision.kind === "move" ? `${decision.instance} ${decision.to}` : decision.kind))).toEqual([
      "w2 failed",
    ]);
    const failures = [{ instance: "w2", at: NOON, failure: MAKES_ROOM, replaces: null, purpose: "standby" as const }];
    expect(planPool(poolOf(spec, instances.slice(0, 2), { makesRoom: 1, failures }), NOON + 1_000).decisions).toEqual([]);
  });
});
