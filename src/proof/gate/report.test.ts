import { expect, test } from "vitest";
import { markdownOf, reportOf } from "./report.ts";
import { aRecord, aRun, failed, statement } from "./testing/records.ts";

const OPTIONS = { gate: "fte", at: Date.UTC(2026, 11, 1, 6), level: "real processes", totalMs: 200_000 };

test("the engine's own detection is told apart from the rest", () => {
  expect(reportOf(aRecord(), OPTIONS).timings).toEqual({
    totalMs: 200_000,
    experiment: { totalMs: 61_000, detection: { unannouncedMs: 11_000, firstFailureMs: null }, backMs: 50_000 },
    control: { totalMs: 61_000, detection: { unannouncedMs: 11_000, firstFailureMs: 11_000 }, backMs: 50_000 },
  });
});

test("the page begins with the verdict and holds what it rests on", () => {
  const page = markdownOf(reportOf(aRecord(), OPTIONS));
  expect(page.split("\n").slice(0, 12)).toEqual([
    "# Gate fte: pass",
    "",
    "- query 1 lost w2 and gave the right rows; the same query without retry_policy=TASK failed 11s after its kill, by PAGE_TRANSPORT_TIMEOUT (65540) (`survived_and_control_failed`)",
    "",
    "| | |",
    "|---|---|",
    "| when | 2026-12-01T06:00:00.000Z |",
    "| level | real processes |",
    "| one variable | retry_policy: TASK → NONE |",
    "| declared workers | 2 |",
    "| took | 3m20s |",
    "",
  ]);
  for (const line of [
    "| exchange | /exchange: 33 files, 4096 bytes at the most, in 12 listings while the queries ran; 0 left afterwards |",
    "Active workers by the engine (`system.runtime.nodes`), 500ms before the kill: w1, w2. Running tasks (`system.runtime.tasks`):",
    "| query 1 | experiment-1 | TASK | 4 | finished, its 10 rows right, 20s after the kill |",
    "| back | w2 ran the new task q.0.0.0, 50s after the kill |",
  ])
    expect(page).toContain(line);
});

test("what the engine says cannot break the page", () => {
  const error = { name: "X", code: 1, message: "a | b\n# <script> `c`" };
  const record = aRecord({ experiment: aRun("experiment", { statements: [statement("experiment", { outcome: failed(31_000, error) })] }) });
  const page = markdownOf(reportOf(record, OPTIONS));
  expect(page).toContain("failed by X (1): a \\| b # &lt;script> 'c', 11s after the kill");
  expect(page).not.toContain("\n# <");
});

test("what was not run is said", () => {
  const exception = { by: "ann", why: "today", followUps: ["run it"] };
  const report = reportOf(aRecord({ experiment: null, control: null, exception, stopped: "not run" }), OPTIONS);
  expect([report.verdict, report.found, markdownOf(report).match(/It was not run\./g)?.length]).toEqual(["exception", null, 2]);
});
