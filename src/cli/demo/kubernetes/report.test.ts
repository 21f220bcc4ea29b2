import { expect, test } from "vitest";
import type { ActResult } from "../load/tally.ts";
import { type KubernetesFacts, renderKubernetes, reportOf } from "./report.ts";

const act = (overrides: Partial<ActResult> = {}): ActResult =>
  ({ sent: 162, completed: 162, queued: 0, retried: 0, rejected: 0, cut: 0, lost: 0, p50Ms: 3, p99Ms: 9, ...overrides }) as ActResult;

const facts = (overrides: Partial<KubernetesFacts> = {}): KubernetesFacts => ({
  drift: { evidence: 4, cordoned: 4, replaced: 4, karpenterWaited: 8 },
  deadline: { evidence: 1, replaced: 1, drainedInTime: 1 },
  servingNeverBelow: 4,
  desired: 4,
  foreign: [],
  duplicatesCreated: 0,
  inventoriesPerPassMax: 0,
  controlServingNeverBelow: 2,
  client: { acts: [act(), act({ sent: 100, completed: 100 })], control: act({ sent: 707, completed: 700, cut: 7 }) },
  requests: [{ request: "patch nodes", count: 10 }],
  durationMs: 135_912,
  ...overrides,
});

test("a run whose claims held, and whose control fell below, fits a terminal of 110 characters", () => {
  const report = reportOf(facts());
  expect(report.broken).toEqual([]);
  expect(renderKubernetes(report).split("\n")).toEqual([
    "drift      4 pieces of evidence, 4 nodes cordoned, 4 of 4 replaced;",
    "           Karpenter waited for 8 protected nodes; never fewer than 4 of 4 served",
    "deadline   1 piece of evidence, 1 replaced, 1 drained before its end",
    "client     262 sent, 262 completed (0 queued, 0 retried), 0 rejected, 0 cut, 0 lost",
    "control    as few as 2 of 4 served; 707 sent, 700 completed (0 queued, 0 retried), 0 rejected, 7 cut, 0 lost",
    "",
    "0 foreign objects changed, 0 made twice, 0 inventories in a pass at most",
    "2.5 requests to the API server for each replacement, 135.9 s in all",
    "level: real API server with simulated nodes; their processes speak the protocol through a stand-in",
    "",
    "Every claim held, and the control fell below what was desired.",
  ]);
});

test("each claim that did not hold is named, and a control that never fell below is one of them", () => {
  const report = reportOf(
    facts({
      drift: { evidence: 4, cordoned: 3, replaced: 4, karpenterWaited: 0 },
      deadline: { evidence: 1, replaced: 1, drainedInTime: 0 },
      servingNeverBelow: 3,
      foreign: ["delete nodes node-a"],
      duplicatesCreated: 1,
      inventoriesPerPassMax: 2,
      controlServingNeverBelow: 4,
      client: { acts: [act({ sent: 90, rejected: 1, cut: 2, lost: 3 })], control: act() },
    }),
  );
  expect(report.held).toBe(false);
  expect(report.broken).toEqual([
    "drift: cordoned 3 of 4",
    "deadline: drainedInTime 0 of 1",
    "only 3 of 4 served at times during drift",
    "changed what is not its own: delete nodes node-a",
    "1 objects were created twice",
    "2 inventories in one pass",
    "only 90 requests were sent",
    "1 requests rejected",
    "2 requests cut",
    "3 requests lost",
    "the control never served fewer than desired: this run proves nothing",
  ]);
});
