import { describe, expect, test } from "vitest";
import { backlogReplicas, cpuReplicas } from "./scalers.ts";

describe("the scalers of the control", () => {
  test.each([
    [3, 160, 6],
    [3, 80, 3],
    [3, 86, 3],
    [3, 90, 4],
    [4, 30, 2],
    [2, 1, 2],
    [4, 400, 6],
  ])("by CPU: %i replicas at %i %% become %i", (current, used, wanted) => {
    expect(cpuReplicas(current, used, { utilization: 80, min: 2, max: 6 })).toBe(wanted);
  });

  test.each([
    [0, 2],
    [9, 3],
    [100, 6],
  ])("by backlog: %i pieces of work ask for %i", (work, wanted) => {
    expect(backlogReplicas(work, 4, { min: 2, max: 6 })).toBe(wanted);
  });
});
