import { expect, test } from "vitest";
import type { ActReport, DemoReport } from "./report.ts";
import { renderReport } from "./table.ts";

const act = (overrides: Partial<ActReport>): ActReport => ({
  sent: 427,
  completed: 427,
  queued: 0,
  rejected: 0,
  cut: 0,
  lost: 0,
  retried: 0,
  p50AddedMs: 0,
  p99AddedMs: 0,
  ...overrides,
});

test("the result fits a terminal of 80 characters, with the control below the acts", () => {
  const report: DemoReport = {
    acts: {
      voluntary: act({ p50AddedMs: -2.2, p99AddedMs: -58.7 }),
      deadline: act({ sent: 12_968, completed: 12_968, p99AddedMs: 43.25 }),
      forced: act({ completed: 426, retried: 1, cut: 1 }),
      controller: act({ p50AddedMs: 305.1, p99AddedMs: 1083.4 }),
    },
    control: { sent: 747, completed: 544, rejected: 182, lost: 21 },
    servingNeverBelow: 4,
    desired: 4,
    evidence: [],
    duplicatesCreated: 0,
    durationS: 159.3,
    level: "real processes",
    held: true,
    broken: [],
  };

  expect(renderReport(report).split("\n")).toEqual([
    "act          sent  completed  queued  retried  rejected  cut  lost   p50    p99",
    "voluntary     427        427       0        0         0    0     0  -2.2  -58.7",
    "deadline    12968      12968       0        0         0    0     0   0.0   43.3",
    "forced        427        426       0        1         0    1     0   0.0    0.0",
    "controller    427        427       0        0         0    0     0   305   1083",
    "control       747        544                        182         21",
    "",
    "control: the same with disruption.mode Off; what was cut counts as lost",
    "p50, p99: of short requests, in ms more than while nobody disturbed",
    "while a node was replaced, never fewer than 4 of 4 served",
    "0 objects made twice, 0 pieces of evidence, 159.3 s",
    "level: real processes; the machines under them are simulated",
    "",
    "Every claim held, and the control lost work.",
  ]);
});
