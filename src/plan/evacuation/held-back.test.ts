import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PRIORITIES } from "../../model/membership.ts";
import { roomFor } from "./book.ts";
import { planEvacuation } from "./schedule.ts";
import { anInput, POOLS } from "./testing/arbitrary.ts";
import { evacuee, NOON, supply } from "./testing/builders.ts";
import { faultsOf } from "./testing/check.ts";
import type { EvacuationInput, Exposed, Grant } from "./types.ts";

const quotes = (given: Partial<Exposed> = {}): Exposed => ({
  pool: "default/quotes",
  priority: "critical",
  latencyLimitMs: 100,
  count: 2,
  leadMs: 30_000,
  workMs: 4_000,
  until: NOON + 300_000,
  ...given,
});

const risk = (id: string, given: Parameters<typeof evacuee>[1] = {}) => evacuee(id, { pool: "default/risk", warmUpMs: 4_000, ...given });
const own = supply("risk", {
  pool: "default/risk",
  free: 2,
  perSecond: 2,
  burst: 4,
  preemptible: { priority: "standard", count: 2, readyInMs: 3_000 },
});
const demand = supply("demand", { kind: "on_demand", free: 1, readyInMs: 33_000 });

const told = (input: Partial<EvacuationInput>): readonly string[] =>
  planEvacuation({ now: NOON, evacuees: [], supplies: [], reservations: [], ...input }).grants.map((grant: Grant) => {
    if (grant.kind === "unsavable") return `${grant.evacuee} unsavable ${grant.why}`;
    return `${grant.evacuee} ${grant.kind === "wait" && grant.heldBack ? "held" : grant.kind} ${grant.supply}${grant.kind === "wait" ? ` +${grant.startAt - NOON}` : ""}`;
  });

