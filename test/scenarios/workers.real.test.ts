/** As `workers.test.ts`, with so many seeds that each kind of fault comes about. */
import { expect, test } from "vitest";
import { JOB_KINDS, STANDARD_KINDS } from "../../src/sim/faults.ts";
import { simulateAllWorkers, simulateWorkers } from "./worker-seeds.ts";

test("Sixty seeds with workers violate nothing and converge, and the faults of workers are among them (I20–I23, K11)", async () => {
  const { failures, faults } = await simulateAllWorkers(101, 60);
  expect(failures).toEqual([]);
  expect(JOB_KINDS.filter((kind) => (faults.get(kind) ?? 0) === 0)).toEqual([]);
  expect(STANDARD_KINDS.filter((kind) => (faults.get(kind) ?? 0) > 0).length).toBeGreaterThan(30);
}, 300_000);

test("the same seed gives the same run (S7)", async () => {
  expect((await simulateWorkers(9)).hash).toBe((await simulateWorkers(9)).hash);
});
