import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { at, draining, instance, node, NOON, pod, poolOf, serving } from "../../../test/builders/pool.ts";
import type { InstanceSlots } from "../../model/slots.ts";
import { reason, type ReasonCode } from "../../model/reasons.ts";
import type { Plan } from "../decision.ts";
import { planPool } from "../plan.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../snapshot.ts";
import { inputOf } from "./plan-scaling.ts";
import { demand, slots, stateOf, troubled } from "./testing/builders.ts";

const brief = ({ decisions }: Plan): readonly string[] =>
  decisions.map((each) => {
    if (each.kind === "set_desired") return `size ${each.from}→${each.to} ${each.reason.code}`;
    if (each.kind === "add_instance") return `add #${each.ordinal}`;
    return `${each.kind} ${"instance" in each ? each.instance : ""}`;
  });
const holds = ({ holds: all }: Plan): readonly string[] =>
  all.filter(({ reason: why }) => why.code !== "serving").map(({ subject, reason: why }) => `${subject || "pool"}: ${why.code}`);

const SCALE = { signal: { kind: "queue", connection: "main", queue: "captures" }, target: 10, down: { window: "0s" } };

type Parts = Partial<PoolSnapshot> & { readonly scale?: PoolSnapshot["scale"]; readonly policy?: Record<string, unknown> };

/** Of workers that follow a queue, from 1 to 20. */
function workers(
  instances: readonly InstanceSnapshot[],
  { policy = {}, ...rest }: Parts = {},
  spec: Record<string, unknown> = {},
): PoolSnapshot {
  const scale = { ...SCALE, ...policy };
  return poolOf(
    { desired: instances.length, floor: 0, max: 20, spec: { driver: "worker", worker: { flow: "queue/captures" }, scale, ...spec } },
    instances,
    { demand: demand(10 * instances.length), ...rest },
  );
}

const own = (progressing: number, stuck = 0, longestQuietMs = stuck === 0 ? 0 : 60_000): InstanceSlots => ({
  total: 4,
  free: 4 - progressing - stuck,
  progressing,
  stuck,
  longestQuietMs,
  flow: "queue/captures",
});
const worker = (
  id: string,
  ordinal: number,
  its: InstanceSlots | null = own(2),
  more: Parameters<typeof serving>[0] = {},
): InstanceSnapshot => serving({ id, on: [node(`node-${id}`)], slots: its, record: { ordinal }, ...more });
const fleet = (size: number): readonly InstanceSnapshot[] => Array.from({ length: size }, (_, index) => worker(`w${index}`, index));

