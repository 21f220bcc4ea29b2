import { expect, test } from "vitest";
import { beginningsOf, isPaced } from "./beginnings.ts";
import { NOON } from "./testing/builders.ts";
import type { EvacuationPlan, Placement } from "./types.ts";

const place: Placement = { supply: "a", startAt: NOON, servingAt: NOON + 5_000, breach: false, preempts: null };
const { startAt: _, ...where } = place;
const prediction = { withinMs: 0, within: 0, beforeDeadline: 0, of: 0, breaches: 0, attainable: true, bottleneck: null };

test("who may go now begins, the late ones too where a place is left; who waits, has none or has begun does not", () => {
  const plan: EvacuationPlan = {
    prediction,
    nextLookAt: null,
    grants: [
      { kind: "go", evacuee: "now", reservedUntil: NOON + 15_000, ...where, preempts: "batch" },
      { kind: "go", evacuee: "begun", reservedUntil: NOON + 9_000, ...where },
      { kind: "wait", evacuee: "later", ...place, startAt: NOON + 1_000 },
      { kind: "unsavable", evacuee: "late", why: "time", missing: "3 s", late: place, reservedUntil: NOON + 15_000 },
      { kind: "unsavable", evacuee: "later still", why: "time", missing: "3 s", late: place, reservedUntil: null },
      { kind: "unsavable", evacuee: "never", why: "supply", missing: "a place", late: null, reservedUntil: null },
    ],
  };
  expect(beginningsOf(plan, (evacuee) => evacuee === "begun")).toEqual([
    { evacuee: "now", supply: "a", until: NOON + 15_000, servingAt: NOON + 5_000, preempts: "batch" },
    { evacuee: "late", supply: "a", until: NOON + 15_000, servingAt: NOON + 5_000, preempts: null },
  ]);
  expect(isPaced(plan)).toBe(true);
});
