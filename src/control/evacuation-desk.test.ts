import { describe, expect, test } from "vitest";
import { at, instance, NOON, node, poolOf, serving } from "../../test/builders/pool.ts";
import type { CapacityView } from "../plan/evacuation/capacity-view.ts";
import { planEvacuation } from "../plan/evacuation/schedule.ts";
import type { EvacuationInput, Grant } from "../plan/evacuation/types.ts";
import { ANYWHERE } from "../model/placement.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../plan/snapshot.ts";
import { EvacuationDesk, type EvacuationDeskOptions, FIRST_ABSORPTION } from "./evacuation-desk.ts";
import { MOST_UNPLACED } from "./evacuation-supply.ts";

const capacity = (limit: number | null = null, machines = 0): CapacityView => ({
  at: NOON,
  spots: [],
  placement: ANYWHERE,
  quotas: limit === null ? [] : [{ nodePool: "default", limit, machines, spots: [] }],
  readyInMs: 30_000,
});

interface Seen {
  readonly desk: EvacuationDesk;
  readonly turns: string[];
  readonly inputs: EvacuationInput[];
  readonly said: string[];
}

function aDesk(options: Partial<EvacuationDeskOptions> = {}): Seen {
  const turns: string[] = [];
  const inputs: EvacuationInput[] = [];
  const said: string[] = [];
  const desk = new EvacuationDesk({
    capacity: () => capacity(),
    onTurn: (pool) => turns.push(pool),
    log: (level, message) => said.push(`${level} ${message}`),
    policy: (input) => {
      inputs.push(input);
      return planEvacuation(input);
    },
    ...options,
  });
  return { desk, turns, inputs, said };
}

const named = (id: string, ordinal: number, given: Parameters<typeof serving>[0] = {}): InstanceSnapshot =>
  serving({ id, record: { ordinal, ...given.record }, ...given, on: given.on ?? [node(`n-${id}`)] });

const noticed = (id: string, ordinal: number, deadline = at("12:02:00")): InstanceSnapshot =>
  named(id, ordinal, { evidence: ["spot_interruption"], deadline, record: { ordinal } });

const warm = (id: string): InstanceSnapshot =>
  instance("standby", { id, on: [node(`n-${id}`)], record: { purpose: "standby", ordinal: -1 } });

const successor = (of: string, ordinal: number, phase: "pending" | "preparing" | "admitted" | "serving", since = NOON): InstanceSnapshot =>
  instance(phase, {
    id: `${of}-next`,
    on: phase === "pending" ? [] : [node(`n-${of}-next`)],
    record: { replaces: of, purpose: "replace", ordinal, phaseSince: since },
  });

const pool = (
  name: string,
  instances: readonly InstanceSnapshot[],
  spec: Record<string, unknown> = {},
  desired = instances.length,
): PoolSnapshot => poolOf({ desired, max: 2_000, spec }, instances, { pool: `default/${name}`, name });

const kinds = (grants: ReadonlyMap<string, Grant>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...grants].map(([id, grant]) => [id, grant.kind === "wait" ? "wait" : grant.kind === "go" ? grant.supply : grant.why]),
  );

