/** Several controllers that share the pools, under every order that the seeds draw; more of them in `shared.real.test.ts`. */
import { expect, test } from "vitest";
import { leasedScenario, simulateShared } from "./shared.ts";

test("three controllers that come and go share the pools: no invariant is violated, and all converge (I1–I8, I11–I19, I21, I26, I27)", async () => {
  expect(await simulateShared(1, 2, { faultsForMs: 20_000 })).toEqual([]);
}, 120_000);

test("so they do when every pool has writer leases and writers are cut off beside all else (I1, I2, I4)", async () => {
  expect(await simulateShared(1, 2, { faultsForMs: 20_000, scenarioOf: leasedScenario })).toEqual([]);
}, 120_000);