describe("standby that higher ones may need in a moment (S12, I13)", () => {
  test("goes to whom it belongs at once while nobody is exposed", () => {
    expect(told({ evacuees: [risk("a"), risk("b")], supplies: [own, demand] })).toEqual(["a go risk", "b go risk"]);
  });

  test("is left to them: who can be in time elsewhere goes there, who has nothing else gets it at the last moment", () => {
    const exposed = [quotes()];
    // 120 s - 4 s of work - 1 s for the two starts - 2 s.
    expect(told({ evacuees: [risk("a"), risk("b")], supplies: [own, demand], exposed })).toEqual(["a go demand", "b held risk +113000"]);
    const late = risk("b", { deadline: NOON + 7_000 });
    expect(told({ evacuees: [late], supplies: [own], exposed })).toEqual(["b go risk"]);
  });

  test("goes to a higher one that has nothing else, be it too late there, before it goes to the lower one that it belongs to (I13)", () => {
    const reports = supply("reports", { pool: "default/reports", free: 1, perSecond: 0.5, preemptible: roomFor("batch", 1, 3_000) });
    const batch = evacuee("r", { pool: "default/reports", priority: "batch", deadline: NOON + 7_000, warmUpMs: 4_000 });
    const exposed = [quotes()];
    expect(told({ evacuees: [batch], supplies: [reports], exposed })).toEqual(["r go reports"]);
    expect(told({ evacuees: [batch, risk("a", { deadline: NOON + 8_000 })], supplies: [reports], exposed })).toEqual([
      "a go reports",
      "r unsavable supply",
    ]);
    const { grants } = planEvacuation({
      now: NOON,
      evacuees: [batch, risk("a", { deadline: NOON + 6_000 })],
      supplies: [reports],
      reservations: [],
      exposed,
    });
    expect(grants).toMatchObject([
      { evacuee: "a", kind: "unsavable", late: { supply: "reports", servingAt: NOON + 7_000, preempts: "batch" } },
      { evacuee: "r", kind: "unsavable", late: null },
    ]);
  });

  test("is given back when they are no longer expected", () => {
    expect(told({ evacuees: [risk("b")], supplies: [own], exposed: [quotes({ until: NOON + 60_000 })] })).toEqual(["b held risk +60000"]);
    expect(told({ evacuees: [risk("b", { deadline: null })], supplies: [own], exposed: [quotes({ until: NOON + 70_000 })] })).toEqual([
      "b held risk +70000",
    ]);
  });

  test("is kept from nobody for more than two minutes, however many go above it one after the other", () => {
    const storm = [quotes({ until: NOON + 100_000_000 })];
    const waiting = (given: Parameters<typeof evacuee>[1]) => told({ evacuees: [risk("b", given)], supplies: [own], exposed: storm });
    expect(waiting({ deadline: null })).toEqual(["b held risk +120000"]);
    expect(waiting({ deadline: null, noticedAt: NOON - 120_000 })).toEqual(["b go risk"]);
    expect(waiting({ deadline: NOON + 14 * 86_400_000 })).toEqual(["b held risk +120000"]);
  });

  test("is theirs when they come", () => {
    const critical = evacuee("q", { pool: "default/quotes", priority: "critical", deadline: NOON + 30_000, warmUpMs: 4_000 });
    expect(told({ evacuees: [risk("a"), critical], supplies: [own, demand], exposed: [quotes({ count: 1 })] })).toEqual([
      "q go risk",
      "a go demand",
    ]);
  });

  test("is not held for more than their own standby and machines that are in time leave open", () => {
    const theirs = supply("quotes", { pool: "default/quotes", free: 1 });
    expect(told({ evacuees: [risk("a"), risk("b")], supplies: [own, theirs], exposed: [quotes()] })).toEqual([
      "a go risk",
      "b held risk +113500",
    ]);
    const fast = [own, supply("fast", { kind: "on_demand", free: 9, readyInMs: 20_000 })];
    expect(told({ evacuees: [risk("a")], supplies: fast, exposed: [quotes()] })).toEqual(["a go risk"]);
  });

  test("is not held where they would be too late in its room, nor for those of the same class or a lower one", () => {
    const evacuees = [risk("a")];
    expect(told({ evacuees, supplies: [own], exposed: [quotes({ leadMs: 6_000 })] })).toEqual(["a go risk"]);
    expect(told({ evacuees, supplies: [own], exposed: [quotes({ priority: "standard" }), quotes({ priority: "batch" })] })).toEqual([
      "a go risk",
    ]);
  });

  test("the lowest class gives first", () => {
    const reports = supply("reports", { pool: "default/reports", free: 2, preemptible: { priority: "batch", count: 2, readyInMs: 3_000 } });
    const evacuees = [risk("a"), evacuee("r", { pool: "default/reports", priority: "batch" })];
    expect(told({ evacuees, supplies: [own, reports], exposed: [quotes()] })).toEqual(["a go risk", "r held reports +117998"]);
  });

  test("who must take the room of a lower one takes that of the lowest first, and the highest makes room for nobody", () => {
    const room = (priority: "critical" | "standard" | "batch") =>
      supply(`a-${priority}`, { pool: `default/of-${priority}`, preemptible: roomFor(priority, 1, 3_000) });
    const supplies = [room("critical"), room("standard"), room("batch")];
    const critical = (id: string) => evacuee(id, { pool: "default/quotes", priority: "critical" });
    expect(told({ evacuees: [critical("a"), critical("b"), critical("c")], supplies })).toEqual([
      "a go a-batch",
      "b go a-standard",
      "c unsavable supply",
    ]);
  });

  test("over random cases no place and no token is given twice, and no class fares better for having fewer above it that may follow", () => {
    const exposed = fc.array(
      fc.record({
        pool: fc.constantFrom(...POOLS, "default/other"),
        priority: fc.constantFrom(...PRIORITIES),
        latencyLimitMs: fc.constant(100),
        count: fc.integer({ min: 0, max: 10 }),
        leadMs: fc.integer({ min: 0, max: 120_000 }),
        workMs: fc.integer({ min: 0, max: 20_000 }),
        until: fc.integer({ min: NOON, max: NOON + 120_000 }),
      }),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(anInput(12), exposed, (input, expected) => {
        const plan = planEvacuation({ ...input, exposed: expected });
        // Who waits for the last moment takes no token yet.
        expect(faultsOf(input, plan).filter((fault) => !fault.includes(" starts "))).toEqual([]);
        const begun = { ...plan, grants: plan.grants.map((grant): Grant => (grant.kind === "wait" ? waits(grant.evacuee) : grant)) };
        expect(faultsOf(input, begun).filter((fault) => fault.includes("token") || fault.includes("burst"))).toEqual([]);
        const critical = (grants: readonly Grant[]) =>
          grants.filter(({ evacuee: id }) => input.evacuees.some((e) => e.id === id && e.priority === "critical"));
        expect(critical(plan.grants)).toEqual(critical(planEvacuation(input).grants));
      }),
      { numRuns: 1_000 },
    );
  });
});

function waits(id: string): Grant {
  return { kind: "unsavable", evacuee: id, why: "supply", missing: "", late: null, reservedUntil: null };
}