describe("whom the desk names", () => {
  test("nobody while nothing goes: no schedule is made", () => {
    const { desk, inputs } = aDesk();
    expect(desk.look(pool("a", [named("a", 0), named("b", 1, { evidence: ["node_drifted"] })]), NOON)).toEqual({
      evacuation: new Map(),
      makesRoom: 0,
    });
    expect(inputs).toEqual([]);
  });

  test("those whose capacity goes at a known time or went, once each, until a successor is there", () => {
    const { desk, inputs } = aDesk();
    const lost = instance("draining", { id: "l", evidence: ["process_unreachable"], record: { ordinal: 2, drainLoss: "forced" } });
    const replaced = noticed("r", 3);
    const { evacuation } = desk.look(
      pool("a", [noticed("n", 1), lost, replaced, successor("r", 3, "preparing"), named("s", 0)], {}, 4),
      NOON,
    );
    expect(kinds(evacuation)).toEqual({ n: "on_demand/local", l: "on_demand/local" });
    expect(inputs[0]?.evacuees).toEqual([
      expect.objectContaining({ id: "l", deadline: null, priority: "standard", latencyLimitMs: 100 }),
      expect.objectContaining({ id: "n", deadline: at("12:02:00"), noticedAt: NOON - 5_000 }),
    ]);
  });

  test("no more of them than the pool is short of", () => {
    const { desk } = aDesk();
    expect(desk.look(pool("a", [noticed("a", 0), noticed("b", 1), named("c", 2)], {}, 2), NOON).evacuation.size).toBe(1);
  });

  test("a small pool never waits, whatever was learned: at least ten go at once", () => {
    const { desk } = aDesk();
    const many = Array.from({ length: 10 }, (_, index) => noticed(`i-${index}`, index, at("12:30:00")));
    for (let round = 0; round < 30; round += 1) {
      const now = NOON + round * 10_000;
      const admitted = Array.from({ length: 4 }, (_, index) => successor(`x-${round}-${index}`, index, "admitted", now));
      const served = Array.from({ length: 4 }, (_, index) => successor(`x-${round}-${index}`, index, "serving", now + 100 * 2 ** round));
      desk.look(pool("b", admitted), now);
      desk.look(pool("b", served), now + 1);
    }
    const { evacuation } = desk.look(pool("a", many), NOON + 600_000);
    expect(new Set(Object.values(kinds(evacuation)))).toEqual(new Set(["on_demand/local"]));
  });
});

describe("places over all pools (I12, I13)", () => {
  test("the critical come first where machines are scarce, whichever pool was looked at first; each pool may look for room beside", () => {
    const { desk, turns } = aDesk({ capacity: () => capacity(10, 4) });
    const batch = Array.from({ length: 16 }, (_, index) => noticed(`b-${String(index).padStart(2, "0")}`, index));
    const critical = Array.from({ length: 14 }, (_, index) => noticed(`c-${String(index).padStart(2, "0")}`, index));
    desk.look(pool("z", critical.slice(0, 2), { priority: "critical" }), NOON);
    const { evacuation } = desk.look(pool("a", batch, { priority: "batch" }), NOON);
    desk.look(pool("z", critical, { priority: "critical" }), NOON);
    const placesOf = (grants: ReadonlyMap<string, Grant>) => {
      const places = Object.values(kinds(grants));
      return Object.fromEntries([...new Set(places)].toSorted().map((place) => [place, places.filter((each) => each === place).length]));
    };
    expect(placesOf(evacuation)).toEqual({ "on_demand/local": 4, quota: 2, "room/default/a": MOST_UNPLACED });
    expect(kinds(evacuation)["b-15"]).toBe("quota");
    expect(placesOf(desk.adviceFor("default/z", NOON).evacuation)).toEqual({
      "on_demand/local": 2,
      quota: 2,
      "room/default/z": MOST_UNPLACED,
    });
    expect(turns).toEqual([]);
  });

  test("warm standby is promised once: two evacuees on one standby, the second is made anew", () => {
    const { desk } = aDesk();
    const { evacuation } = desk.look(pool("a", [noticed("a", 0), noticed("b", 1), warm("w")], { standby: { count: 1 } }, 2), NOON);
    expect(kinds(evacuation)).toEqual({ a: "standby/default/a", b: "on_demand/local" });
  });

  test("a promise holds while it is not used, ends after its time, and ends when it is used", () => {
    const { desk, inputs } = aDesk({ capacity: () => capacity(1, 1) });
    const instances = [noticed("a", 0, at("12:10:00")), noticed("b", 1, at("12:10:00"))];
    desk.look(pool("a", instances), NOON);
    desk.look(pool("b", [noticed("c", 0, at("12:10:00"))]), NOON + 1_000);
    expect(inputs.at(-1)?.reservations.map(({ evacuee, until }) => [evacuee, until - NOON])).toEqual([
      ["a", 15_000],
      ["b", 15_000],
    ]);
    desk.look(pool("a", [...instances, successor("a", 0, "pending")], {}, 2), NOON + 2_000);
    expect(inputs.at(-1)?.reservations.map(({ evacuee }) => evacuee)).toEqual(["b", "c"]);
    desk.look(pool("a", [...instances, successor("a", 0, "pending")], {}, 2), NOON + 15_500);
    expect(inputs.at(-1)?.reservations.map(({ evacuee }) => evacuee)).toEqual(["c"]);
  });

  test("where no machine may be made a critical one takes the room of a batch standby, which that pool gives up until it is used", () => {
    const { desk, turns } = aDesk({ capacity: () => capacity(4, 4) });
    const unplaced = Array.from({ length: MOST_UNPLACED }, (_, index) => successor(`u-${index}`, index + 1, "pending"));
    desk.look(pool("reports", [named("r", 0), warm("w1"), warm("w2")], { priority: "batch", standby: { count: 2 } }, 1), NOON);
    const seen = (...more: readonly InstanceSnapshot[]) =>
      pool("orders", [noticed("c", 0), ...unplaced, ...more], { priority: "critical" }, 11);
    const { evacuation } = desk.look(seen(), NOON);
    expect([...evacuation.values()]).toEqual([
      {
        kind: "go",
        evacuee: "c",
        supply: "standby/default/reports",
        servingAt: NOON + 31_000,
        breach: false,
        preempts: "batch",
        reservedUntil: NOON + 15_000,
      },
    ]);
    expect(turns).toEqual(["default/reports"]);
    expect(desk.adviceFor("default/reports", NOON + 1_000).makesRoom).toBe(1);
    desk.look(seen(successor("c", 0, "pending")), NOON + 1_000);
    expect(desk.adviceFor("default/reports", NOON + 2_000).makesRoom).toBe(1);
    desk.look(seen(successor("c", 0, "preparing")), NOON + 9_000);
    expect(desk.adviceFor("default/reports", NOON + 9_000).makesRoom).toBe(0);
  });
});