describe("a pool that follows its demand", () => {
  test("is planned with the new size in the same plan, and keeps what was decided", () => {
    const plan = planPool(workers(fleet(2), { demand: demand(40), slots: slots({ throughput: 1.5 }) }), NOON);
    expect([brief(plan), plan.recommendation]).toEqual([["size 2→4 scale_up", "add #2", "add #3"], 4]);
    expect(plan.decisions[0]).toEqual({
      kind: "set_desired",
      from: 2,
      to: 4,
      state: {
        desired: 4,
        changedAt: NOON,
        direction: "up",
        lastUp: { at: NOON, from: 2, to: 4, throughput: 1.5 },
        recent: [{ at: NOON, by: 2 }],
      },
      reason: reason("scale_up", { work: 40, target: 10, from: 2, to: 4, coming: 0 }),
    });
  });

  test("has the size that was decided last, whatever its document says", () => {
    const plan = planPool(workers(fleet(2), { scale: stateOf({ desired: 3 }), demand: demand(30) }), NOON);
    expect(brief(plan)).toEqual(["add #2"]);
  });

  test("without a scale has the size of its document and is asked nothing", () => {
    const plan = planPool(poolOf({ desired: 3 }, fleet(2), { demand: demand(900), scale: stateOf({ desired: 9 }) }), NOON);
    expect([brief(plan), plan.recommendation]).toEqual([["add #2"], null]);
  });

  test("holds its size when nothing of its demand is known, and says so", () => {
    const plan = planPool(workers(fleet(2), { demand: null }), NOON);
    expect([brief(plan), holds(plan), plan.recommendation]).toEqual([[], ["pool: scale_demand_unread"], null]);
  });

  test("holds its size when the demand cannot be believed, and repairs as ever (K11)", () => {
    const plan = planPool(workers(fleet(2), { scale: stateOf({ desired: 3 }), demand: troubled("not_a_number") }), NOON);
    expect([brief(plan), holds(plan)]).toEqual([["add #2"], ["pool: scale_demand_invalid"]]);
  });

  test("goes to nothing when it is drained with its Pool", () => {
    const plan = planPool(workers(fleet(1), { deleting: true, demand: demand(100) }, { deletion: "drain" }), NOON);
    expect(brief(plan)).toEqual(["drain_instance w0"]);
  });

  test("follows its demand while its deletion is refused", () => {
    const plan = planPool(workers(fleet(1), { deleting: true, demand: demand(20) }), NOON);
    expect(brief(plan)).toEqual(["size 1→2 scale_up", "add #1"]);
  });

  test("keeps its size while it is frozen, and remembers what is wanted", () => {
    const freeze = { until: NOON + 60_000, why: "a release", by: "ops" };
    const plan = planPool(workers(fleet(2), { demand: demand(90), freeze } as Parts), NOON);
    expect([brief(plan), holds(plan), plan.recommendation]).toEqual([[], ["pool: frozen"], 9]);
  });

  test("follows its demand under a brake", () => {
    const plan = planPool(workers(fleet(2), { demand: demand(30), brake: { suspect: 2, total: 2 } }), NOON);
    expect(brief(plan)).toEqual(["size 2→3 scale_up", "add #2"]);
  });

  test("asks for no more while a quota refuses a place, and gives up none that waits (I21)", () => {
    const waiting = instance("preparing", { id: "w2", pods: [pod("w2-0", null)], record: { ordinal: 2 } });
    const noPlace = new Map([["uid-w2-0", { kind: "quota", dimension: "SSD_TOTAL_GB" } as const]]);
    const held = planPool(workers([...fleet(2), waiting], { demand: demand(90), noPlace }), NOON);
    expect([brief(held), holds(held)]).toEqual([[], ["pool: scale_at_quota", "w2: no_capacity"]]);
    const tight = new Map([["uid-w2-0", { kind: "resource", dimension: "cpu" } as const]]);
    expect(brief(planPool(workers([...fleet(2), waiting], { demand: demand(90), noPlace: tight }), NOON))[0]).toBe("size 3→7 scale_up");
  });

  test("counts the time of a hold over all its signs", () => {
    const standing = (code: ReasonCode, params: Record<string, string>, since: number) => [
      { subject: "", reason: reason(code, params), since },
    ];
    const stuck = { demand: demand(90), slots: slots({ progressing: 4, stuck: 4 }) };
    const young = workers(fleet(2), {
      ...stuck,
      reasons: standing("scale_held_slowing", { since: "2026-11-30T11:50:00.000Z" }, at("11:59:00")),
    });
    expect(holds(planPool(young, NOON))).toEqual(["pool: scale_held_stuck"]);
    const old = workers(fleet(2), {
      ...stuck,
      reasons: standing("scale_held_slowing", { since: "2026-11-30T11:45:00.000Z" }, at("11:59:00")),
    });
    expect(holds(planPool(old, NOON))).toEqual(["pool: scale_held_long"]);
    const other = workers(fleet(2), { ...stuck, reasons: standing("scale_at_max", {}, at("10:00:00")) });
    expect(holds(planPool(other, NOON))).toEqual(["pool: scale_held_stuck"]);
  });
});

