import fc from "fast-check";
import { expect, test } from "vitest";
import { nextFreshSize, nextOldSizes, rolloutBounds, type RolloutState } from "./rollout.ts";

test("percentages of surge round up, those of unavailable down, and both at zero allow one unavailable", () => {
  expect(rolloutBounds(4, undefined, undefined)).toEqual({ maxSurge: 1, maxUnavailable: 1 });
  expect(rolloutBounds(3, "25%", "25%")).toEqual({ maxSurge: 1, maxUnavailable: 0 });
  expect(rolloutBounds(3, 0, 0)).toEqual({ maxSurge: 0, maxUnavailable: 1 });
});

test("a new set starts with what the surge allows, and grows as the old ones shrink", () => {
  const state = { desired: 4, maxSurge: 1, maxUnavailable: 0, old: [{ name: "old", replicas: 4, available: 4 }] };

  expect(nextFreshSize({ ...state, fresh: undefined })).toBe(1);
  expect(
    nextFreshSize({ ...state, fresh: { name: "new", replicas: 1, available: 1 }, old: [{ name: "old", replicas: 3, available: 3 }] }),
  ).toBe(2);
});

test("old pods that are not available go first, whatever the others do", () => {
  const old = [
    { name: "a", replicas: 2, available: 0 },
    { name: "b", replicas: 2, available: 2 },
  ];

  expect([...nextOldSizes({ desired: 4, maxSurge: 1, maxUnavailable: 2, fresh: { name: "new", replicas: 1, available: 0 }, old })]).toEqual(
    [
      ["a", 0],
      ["b", 2],
    ],
  );
});

const aState = fc
  .record({
    desired: fc.integer({ min: 0, max: 20 }),
    surge: fc.integer({ min: 0, max: 5 }),
    unavailable: fc.integer({ min: 0, max: 5 }),
    fresh: fc.tuple(fc.integer({ min: 0, max: 20 }), fc.nat(20)),
    old: fc.array(fc.tuple(fc.integer({ min: 0, max: 10 }), fc.nat(10)), { maxLength: 3 }),
  })
  .map(({ desired, surge, unavailable, fresh, old }): RolloutState => {
    const set = (name: string, [replicas, available]: [number, number]) => ({ name, replicas, available: Math.min(replicas, available) });
    return {
      desired,
      ...rolloutBounds(desired, surge, unavailable),
      fresh: set("new", fresh),
      old: old.map((entry, index) => set(`old-${index}`, entry)),
    };
  });

test("a step never takes available pods below what must stay, and never grows beyond the surge", () => {
  fc.assert(
    fc.property(aState, (state) => {
      const fresh = state.fresh;
      if (fresh === undefined) return;
      const size = nextFreshSize(state);
      const total = state.old.reduce((sum, set) => sum + set.replicas, 0) + size;
      if (size > fresh.replicas) expect(total).toBeLessThanOrEqual(state.desired + state.maxSurge);

      const sizes = nextOldSizes(state);
      const before = state.old.reduce((sum, set) => sum + set.available, 0) + fresh.available;
      const after = state.old.reduce((sum, set) => sum + Math.min(set.available, sizes.get(set.name) ?? 0), 0) + fresh.available;
      if (after < before) expect(after).toBeGreaterThanOrEqual(state.desired - state.maxUnavailable);
    }),
  );
});
