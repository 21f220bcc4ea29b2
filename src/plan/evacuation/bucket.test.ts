import { describe, expect, test } from "vitest";
import { AbsorptionBucket } from "./bucket.ts";
import { NOON } from "./testing/builders.ts";

/** A site that truly serves `perSecond`, one after the other, each for `workMs` at the least; everybody wants to go there for `seconds`. */
function overrun(bucket: AbsorptionBucket, perSecond: number, seconds: number, from = NOON, workMs = 400): { started: number } {
  const ends: { at: number; took: number }[] = [];
  let freeAt = from;
  let started = 0;
  for (let now = from; now < from + seconds * 1_000; now += 50) {
    while (ends[0] && ends[0].at <= now) {
      const end = ends.shift();
      if (end) bucket.served(now, end.took);
    }
    while (bucket.take(now)) {
      started += 1;
      freeAt = Math.max(freeAt, now) + 1_000 / perSecond;
      ends.push({ at: freeAt + workMs, took: freeAt + workMs - now });
    }
  }
  return { started };
}

describe("a bucket's rate is learned from what is measured (S12, I12)", () => {
  test("never more tokens than the rate and the burst give", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 2, burst: 4 }, NOON);
    let taken = 0;
    for (let now = NOON; now <= NOON + 9_000; now += 10) while (bucket.take(now)) taken += 1;
    expect(taken).toBe(4 + 18);
  });

  test("a site that absorbs 3 a second and was said to absorb 20 is told from what comes through", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 20, burst: 20 }, NOON);
    overrun(bucket, 20, 10); // what it is like when it is well
    overrun(bucket, 3, 120, NOON + 10_000);
    expect(bucket.learned().perSecond).toBeGreaterThan(1.5);
    expect(bucket.learned().perSecond).toBeLessThan(4.5);
  });

  test("a site that absorbs more than was said is found out, a quarter each ten seconds", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 1, burst: 1 }, NOON);
    overrun(bucket, 10, 120);
    expect(bucket.learned().perSecond).toBeGreaterThan(7);
    expect(bucket.learned().perSecond).toBeLessThan(13);
  });

  test("where more than a tenth fails the rate falls to nine tenths of what serves, by half at most", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 10, burst: 10 }, NOON);
    for (let index = 0; index < 80; index += 1) bucket.served(NOON + index * 100, 500);
    for (let index = 0; index < 10; index += 1) bucket.failed(NOON + 8_000);
    expect(bucket.view(NOON + 10_000).perSecond).toBeCloseTo(7.2);
    for (let index = 0; index < 10; index += 1) bucket.failed(NOON + 11_000);
    expect(bucket.view(NOON + 20_000).perSecond).toBeCloseTo(3.6);
  });

  test("one of three that fails tells little: the rate is not taken for the two that were asked to come", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 10, burst: 10 }, NOON);
    bucket.served(NOON + 1_000, 500);
    bucket.served(NOON + 1_000, 500);
    bucket.failed(NOON + 8_000);
    expect(bucket.view(NOON + 10_000).perSecond).toBeCloseTo(5);
  });

  test("a rate that is hardly used does not rise, however much was waited", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 10, burst: 10 }, NOON);
    for (let index = 0; index < 20; index += 1) bucket.served(NOON + index * 100, 500);
    bucket.waited(NOON + 3_000);
    expect(bucket.view(NOON + 10_000).perSecond).toBe(10);
  });

  test("a quiet site keeps its rate, however long, and what was learned is taken up again", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 10, burst: 10 }, NOON, { perSecond: 3, bestMs: 400 });
    bucket.served(NOON + 1_000, 400);
    expect(bucket.view(NOON + 86_400_000)).toEqual({ site: "a", perSecond: 3, burst: 10, tokens: 10 });
    expect(bucket.learned()).toEqual({ perSecond: 3, bestMs: 400 });
  });

  test("while more is under way than the site has at its best, tokens come at the least rate only; when that has ended they come as before", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 4, burst: 4 }, NOON, { perSecond: 4, bestMs: 5_000 });
    for (let index = 0; index < 4; index += 1) bucket.take(NOON);
    bucket.underWay(NOON, 30);
    expect(bucket.view(NOON + 2_000).tokens).toBeCloseTo(0.2);
    bucket.underWay(NOON + 2_000, 20);
    expect(bucket.view(NOON + 2_500).tokens).toBeCloseTo(2.2);
  });

  test("a clock that is set back gives nothing and takes nothing", () => {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 10, burst: 10 }, NOON);
    for (let index = 0; index < 10; index += 1) bucket.take(NOON);
    expect(bucket.take(NOON - 60_000)).toBe(false);
    expect(bucket.view(NOON - 59_900).tokens).toBeCloseTo(1);
  });
});

test("what hangs never stops everybody: with more under way than there should be, tokens still come at the least rate (D12)", () => {
  const bucket = new AbsorptionBucket({ site: "a", perSecond: 20, burst: 20, leastPerSecond: 1, leastBurst: 10 }, NOON);
  bucket.served(NOON, 5);
  bucket.view(NOON + 10_000); // 5 ms is the best that was seen
  for (let index = 0; index < 20; index += 1) bucket.take(NOON + 10_000);
  bucket.underWay(NOON + 10_000, 3);
  expect(bucket.take(NOON + 10_500)).toBe(false);
  expect(bucket.take(NOON + 11_000)).toBe(true);
});

test("a clock that is set back while one is admitted leaves no best time that nobody reaches (D14)", () => {
  for (const tookMs of [0, -3_600_000]) {
    const bucket = new AbsorptionBucket({ site: "a", perSecond: 10, burst: 10 }, NOON);
    bucket.served(NOON, tookMs);
    bucket.view(NOON + 10_000);
    expect(bucket.learned()).toEqual({ perSecond: 10, bestMs: null });
    for (let index = 0; index < 50; index += 1) bucket.served(NOON + 12_000, 400);
    bucket.view(NOON + 20_000);
    expect(bucket.learned()).toEqual({ perSecond: 10, bestMs: 400 });
  }
});
