import { describe, expect, test } from "vitest";
import type { TaggedCounts } from "../../sdk/queue-client.ts";
import type { ScaleLook } from "./look.ts";
import { nothingShownBy, type ScalingTrial, scalingClaims } from "./verify-report.ts";

const look = (at: number, desired: number, serving: number, more: Partial<TaggedCounts> = {}): ScaleLook => ({
  ...{ at, desired, serving, backlog: null },
  jobs: { waiting: 0, taken: 0, dead: 0, done: 0, nothing: 0, failed: 0, reaped: 0, oldestAgeMs: null, ...more },
});
const trial = (more: Partial<ScalingTrial> = {}): ScalingTrial => ({
  control: [look(0, 2, 2), look(500, 2, 2)],
  injectedAt: 1_000,
  jobs: 20,
  looks: [look(1_100, 2, 2, { waiting: 20 }), look(1_300, 4, 2, { waiting: 18, taken: 2 }), look(3_000, 4, 4, { done: 12, nothing: 8 })],
  cleared: { removed: 0, left: 0 },
  ...more,
});
const failed = (more: Partial<ScalingTrial>) =>
  scalingClaims(trial(more))
    .filter(({ held }) => !held)
    .map(({ claim, found }) => `${claim}: ${found}`);

describe("a proof of scaling by effect (K9)", () => {
  test("holds when the size rose, more served and each job was done", () => {
    expect(scalingClaims(trial()).map(({ held, found }) => `${held}: ${found}`)).toEqual([
      "true: 2 → 4, after 300ms",
      "true: 2 → 4, after 2s",
      "true: 20 jobs, after 2s",
      "true: 20 of 20",
      "true: 0 taken back, 0 left",
    ]);
  });

  test("a size that rises and instances that never serve are no effect", () => {
    const looks = [look(1_300, 4, 2, { waiting: 18, taken: 2 }), look(9_000, 4, 2, { done: 20 })];
    expect(failed({ looks })).toEqual(["more instances served: 2 → 2, not within the window"]);
  });

  test("jobs that failed or are dead are gone and not done, and what is left is said", () => {
    const looks = [look(1_300, 4, 4, { waiting: 18 }), look(9_000, 4, 4, { done: 17, failed: 2, dead: 1 })];
    expect(failed({ looks, cleared: { removed: 1, left: 2 } })).toEqual([
      "each injected job was done: 17 of 20",
      "nothing of the injected work stayed behind: 1 taken back, 2 left",
    ]);
  });

  test("nothing is shown by a size that moves without work, or when nobody looked", () => {
    expect(nothingShownBy(trial())).toEqual([]);
    expect(nothingShownBy(trial({ control: [look(0, 2, 2), look(500, 2, 3)] }))).toHaveLength(1);
    expect(nothingShownBy(trial({ control: [] }))).toEqual(["nobody looked before the injection"]);
  });
});
