import { expect, test } from "vitest";
import { ownQuery, ownRowsOf, probeQuery } from "./own-query.ts";

test("what an own query gives is what its numbers add up to", () => {
  const buckets = new Map<number, { count: number; sum: number }>();
  for (let n = 1; n <= 1_237; n++) {
    const { count, sum } = buckets.get(n % 10) ?? { count: 0, sum: 0 };
    buckets.set(n % 10, { count: count + 1, sum: sum + n });
  }
  expect(ownRowsOf(1_237)).toEqual(Array.from({ length: 10 }, (_, k) => [k, buckets.get(k)?.count, String(buckets.get(k)?.sum)]));
});

test("sums that a number does not hold are exact", () => {
  expect(ownRowsOf(10_000_000_000)[0]).toEqual([0, 1_000_000_000, "5000000005000000000"]);
});

test("its source is bound to no host", () => {
  expect(ownQuery(60_000_000)).toContain("FROM TABLE(sequence(start => 1, stop => 60000000))");
});

test("a probe has four splits a worker, at most a thousand", () => {
  expect([probeQuery(2), probeQuery(5_000)].map((sql) => /stop => (\d+)/.exec(sql)?.[1])).toEqual(["8000000", "1000000000"]);
});
