import { expect, test } from "vitest";
import type { Fate } from "../../storm/evacuation.ts";
import type { StormCounts } from "./load.ts";
import { renderStorm, stormReportOf, type StormFacts } from "./report.ts";
import { scaleOf } from "./scale.ts";

const counts = (more: Partial<StormCounts> = {}): StormCounts => ({
  sent: 1_000,
  inFlight: 3,
  completed: 997,
  rejected: 0,
  cut: 0,
  lost: 0,
  queued: 4,
  retried: 5,
  ...more,
});
const fate = (priority: Fate["priority"], afterMs: number | null, more: Partial<Fate> = {}): Fate => ({
  instance: `${priority}-1`,
  pool: `default/${priority}`,
  priority,
  ordinal: 0,
  node: "n1",
  noticedAt: 1_000,
  successor: "s",
  byStandby: priority === "critical",
  servingAt: afterMs === null ? null : 1_000 + afterMs,
  seal: "confirmed",
  ...more,
});
const five = (priority: Fate["priority"], afterMs: number): readonly Fate[] =>
  Array.from({ length: 5 }, (_, n) => fate(priority, afterMs, { instance: `${priority}-${n}`, ordinal: n }));
const facts = (more: Partial<StormFacts> = {}): StormFacts => ({
  scale: scaleOf(3),
  deadlineMs: 60_000,
  fates: [fate("critical", 500), fate("standard", 4_000), fate("batch", 6_000)],
  requests: counts(),
  obligationsLost: 0,
  unsavable: [],
  nodesOnDemand: 2,
  standbyRefilled: true,
  control: counts({ cut: 7 }),
  problems: [],
  durationMs: 90_123,
  ...more,
});

test("a storm that lost nothing, with a control that did, has held its claims", () => {
  const report = stormReportOf(facts());
  expect([report.held, report.broken, report.order]).toEqual([true, [], "critical ×1, standard ×1, batch ×1"]);
  expect(renderStorm(report)).toContain("Every claim held, and the control lost work.");
});

test.each<[string, Partial<StormFacts>, string]>([
  ["a lost request", { requests: counts({ lost: 1 }) }, "1 requests were lost"],
  ["a cut stream", { requests: counts({ cut: 2 }) }, "2 streams were cut"],
  ["obligations that Relevo counts as lost", { obligationsLost: 3 }, "Relevo counts 3 lost obligations of announced instances"],
  ["one that was not replaced", { fates: [fate("critical", 1, {}), fate("batch", null)] }, "batch: 1 of 1 were not replaced"],
  ["one whose process was lost", { fates: [fate("critical", 1, { seal: "forced" })] }, "critical: 1 were lost before their work was done"],
  ["critical that came last", { fates: [...five("critical", 9_000), ...five("batch", 1_000)] }, "critical did not come before batch"],
  ["no standby", { scale: scaleOf(20), fates: [fate("critical", 1, { byStandby: false })] }, "no standby was taken"],
  ["standby that stays empty", { standbyRefilled: false }, "the standby was not refilled"],
  ["a control that lost nothing", { control: counts() }, "the control lost nothing: this run proves nothing"],
  ["no load", { requests: counts({ sent: 10 }) }, "only 10 requests were sent"],
])("%s breaks its claim", (_, change, sentence) => {
  const report = stormReportOf(facts(change));
  expect([report.held, report.broken]).toEqual([false, [sentence]]);
});

test("below ten nodes the only standby may go itself: that none was taken is not judged, and that is said", () => {
  const small = stormReportOf(facts({ fates: [fate("critical", 1, { byStandby: false })] }));

  expect([small.held, small.broken]).toEqual([true, []]);
  expect(renderStorm(small)).toContain("whether standby is taken is not judged below 10 nodes");
});

test("of fewer than five of a class the order is not judged, and that is said", () => {
  const few = stormReportOf(facts({ fates: [fate("critical", 9_000), ...five("batch", 1_000)] }));
  const enough = stormReportOf(facts({ fates: [...five("critical", 500), ...five("standard", 800), ...five("batch", 1_000)] }));

  expect([few.held, few.broken]).toEqual([true, []]);
  const said = "the order is not judged where a class has fewer than 5";
  expect([renderStorm(few).includes(said), renderStorm(enough).includes(said)]).toEqual([true, false]);
});