describe("what a look costs and what it learns", () => {
  test("no schedule is made when nothing has changed, and among thousands at most so often", () => {
    const { desk, inputs } = aDesk();
    const slow = Array.from({ length: 1_000 }, (_, index) => noticed(`i-${String(index).padStart(4, "0")}`, index, at("12:30:00")));
    desk.look(pool("a", slow), NOON);
    for (let index = 0; index < 20; index += 1) desk.look(pool("a", slow), NOON + index);
    expect(inputs.length).toBe(1);
    const { evacuation } = desk.look(pool("b", [noticed("late", 0)]), NOON + 20);
    expect(inputs.length).toBe(1);
    expect(evacuation.get("late")).toEqual(expect.objectContaining({ kind: "wait", startAt: NOON + 51 }));
    desk.look(pool("b", [noticed("late", 0)]), NOON + 51);
    expect(inputs.length).toBe(2);
  });

  test("a burst goes at once and the rest is paced; the pool that waits knows until when", () => {
    const { desk } = aDesk();
    const many = Array.from({ length: 300 }, (_, index) => noticed(`i-${String(index).padStart(3, "0")}`, index, at("12:30:00")));
    const { evacuation } = desk.look(pool("a", many), NOON);
    const waits = [...evacuation.values()].flatMap((grant) => (grant.kind === "wait" ? [grant.startAt - NOON] : []));
    expect(evacuation.size - waits.length).toBe(FIRST_ABSORPTION.burst);
    expect(waits[0]).toBe(1_000 / FIRST_ABSORPTION.perSecond);
  });

  test("absorption is learned from admitted to serving, over passes", () => {
    const { desk } = aDesk();
    desk.look(pool("a", [noticed("n", 0)]), NOON);
    expect(desk.learned()).toEqual({ perSecond: FIRST_ABSORPTION.perSecond, bestMs: null });
    const some = (phase: "admitted" | "serving", since: number) =>
      Array.from({ length: 5 }, (_, index) => successor(`o-${index}`, index, phase, since));
    desk.look(pool("a", some("admitted", NOON)), NOON + 10);
    desk.look(pool("a", some("serving", NOON + 700)), NOON + 800);
    desk.look(pool("a", [noticed("n", 0)]), NOON + 20_000);
    expect(desk.learned()?.bestMs).toBe(700);
  });
});

