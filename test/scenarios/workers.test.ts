/** A pool whose size follows its demand, under the standard mix of faults (I20–I23, K11). Many more seeds: `workers.real.test.ts`. */
import { expect, test } from "vitest";
import { simulateAllWorkers, simulateWorkers } from "./worker-seeds.ts";

test("seeds with workers violate nothing and converge: jobs hang, the signal lies, and all else goes wrong too (I20, I21, I22, I23, K11)", async () => {
  const { failures } = await simulateAllWorkers(1, 3);
  expect(failures).toEqual([]);
});

test("sizes are really decided, up and down, and jobs are really reaped", async () => {
  const { log } = await simulateWorkers(4);
  const sizes = log.filter((line) => / size \d+→\d+ /.test(line));
  expect(sizes.some((line) => line.includes("scale_up"))).toBe(true);
  expect(sizes.some((line) => line.includes("scale_down"))).toBe(true);
  expect((await simulateWorkers(3)).log.some((line) => line.includes("is reaped"))).toBe(true);
});
