import { expect, test } from "vitest";
import { leasedScenario, simulateShared } from "./shared.ts";

test("sixty seeds of three controllers that come and go: no invariant is violated, and all converge", async () => {
  expect(await simulateShared(100, 60)).toEqual([]);
}, 600_000);

test("so they do in thirty seeds in which every pool has writer leases", async () => {
  expect(await simulateShared(200, 30, { scenarioOf: leasedScenario })).toEqual([]);
}, 600_000);
