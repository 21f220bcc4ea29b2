/** What must hold over a whole evacuation, whatever comes when; a failure prints its seed. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { instance, node, NOON, poolOf, serving } from "../../test/builders/pool.ts";
import { ANYWHERE } from "../model/placement.ts";
import { standbySupplyId } from "../plan/evacuation/turn.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../plan/snapshot.ts";
import { EvacuationDesk, FIRST_ABSORPTION } from "./evacuation-desk.ts";
import { MOST_UNPLACED } from "./evacuation-supply.ts";

const POOLS = [
  { name: "a", priority: "critical" },
  { name: "b", priority: "standard" },
  { name: "c", priority: "batch" },
] as const;
const SIZE = 30;
const MACHINES = 5;

/** One pool as the store would show it. */
class Fleet {
  readonly name: string;
  readonly priority: string;
  readonly noticed = new Set<number>();
  readonly replaced = new Map<number, "pending" | "placed">();
  warm: number;

  constructor(name: string, priority: string, warm: number) {
    this.name = name;
    this.priority = priority;
    this.warm = warm;
  }

  snapshot(): PoolSnapshot {
    const own = Array.from({ length: SIZE }, (_, ordinal): InstanceSnapshot => {
      const id = `${this.name}-${ordinal}`;
      const record = { ordinal, pool: `default/${this.name}` };
      if (!this.noticed.has(ordinal)) return serving({ id, on: [node(`n-${id}`)], record });
      return serving({ id, on: [node(`n-${id}`)], evidence: ["spot_interruption"], deadline: NOON + 3_600_000, record });
    });
    const next = [...this.replaced].map(([ordinal, state]) =>
      instance("preparing", {
        id: `${this.name}-${ordinal}-next`,
        on: state === "placed" ? [node(`m-${this.name}-${ordinal}`)] : [],
        record: { ordinal, replaces: `${this.name}-${ordinal}`, purpose: "replace", pool: `default/${this.name}` },
      }),
    );
    const warm = Array.from({ length: this.warm }, (_, index) =>
      instance("standby", {
        id: `${this.name}-w${index}`,
        on: [node(`w-${this.name}-${index}`)],
        record: { purpose: "standby", ordinal: -1 },
      }),
    );
    return poolOf(
      { desired: SIZE, max: 2 * SIZE, spec: { priority: this.priority, standby: { count: this.warm } } },
      [...own, ...next, ...warm],
      { pool: `default/${this.name}`, name: this.name },
    );
  }
}

const anEvent = fc.record({
  pool: fc.nat(POOLS.length - 1),
  afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 4_000 }), fc.integer({ min: 10_000, max: 20_000 })),
  notices: fc.integer({ min: 0, max: 12 }),
  /** How many of those whose turn it is are begun, and of those begun find a machine. */
  begun: fc.integer({ min: 0, max: 20 }),
  placed: fc.integer({ min: 0, max: 20 }),
});

test("no place is promised twice, nobody has two successors, and starts keep to what the site absorbs, whatever comes when (I12)", () => {
  fc.assert(
    fc.property(fc.array(anEvent, { minLength: 1, maxLength: 30 }), fc.tuple(fc.nat(4), fc.nat(4), fc.nat(4)), (events, warm) => {
      const fleets = POOLS.map(({ name, priority }, index) => new Fleet(name, priority, warm[index] ?? 0));
      const starts: number[] = [];
      let now = NOON;
      const machines = () =>
        fleets.reduce((sum, { replaced }) => sum + [...replaced.values()].filter((state) => state === "placed").length, 0);
      const desk = new EvacuationDesk({
        capacity: () => ({
          at: now,
          spots: [],
          placement: ANYWHERE,
          quotas: [{ nodePool: "p", limit: MACHINES, machines: Math.min(MACHINES, machines()), spots: [] }],
          readyInMs: 20_000,
        }),
        onTurn: () => undefined,
        onPlan: (_, begun) => begun.forEach(() => starts.push(now)),
        log: (level, message, { error }) => {
          if (level === "error") throw new Error(message, { cause: error });
        },
      });
      for (const event of events) {
        now += event.afterMs;
        const fleet = fleets[event.pool];
        if (!fleet) continue;
        for (let ordinal = 0, left = event.notices; ordinal < SIZE && left > 0; ordinal += 1)
          if (!fleet.noticed.has(ordinal)) {
            fleet.noticed.add(ordinal);
            left -= 1;
          }
        for (const [ordinal, state] of [...fleet.replaced].slice(0, event.placed))
          if (state === "pending") fleet.replaced.set(ordinal, "placed");

        const { evacuation } = desk.look(fleet.snapshot(), now);
        const goes = [...evacuation.values()].filter(({ kind }) => kind === "go");
        const at = (supply: string) => goes.filter((grant) => grant.kind === "go" && grant.supply === supply).length;
        expect(at(standbySupplyId(`default/${fleet.name}`))).toBeLessThanOrEqual(fleet.warm);
        const unplaced = [...fleet.replaced.values()].filter((state) => state === "pending").length;
        // Who preempts looks for the room of a lower pool's standby.
        const preemptible = warm.slice(event.pool).reduce((sum, count) => sum + count, 0);
        expect(at(`room/default/${fleet.name}`) + unplaced).toBeLessThanOrEqual(MOST_UNPLACED + MACHINES + preemptible);
        expect([...evacuation.keys()].some((id) => fleet.replaced.has(Number(id.split("-")[1])))).toBe(false);
        for (const grant of goes.slice(0, event.begun)) {
          const ordinal = Number(grant.evacuee.split("-")[1]);
          const isWarm = grant.kind === "go" && grant.supply === standbySupplyId(`default/${fleet.name}`);
          if (isWarm) fleet.warm -= 1;
          fleet.replaced.set(ordinal, isWarm ? "placed" : "pending");
        }
      }
      for (const [first, from] of starts.entries())
        for (const [last, to] of starts.entries())
          if (last >= first)
            expect(last - first + 1).toBeLessThanOrEqual(FIRST_ABSORPTION.burst + ((to - from) / 1_000) * FIRST_ABSORPTION.perSecond + 1);
    }),
    { numRuns: 60 },
  );
});
