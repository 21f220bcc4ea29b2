import { expect, test } from "vitest";
import { brokenClaims, renderTrino, type TrinoContext, type TrinoFigures, trinoReportOf } from "./report.ts";

const FIGURES: TrinoFigures = {
  queries: { sent: 120, right: 116, wrong: 0, failed: 4 },
  voluntary: { sent: 64, failed: 0 },
  deadline: { sent: 48, failed: 0, survivedAfterMs: 24_630, withoutFte: { failed: 1 } },
  worker: { back: true, backWithoutCleanup: false },
  coordinator: { lost: 3, explicit: 3, hung: 0 },
  transactions: { opened: 9, committed: 9, failed: 0 },
};
const CONTEXT: TrinoContext = {
  replaced: true,
  seal: "confirmed",
  jdbc: { sent: 30, right: 30 },
  outlasted: true,
  memberDrain: "done member_drains",
  withoutCleanup: { joined: true, restarts: 5, refusal: "ERROR: already running as 4711" },
  resubmitted: { sent: 2, right: 2 },
  orphans: { left: 2, swept: 2 },
};

test("every claim holds when nothing is lost that need not be, and both controls fail", () => {
  expect(brokenClaims(FIGURES, CONTEXT)).toEqual([]);
});

const broken = (figures: Partial<TrinoFigures>, context: Partial<TrinoContext> = {}) =>
  brokenClaims({ ...FIGURES, ...figures }, { ...CONTEXT, ...context });

test("an answer that is wrong, or a query that failed where none may, breaks a claim", () => {
  expect(broken({ queries: { sent: 120, right: 115, wrong: 1, failed: 4 } })).toEqual(["1 answers were wrong"]);
  expect(broken({ voluntary: { sent: 64, failed: 1 } })).toEqual(["voluntary: 1 of 64 queries failed"]);
  expect(broken({ deadline: { ...FIGURES.deadline, failed: 2 } })).toEqual([
    "deadline: 2 of 48 queries failed in spite of fault tolerance",
  ]);
  expect(broken({ transactions: { opened: 9, committed: 8, failed: 1 } })).toEqual(["1 of 9 transactions failed"]);
  expect(broken({ coordinator: { lost: 3, explicit: 2, hung: 1 } })).toEqual([
    "coordinator: 1 clients were left hanging",
    "coordinator: 1 of 3 clients got no error of the protocol",
  ]);
});

test("a control that does not fail, or a query that did not outlast the notice, makes the run worthless", () => {
  expect(broken({ deadline: { ...FIGURES.deadline, withoutFte: { failed: 0 } } }, { outlasted: false })).toEqual([
    "deadline: not all queries outlasted the notice on the worker that went: this run proves nothing",
    "deadline: nothing was lost without fault tolerance: this run proves nothing",
  ]);
  expect(
    broken({ worker: { back: true, backWithoutCleanup: true } }, { withoutCleanup: { joined: false, restarts: 0, refusal: null } }),
  ).toEqual([
    "worker: the one without cleanup never belonged to the cluster: this run proves nothing",
    "worker: it came back without the cleanup: this run proves nothing",
    "worker: the launcher refused nothing: this run proves nothing",
  ]);
  expect(broken({}, { orphans: { left: 0, swept: 0 } })).toEqual([
    "coordinator: no folder of the exchange was left behind: the sweep proved nothing",
  ]);
});

test("the table tells each act, and what is broken below it", () => {
  const report = trinoReportOf(
    { ...FIGURES, worker: { back: false, backWithoutCleanup: false } },
    { context: CONTEXT, evidence: [], durationMs: 612_340 },
  );

  expect(renderTrino(report)).toBe(`act                        queries  failed  what came of it
voluntary                       64       0  replaced, sealed (confirmed)
deadline                        48       0  survived 24.6 s after the loss
  without fault tolerance                1  its query ends with the worker
worker                                      did not come back
  without cleanup                           never came back, begun again 5 times
coordinator                              3  3 lost with an error of the protocol, 0 hung; 2 of 2 orphaned folders swept

queries: 120 sent, 116 right, 0 wrong, 4 failed (those that had to fail among them)
transactions: 9 opened, 9 committed, 0 failed
level: real processes of a real Trino; the machines under them are simulated; 612.3 s

BROKEN: worker: it did not come back, or ran no task`);
});
