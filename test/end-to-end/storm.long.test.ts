/** The storm as a user starts it: 40 real processes, 20 of 24 nodes announced to go within seconds (S2, S12). Level: real processes. */
import { expect, test } from "vitest";
import { playStormCommand } from "./storm.ts";

test("20 nodes: announced ones lose nothing, critical comes first, the standby is refilled, and the control loses work", () => {
  const { report, code } = playStormCommand([], 400_000);
  console.log(JSON.stringify(report));

  expect(report.broken).toEqual([]);
  expect([report.processes, report.going, report.requests.lost, report.requests.cut]).toEqual([40, 20, 0, 0]);
  expect(report.nodesOnDemand).toBeGreaterThan(0);
  expect(report.control.lost + report.control.cut).toBeGreaterThan(0);
  expect(code).toBe(0);
});
