import { describe, expect, test } from "vitest";
import type { Priority } from "../../model/membership.ts";
import { planEvacuation, RESERVATION_MS } from "./schedule.ts";
import { evacuee, NOON, supply } from "./testing/builders.ts";
import type { EvacuationInput, EvacuationPlan, Evacuee, Grant } from "./types.ts";

const plan = (input: Partial<EvacuationInput>): EvacuationPlan =>
  planEvacuation({ now: NOON, evacuees: [], supplies: [], reservations: [], ...input });

const go = (id: string, place: string, given: Partial<Extract<Grant, { kind: "go" }>> = {}): Grant => ({
  kind: "go",
  evacuee: id,
  supply: place,
  servingAt: NOON,
  breach: false,
  preempts: null,
  reservedUntil: NOON + RESERVATION_MS,
  ...given,
});

const many = (count: number, given: (index: number) => Partial<Evacuee> = () => ({})): readonly Evacuee[] =>
  Array.from({ length: count }, (_, index) => evacuee(`e-${String(index).padStart(4, "0")}`, given(index)));

const countOf = ({ grants }: EvacuationPlan, kind: Grant["kind"], among: ReadonlySet<string>) =>
  grants.filter((grant) => grant.kind === kind && among.has(grant.evacuee)).length;

describe("which place (S4, S5)", () => {
  const far = [supply("c-140", { latencyMs: 140 }), supply("a-20", { latencyMs: 20 }), supply("b-80", { latencyMs: 80 })];

  test("of standby at 20, 80 and 140 ms the one at 20 is taken, full the one at 80, and the one at 140 only when it is the last: flagged and counted as a breach (S5)", () => {
    expect(plan({ evacuees: many(1), supplies: far }).grants).toEqual([go("e-0000", "a-20")]);
    expect(plan({ evacuees: many(2), supplies: far }).grants).toEqual([go("e-0000", "a-20"), go("e-0001", "b-80")]);
    const all = plan({ evacuees: many(3), supplies: far });
    expect(all.grants).toEqual([go("e-0000", "a-20"), go("e-0001", "b-80"), go("e-0002", "c-140", { breach: true })]);
    expect(all.prediction.breaches).toBe(1);
  });

  test("one waits for a near place that absorbs slowly rather than breach its limit, as long as it is in time (S5)", () => {
    const near = supply("a-20", { free: 2, perSecond: 0.5, burst: 1, tokens: 1 });
    const { grants } = plan({ evacuees: many(2), supplies: [near, supply("c-140", { latencyMs: 140 })] });
    expect(grants).toEqual([
      go("e-0000", "a-20"),
      { kind: "wait", evacuee: "e-0001", supply: "a-20", startAt: NOON + 2_000, servingAt: NOON + 2_000, breach: false, preempts: null },
    ]);
    const urgent = plan({
      evacuees: many(2, () => ({ deadline: NOON + 1_000 })),
      supplies: [near, supply("c-140", { latencyMs: 140 })],
    });
    expect(urgent.grants).toEqual([go("e-0000", "a-20"), go("e-0001", "c-140", { breach: true })]);
  });

  test("the limit is the pool's own (S5)", () => {
    const wide = plan({ evacuees: [evacuee("a", { latencyLimitMs: 200 })], supplies: [supply("c-140", { latencyMs: 140 })] });
    expect(wide.grants).toEqual([go("a", "c-140")]);
  });

  test("to a standby whose health check fails nothing is shifted: the next candidate is taken (S4)", () => {
    const supplies = [supply("a-20", { passing: false }), supply("b-80", { latencyMs: 80 })];
    expect(plan({ evacuees: many(1), supplies }).grants).toEqual([go("e-0000", "b-80")]);
    const held = { evacuee: "e-0000", supply: "a-20", until: NOON + 9_000 };
    expect(plan({ evacuees: many(1), supplies, reservations: [held] }).grants).toEqual([go("e-0000", "b-80")]);
  });

  test("where capacity is dying nothing is placed while a cooler spot has room (S2)", () => {
    const supplies = [supply("a-20", { heat: 0.9 }), supply("b-80", { latencyMs: 80 })];
    expect(plan({ evacuees: many(2), supplies }).grants).toEqual([go("e-0000", "b-80"), go("e-0001", "a-20")]);
  });

  test("standby that is made from another pool's blueprint is no place; on demand serves any pool, later", () => {
    const supplies = [
      supply("other", { pool: "default/other" }),
      supply("demand", { kind: "on_demand", readyInMs: 30_000, latencyMs: 40 }),
    ];
    expect(plan({ evacuees: many(1), supplies }).grants).toEqual([go("e-0000", "demand", { servingAt: NOON + 30_000 })]);
  });
});