describe("what the policy is told", () => {
  test("is who serves, since when each of them does, and who comes", () => {
    const since = (ordinal: number, time: string) => ({ record: { ordinal, phaseSince: at(time) } });
    const coming = instance("preparing", { id: "new", record: { ordinal: 3 } });
    const two = [worker("a", 0, null, since(0, "11:50:00")), worker("b", 1, null, since(1, "11:20:00"))];
    const pool = workers([...two, coming], { scale: stateOf({ desired: 3 }) });
    const { scale } = pool.spec;
    expect(scale && inputOf(pool, scale).instances).toEqual({ serving: 2, coming: 1, since: [at("11:20:00"), at("11:50:00")] });
  });
});

describe("scale-in", () => {
  const shrunk = (instances: readonly InstanceSnapshot[], to: number): readonly string[] =>
    brief(planPool(workers(instances, { scale: stateOf({ desired: to }), demand: demand(10 * to) }), NOON));

  test("takes the least busy first", () => {
    expect(shrunk([worker("a", 0, own(1)), worker("b", 1, own(4)), worker("c", 2, own(2))], 1)).toEqual([
      "drain_instance a",
      "drain_instance c",
    ]);
  });

  test("takes of those that do nothing the one that has been stuck longest: the well ones stay", () => {
    const idle = worker("idle", 0, own(0));
    const stuck = worker("stuck", 1, own(0, 4, 200_000));
    const older = worker("older", 2, own(0, 1, 900_000));
    expect(shrunk([idle, stuck, older], 2)).toEqual(["drain_instance older"]);
    expect(shrunk([idle, stuck, older], 1)).toEqual(["drain_instance older", "drain_instance stuck"]);
  });

  test("takes who says nothing of its slots after those that do", () => {
    expect(shrunk([worker("a", 0, own(4)), worker("mute", 1, null)], 1)).toEqual(["drain_instance a"]);
  });

  test("interrupts no slot: the drain has no end of its own, and more of them wait for their turn", () => {
    const plan = planPool(workers(fleet(6), { scale: stateOf({ desired: 1 }), demand: demand(10) }), NOON);
    expect(plan.decisions.map((each) => (each.kind === "drain_instance" ? [each.loss, each.deadline] : each.kind))).toEqual([
      ["voluntary", null],
      ["voluntary", null],
    ]);
    expect(holds(plan)).toEqual(["w3: draining_used", "w2: draining_used", "w1: draining_used"]);
  });

  test("lets a draining one finish its busy slots, also stuck ones", () => {
    const busy = draining({
      id: "b",
      slots: own(0, 2),
      ownObligations: 2,
      obligations: { requests: 0, sessions: 2 },
      record: { ordinal: 1 },
    });
    const plan = planPool(workers([worker("a", 0), busy], { scale: stateOf({ desired: 1 }), demand: demand(10) }), NOON);
    expect(brief(plan)).toEqual([]);
  });

  test("gives up those that are on their way before it drains one that works", () => {
    const coming = instance("preparing", { id: "new", record: { ordinal: 1 } });
    expect(shrunk([worker("a", 0, own(0)), coming], 1)).toEqual(["move new"]);
  });
});

describe("every plan of a scaled pool", () => {
  const aWorker = fc.record({ progressing: fc.nat(4), stuck: fc.nat(2), quiet: fc.nat(900_000) });
  test("does not depend on the order in which instances were seen (I17)", () => {
    fc.assert(
      fc.property(fc.array(aWorker, { minLength: 2, maxLength: 8 }), fc.nat(8), fc.nat(120), fc.nat(7), (all, to, backlog, turn) => {
        const instances = all.map(({ progressing, stuck, quiet }, index) => worker(`w${index}`, index, own(progressing, stuck, quiet)));
        const parts = { scale: stateOf({ desired: to }), demand: demand(backlog) };
        const turned = [...instances.slice(turn), ...instances.slice(0, turn)].toReversed();
        expect(planPool(workers(turned, parts), NOON)).toEqual(planPool(workers(instances, parts), NOON));
      }),
      { numRuns: 300 },
    );
  });
});