describe("what goes wrong in it blocks nobody (D12)", () => {
  test("an error leaves every pool to itself and is said once a minute; when it is over the schedule is there again", () => {
    let isBroken = true;
    const { desk, said } = aDesk({
      policy: (input) => {
        if (isBroken) throw new Error("broken");
        return planEvacuation(input);
      },
    });
    const seen = pool("a", [noticed("a", 0)]);
    expect(desk.look(seen, NOON)).toEqual({ evacuation: new Map(), makesRoom: 0 });
    expect(desk.look(seen, NOON + 5_000)).toEqual({ evacuation: new Map(), makesRoom: 0 });
    expect(said).toEqual(["error no evacuation schedule could be made: each pool goes by itself"]);
    isBroken = false;
    expect(kinds(desk.look(seen, NOON + 10_000).evacuation)).toEqual({ a: "on_demand/local" });
  });

  test("a pool that is gone leaves nothing behind", () => {
    const { desk } = aDesk();
    desk.look(pool("a", [noticed("a", 0)]), NOON);
    desk.forget("default/a");
    expect(desk.adviceFor("default/a", NOON)).toEqual({ evacuation: new Map(), makesRoom: 0 });
    desk.look(pool("b", [named("b", 0)]), NOON + 1);
    expect(desk.prediction()).toBeUndefined();
  });
});

describe("who cannot go holds nothing back from others (S12)", () => {
  test("one whose candidates failed, or that is lost in a frozen pool, has no place and no token until it may go", () => {
    const { desk, inputs } = aDesk({ capacity: () => capacity(1, 0) });
    const lost = instance("draining", { id: "l", on: [], evidence: ["node_lost"], record: { ordinal: 0, drainLoss: "forced" } });
    const failures = [0, 1, 2, 3].map((index) => ({
      instance: `f-${index}`,
      at: NOON - 1_000 * index,
      failure: "not_ready_in_time",
      replaces: "a",
      purpose: "replace" as const,
    }));
    const held = { ...pool("a", [noticed("a", 0)], { priority: "critical" }), failures };
    const frozen = { ...pool("f", [lost], { priority: "critical" }, 1), freeze: { until: at("13:00:00"), why: "audit", by: "eve" } };
    const fresh = { ...pool("n", [noticed("n", 0)], { priority: "critical" }), witnessesAwaitedUntil: at("12:05:00") };
    for (const each of [held, frozen, fresh]) expect(desk.look(each, NOON).evacuation).toEqual(new Map());
    expect(kinds(desk.look(pool("b", [noticed("b", 0)], { priority: "batch" }), NOON).evacuation)).toEqual({ b: "on_demand/local" });
    expect(inputs.at(-1)?.evacuees.map(({ id }) => id)).toEqual(["b"]);
    expect([...desk.look({ ...held, failures: [] }, NOON + 1).evacuation.keys()]).toEqual(["a"]);
    expect([...desk.look({ ...frozen, freeze: null }, NOON + 1).evacuation.keys()]).toEqual(["l"]);
    expect([...desk.look({ ...fresh, witnessesAwaitedUntil: null }, NOON + 1).evacuation.keys()]).toEqual(["n"]);
  });

  test("a place that was promised is free again as soon as its evacuee may not use it any more", () => {
    const { desk } = aDesk({ capacity: () => capacity(1, 0) });
    const critical = pool("a", [noticed("a", 0)], { priority: "critical" });
    expect(kinds(desk.look(critical, NOON).evacuation)).toEqual({ a: "on_demand/local" });
    const freeze = { until: at("13:00:00"), why: "audit", by: "eve" };
    const lost = instance("draining", { id: "a", on: [], evidence: ["node_lost"], record: { ordinal: 0, drainLoss: "forced" } });
    desk.look({ ...pool("a", [lost], { priority: "critical" }, 1), freeze }, NOON + 1_000);
    expect(desk.overview(NOON + 1_000).supplies.find(({ supply }) => supply.id === "on_demand/local")?.reserved).toBe(0);
  });

  test("what hangs in a pool that is not looked at any more stops nobody for ever", () => {
    const { desk } = aDesk({ absorption: { perSecond: 2, burst: 2 } });
    const some = (phase: "admitted" | "serving", since: number) =>
      Array.from({ length: 5 }, (_, index) => successor(`o-${index}`, index, phase, since));
    desk.look(pool("a", some("admitted", NOON)), NOON);
    desk.look(pool("a", some("serving", NOON + 100)), NOON + 100);
    desk.look(pool("a", some("admitted", NOON + 10_000)), NOON + 10_000);
    const many = Array.from({ length: 20 }, (_, index) => noticed(`i-${index}`, index, at("12:30:00")));
    desk.look(pool("b", many), NOON + 10_000);
    desk.look(pool("b", many), NOON + 41_000); // nothing of a can be on its way any more
    const before = desk.overview(NOON + 41_000).absorption.tokens;
    expect(desk.overview(NOON + 41_500).absorption.tokens - before).toBeCloseTo(1);
  });
});