describe("how many and how fast (I12, S12)", () => {
  test("a site that absorbs 3 a second has 270 of 500 within 90 s: that 98 % is unattainable is said at once", () => {
    const { prediction, grants } = plan({
      evacuees: many(500),
      supplies: [supply("a", { free: 500, perSecond: 3, burst: 1, tokens: 0 })],
    });
    expect(prediction).toEqual({
      withinMs: 90_000,
      within: 270,
      beforeDeadline: 360,
      of: 500,
      breaches: 0,
      attainable: false,
      bottleneck: "270 of 500 within 90 s, 98 % is unattainable: a absorbs 3 a second",
    });
    expect(grants.filter((grant) => grant.kind === "unsavable").length).toBe(140);
    expect(grants.find((grant) => grant.kind === "unsavable")).toEqual({
      kind: "unsavable",
      evacuee: "e-0360",
      why: "time",
      missing: "334 ms: so much after its node goes a would serve it, because a absorbs 3 a second",
      late: { supply: "a", startAt: NOON + 120_334, servingAt: NOON + 120_334, breach: false, preempts: null },
      reservedUntil: null,
    });
  });

  test("5,000 notices on a standby of 800: 800 places are given, never one more, and the critical have them", () => {
    const classes: readonly Priority[] = ["batch", "standard", "critical"];
    const evacuees = many(5_000, (index) => ({ priority: classes[Math.floor(index / 600)] ?? "batch" }));
    const result = plan({ evacuees, supplies: [supply("a", { free: 500 }), supply("b", { free: 300 })] });
    const of = (priority: Priority) => new Set(evacuees.filter((each) => each.priority === priority).map(({ id }) => id));
    expect(result.grants.length).toBe(5_000);
    expect(countOf(result, "go", of("critical"))).toBe(600);
    expect(countOf(result, "go", of("standard"))).toBe(200);
    expect(countOf(result, "go", of("batch"))).toBe(0);
    expect(result.grants.filter(({ kind }) => kind === "unsavable").length).toBe(4_200);
    expect(result.prediction.bottleneck).toBe("800 of 5000 within 90 s, 98 % is unattainable: 4200 have no place");
  });

  test("with half the supply exactly the right half survives: the critical, and of the rest those whose nodes go first (S12)", () => {
    const evacuees = many(100, (index) => ({ priority: index % 5 === 0 ? "critical" : "batch", deadline: NOON + 60_000 + index * 100 }));
    const { grants } = plan({ evacuees, supplies: [supply("a", { free: 50 })] });
    const right = [...evacuees.filter((each) => each.priority === "critical"), ...evacuees.filter((each) => each.priority === "batch")];
    expect(grants.flatMap((grant) => (grant.kind === "go" ? [grant.evacuee] : []))).toEqual(right.slice(0, 50).map(({ id }) => id));
    expect(grants.flatMap((grant) => (grant.kind === "unsavable" ? [grant.why] : []))).toEqual(Array(50).fill("supply"));
  });

  test("a lower class does not start at a place that a higher one, which waits for a near one, could have used sooner (I13)", () => {
    const supplies = [supply("a", { free: 3, perSecond: 4, burst: 1, tokens: 1 }), supply("b", { latencyMs: 80, free: 3 })];
    const evacuees = [
      evacuee("z-1", { priority: "critical" }),
      evacuee("z-2", { priority: "critical" }),
      evacuee("a-1", { priority: "batch" }),
    ];
    expect(plan({ evacuees, supplies }).grants).toEqual([
      go("z-1", "a"),
      { kind: "wait", evacuee: "z-2", supply: "a", startAt: NOON + 250, servingAt: NOON + 250, breach: false, preempts: null },
      { kind: "wait", evacuee: "a-1", supply: "a", startAt: NOON + 500, servingAt: NOON + 500, breach: false, preempts: null },
    ]);
  });

  test("a reservation keeps its place and takes no second token; the place of one that ended is given again", () => {
    const supplies = [supply("a", { free: 1, perSecond: 1, burst: 1, tokens: 1 })];
    const held = { evacuee: "e-0001", supply: "a", until: NOON + 5_000, servingAt: NOON + 1_000 };
    expect(plan({ evacuees: many(2), supplies, reservations: [held] }).grants).toEqual([
      go("e-0001", "a", { servingAt: NOON + 1_000, reservedUntil: NOON + 5_000 }),
      go("e-0000", "a"),
    ]);
    expect(plan({ evacuees: many(1), supplies, reservations: [{ ...held, until: NOON }] }).grants).toEqual([go("e-0000", "a")]);
  });

  test("a critical one takes the room of a batch standby when there is no other, and boots in it", () => {
    const room = supply("batch-room", {
      pool: "default/reports",
      preemptible: { priority: "batch", count: 1, readyInMs: 4_000 },
      free: 2,
    });
    const evacuees = [
      evacuee("c-1", { priority: "critical" }),
      evacuee("c-2", { priority: "critical" }),
      evacuee("b-1", { priority: "batch", pool: "default/reports" }),
      evacuee("b-2", { priority: "batch", pool: "default/reports" }),
    ];
    expect(plan({ evacuees, supplies: [room] }).grants).toEqual([
      go("c-1", "batch-room", { servingAt: NOON + 4_000, preempts: "batch" }),
      { kind: "unsavable", evacuee: "c-2", why: "supply", missing: "1 place: all go to more urgent ones", late: null, reservedUntil: null },
      go("b-1", "batch-room"),
      { kind: "unsavable", evacuee: "b-2", why: "supply", missing: "1 place: all go to more urgent ones", late: null, reservedUntil: null },
    ]);
  });
});

