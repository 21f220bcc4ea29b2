import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ANYWHERE, type Spot } from "../../model/placement.ts";
import { heatOf, LAUNCH_HALF_LIFE_MS, LOSS_HALF_LIFE_MS, placementOf, type SpotHistory } from "./heat.ts";

const NOW = 10_000_000;
const MINUTE = 60_000;
const spot = (zone: string, more: Partial<Spot> = {}): Spot => ({
  site: "local",
  zone,
  instanceType: "x",
  capacityType: "spot",
  ...more,
});
const history = (more: Partial<SpotHistory> = {}): SpotHistory => ({
  spot: spot("a"),
  losses: [],
  failedLaunches: [],
  launches: [],
  running: [],
  ...more,
});
const times = (count: number, at: number): readonly number[] => Array.from({ length: count }, () => at);

describe("the heat of a spot (S2)", () => {
  test.each([
    ["nothing is known", {}, 0],
    ["one loss and nothing else", { losses: [NOW] }, 0.5],
    ["one loss among nine that have lived long", { losses: [NOW], running: times(9, NOW - 60 * MINUTE) }, 1 / 11],
    ["nine that began a moment ago prove nothing", { losses: [NOW], running: times(9, NOW) }, 0.5],
    ["a loss counts half after ten minutes", { losses: [NOW - LOSS_HALF_LIFE_MS] }, 0.5 / 1.5],
    ["a launch that failed", { failedLaunches: [NOW] }, 0.5],
    ["three that failed and one that did not", { failedLaunches: times(3, NOW), launches: [NOW] }, 3 / 5],
    ["a failed launch counts half after three minutes", { failedLaunches: [NOW - LAUNCH_HALF_LIFE_MS] }, 0.5 / 1.5],
    ["losses and failed launches are independent signs", { losses: [NOW], failedLaunches: [NOW] }, 0.75],
    ["a storm that takes 20 of 24", { losses: times(20, NOW), running: times(4, NOW - 60 * MINUTE) }, 20 / 25],
  ])("%s", (_, more, expected) => expect(heatOf(history(more), NOW)).toBeCloseTo(expected, 10));

  test("lies between 0 and 1, falls with time alone, and rises with each loss", () => {
    const aTime = fc.integer({ min: NOW - 60 * MINUTE, max: NOW });
    const aHistory = fc.record({
      losses: fc.array(aTime, { maxLength: 20 }),
      failedLaunches: fc.array(aTime, { maxLength: 20 }),
      launches: fc.constant<number[]>([]),
      running: fc.array(aTime, { maxLength: 20 }),
    });
    fc.assert(
      fc.property(aHistory, fc.integer({ min: 0, max: 10 * MINUTE }), (known, later) => {
        const heat = heatOf(known, NOW);
        expect(heat).toBeGreaterThanOrEqual(0);
        expect(heat).toBeLessThan(1);
        expect(heatOf(known, NOW + later)).toBeLessThanOrEqual(heat + 1e-9);
        expect(heatOf({ ...known, losses: [...known.losses, NOW] }, NOW)).toBeGreaterThan(heat);
      }),
    );
  });
});

describe("where replacements go", () => {
  const old = times(6, NOW - 60 * MINUTE);
  const well = (zone: string, more: Partial<Spot> = {}): SpotHistory => history({ spot: spot(zone, more), running: old });
  const dying = (zone: string, more: Partial<Spot> = {}): SpotHistory => history({ spot: spot(zone, more), losses: times(10, NOW) });
  const offeredBy = (...histories: readonly SpotHistory[]): readonly Spot[] => histories.map((each) => each.spot);

  test("anywhere while all is well", () => {
    const all = [well("a"), well("b")];
    expect(placementOf(all, offeredBy(...all), NOW)).toEqual(ANYWHERE);
  });

  test("not to the zone in which capacity is dying", () => {
    const all = [history({ spot: spot("a"), losses: times(4, NOW) }), well("b")];
    expect(placementOf(all, offeredBy(...all), NOW)).toEqual({ avoid: { zones: ["a"], instanceTypes: [], nodes: [] }, capacityType: null });
  });

  test("not to the instance type that dies, where another one is well", () => {
    const all = [dying("a"), well("a", { instanceType: "y" }), well("a", { instanceType: "y" }), well("a", { instanceType: "z" })];
    expect(placementOf(all, offeredBy(...all), NOW)).toEqual({ avoid: { zones: [], instanceTypes: ["x"], nodes: [] }, capacityType: null });
  });

  test("on demand when spot is dying and on demand is offered and not hot itself", () => {
    const onDemand = spot("b", { capacityType: "on-demand" });
    expect(placementOf([dying("a"), dying("b")], [onDemand], NOW)).toEqual({
      avoid: { zones: [], instanceTypes: [], nodes: [] },
      capacityType: "on-demand",
    });
    const exhausted = history({ spot: onDemand, failedLaunches: times(3, NOW) });
    expect(placementOf([dying("a"), dying("b"), exhausted], [onDemand], NOW)).toEqual(ANYWHERE);
    expect(placementOf([dying("a"), dying("b")], [], NOW)).toEqual(ANYWHERE);
  });

  test("away from nodes that are announced to be taken, by name", () => {
    const all = [well("a"), well("b")];
    expect(placementOf(all, offeredBy(...all), NOW, ["node-a1"]).avoid).toEqual({ zones: [], instanceTypes: [], nodes: ["node-a1"] });
  });

  test("never away from everything, and the same whatever the order (I17)", () => {
    const aSpot = fc
      .record({
        zone: fc.constantFrom("a", "b", "c"),
        instanceType: fc.constantFrom("x", "y"),
        capacityType: fc.constantFrom("spot", "on-demand"),
      })
      .map((each) => ({ site: "local", ...each }));
    const anEvent = fc.array(fc.integer({ min: NOW - 30 * MINUTE, max: NOW }), { maxLength: 8 });
    const aHistory = fc.record({ spot: aSpot, losses: anEvent, failedLaunches: anEvent, launches: anEvent, running: anEvent });
    fc.assert(
      fc.property(fc.array(aHistory, { minLength: 1, maxLength: 8 }), (all) => {
        const offered = all.map((each) => each.spot);
        const placement = placementOf(all, offered, NOW);
        expect(placementOf(all.toReversed(), offered.toReversed(), NOW)).toEqual(placement);
        const allowed = offered.filter(
          (each) =>
            !placement.avoid.zones.includes(each.zone) &&
            !placement.avoid.instanceTypes.includes(each.instanceType) &&
            (placement.capacityType === null || each.capacityType === placement.capacityType),
        );
        expect(allowed.length).toBeGreaterThan(0);
      }),
    );
  });
});