describe("standby is left to those who may have to follow (S12, I13)", () => {
  const noMachines = { capacity: () => ({ ...capacity(0, 0), readyInMs: 5_000 }) };
  const risk = (deadline = at("12:02:00")) =>
    pool("risk", [noticed("r", 0, deadline), warm("w1"), ...unplacedOf("r")], { standby: { count: 1 } }, 1 + MOST_UNPLACED);
  const unplacedOf = (of: string) =>
    Array.from({ length: MOST_UNPLACED }, (_, index) => successor(`${of}u-${index}`, index + 1, "pending"));

  test("of a more important pool that was hit a moment ago, and to nobody once those have moved or two minutes are over", () => {
    const { desk, inputs } = aDesk(noMachines);
    const hit = pool("quotes", [noticed("q", 0, at("12:00:30")), named("stays", 1), ...unplacedOf("q")], { priority: "critical" }, 12);
    desk.look(hit, NOON);
    desk.look(risk(), NOON + 1_000);
    expect(inputs.at(-1)?.exposed).toEqual([
      {
        pool: "default/quotes",
        priority: "critical",
        latencyLimitMs: 100,
        count: 1,
        leadMs: 35_000,
        workMs: 1_000,
        until: NOON - 5_000 + 120_000,
      },
    ]);
    const moved = instance("serving", {
      id: "m",
      on: [node("n-m")],
      record: { replaces: "q", purpose: "replace", ordinal: 0, phaseSince: NOON + 2_000 },
    });
    desk.look(pool("quotes", [moved, noticed("q2", 1, at("12:00:40"))], { priority: "critical" }), NOON + 5_000);
    expect(inputs.at(-1)?.exposed).toEqual([]);
    desk.look(hit, NOON + 6_000);
    expect(inputs.at(-1)?.exposed?.length).toBe(1);
    desk.look(risk(at("12:10:00")), NOON + 130_000);
    expect(inputs.at(-1)?.exposed).toEqual([]);
  });

  test("a pool that is gone, or was never hit, is expected to lose nobody", () => {
    const { desk, inputs } = aDesk(noMachines);
    desk.look(pool("quotes", [noticed("q", 0, at("12:00:30")), named("stays", 1)], { priority: "critical" }), NOON);
    desk.forget("default/quotes");
    desk.look(pool("calm", [named("c", 0)], { priority: "critical" }), NOON);
    desk.look(risk(), NOON + 1_000);
    expect(inputs.at(-1)?.exposed).toEqual([]);
  });
});