describe("who cannot be saved is told so at once (S12)", () => {
  test("a notice at 119 s and 50 duplicates of it: one evacuation, which is late; once its node is gone it goes like any lost one", () => {
    const late = evacuee("a", { noticedAt: NOON - 1_000, deadline: NOON + 1_000, stateMoveMs: 3_000 });
    const supplies = [supply("a-20", { free: 60 })];
    const notices = Array.from({ length: 51 }, (_, index) => ({ ...late, noticedAt: NOON - 1_000 + index }));
    expect(plan({ evacuees: notices, supplies }).grants).toEqual([
      {
        kind: "unsavable",
        evacuee: "a",
        why: "time",
        missing: "2000 ms: so much after its node goes a-20 would serve it",
        late: { supply: "a-20", startAt: NOON, servingAt: NOON + 3_000, breach: false, preempts: null },
        reservedUntil: NOON + RESERVATION_MS,
      },
    ]);
    expect(plan({ evacuees: notices.map((each) => ({ ...each, deadline: null })), supplies }).grants).toEqual([
      go("a", "a-20", { servingAt: NOON + 3_000 }),
    ]);
  });

  test("quota that is used up is named, and where", () => {
    const supplies = [supply("eu/a/m5", { kind: "on_demand", free: 0, boundBy: "quota", readyInMs: 30_000 })];
    expect(plan({ evacuees: many(1), supplies }).grants).toEqual([
      { kind: "unsavable", evacuee: "e-0000", why: "quota", missing: "quota for 1 more at eu/a/m5", late: null, reservedUntil: null },
    ]);
  });

  test("without any supply every one is told so, and nothing is predicted", () => {
    const { grants, prediction, nextLookAt } = plan({ evacuees: many(2) });
    expect(grants.map((grant) => grant.kind === "unsavable" && grant.missing)).toEqual([
      "any place that may serve it",
      "any place that may serve it",
    ]);
    expect(prediction.within).toBe(0);
    expect(nextLookAt).toBeNull();
  });
});
