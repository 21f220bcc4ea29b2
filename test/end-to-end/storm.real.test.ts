/** A small storm as a user starts it: six real processes, three of four nodes announced to go (S2, S12). Level: real processes. */
import { expect, test } from "vitest";
import { playStormCommand } from "./storm.ts";

test("six processes: announced ones lose nothing, the standby takes over, and the control loses work", () => {
  const { report, code } = playStormCommand(["--nodes", "3", "--deadline", "40s"], 240_000);

  console.log(JSON.stringify(report));
  expect(report.broken.filter((sentence) => !sentence.includes("did not come before"))).toEqual([]);
  expect([report.processes, report.requests.lost, report.requests.cut]).toEqual([6, 0, 0]);
  expect(report.classes.critical.byStandby).toBe(1);
  expect(report.control.lost + report.control.cut).toBeGreaterThan(0);
  expect(code).toBe(report.held ? 0 : 1);
});
