/** What a storm came to: one JSON document, one table, and whether its claims and its control held. */
import Table from "cli-table3";
import { PRIORITIES, type Priority } from "../../../model/membership.ts";
import { type ClassOutcome, type Fate, orderOf, outcomeOf } from "../../storm/evacuation.ts";
import { BARE } from "../table.ts";
import type { StormCounts } from "./load.ts";
import type { StormScale } from "./scale.ts";

export type StormRequests = Omit<StormCounts, "inFlight">;

export interface StormReport {
  readonly nodes: number;
  readonly going: number;
  readonly processes: number;
  readonly deadlineS: number;
  readonly classes: Readonly<Record<Priority, ClassOutcome>>;
  readonly requests: StormRequests;
  /** Obligations that were lost with announced instances, as Relevo counts them (D18). */
  readonly obligationsLost: number;
  /** Which class came to serve in which order. */
  readonly order: string;
  /** Said early by the schedule: who cannot be saved, and why. */
  readonly unsavable: readonly string[];
  readonly nodesOnDemand: number;
  readonly standbyRefilled: boolean;
  readonly control: StormRequests;
  readonly problems: readonly string[];
  readonly durationS: number;
  readonly level: "real processes";
  readonly held: boolean;
  readonly broken: readonly string[];
}

export interface StormFacts {
  readonly scale: StormScale;
  readonly deadlineMs: number;
  readonly fates: readonly Fate[];
  readonly requests: StormCounts;
  readonly obligationsLost: number;
  readonly unsavable: readonly string[];
  readonly nodesOnDemand: number;
  readonly standbyRefilled: boolean;
  readonly control: StormCounts;
  readonly problems: readonly string[];
  readonly durationMs: number;
}

export function stormReportOf(facts: StormFacts): StormReport {
  const { scale, fates } = facts;
  const classes = Object.fromEntries(
    PRIORITIES.map((priority) => [priority, outcomeOf(fates.filter((fate) => fate.priority === priority))]),
  ) as Record<Priority, ClassOutcome>;
  const figures = {
    nodes: scale.nodes,
    going: scale.going,
    processes: scale.pools.reduce((sum, { desired, standby }) => sum + desired + standby, 0),
    deadlineS: facts.deadlineMs / 1000,
    classes,
    requests: withoutInFlight(facts.requests),
    obligationsLost: facts.obligationsLost,
    order: orderOf(fates),
    unsavable: facts.unsavable,
    nodesOnDemand: facts.nodesOnDemand,
    standbyRefilled: facts.standbyRefilled,
    control: withoutInFlight(facts.control),
    problems: facts.problems,
    durationS: Math.round(facts.durationMs / 100) / 10,
    level: "real processes" as const,
  };
  const broken = brokenClaims(figures);
  return { ...figures, held: broken.length === 0, broken };
}

function withoutInFlight({ inFlight: _, ...counts }: StormCounts): StormRequests {
  return counts;
}

/** Each claim in words, when it did not hold; the control must lose, or the storm proved nothing. */
export function brokenClaims(figures: Omit<StormReport, "held" | "broken">): readonly string[] {
  const broken: string[] = [];
  const claim = (holds: boolean, sentence: string) => {
    if (!holds) broken.push(sentence);
  };
  const { classes, requests, control } = figures;
  claim(requests.sent >= 100, `only ${requests.sent} requests were sent`);
  claim(requests.lost === 0, `${requests.lost} requests were lost`);
  claim(requests.cut === 0, `${requests.cut} streams were cut`);
  claim(figures.obligationsLost === 0, `Relevo counts ${figures.obligationsLost} lost obligations of announced instances`);
  for (const name of PRIORITIES) {
    const { noticed, replaced, forced } = classes[name];
    claim(replaced === noticed, `${name}: ${noticed - replaced} of ${noticed} were not replaced`);
    claim(forced === 0, `${name}: ${forced} were lost before their work was done`);
  }
  const byStandby = PRIORITIES.reduce((sum, name) => sum + classes[name].byStandby, 0);
  claim(byStandby > 0 || figures.going < FEWEST_NODES_FOR_STANDBY, "no standby was taken");
  for (const name of ["standard", "batch"] as const)
    claim(!isOrderJudged(classes, name) || isBefore(classes.critical, classes[name]), `critical did not come before ${name}`);
  claim(figures.standbyRefilled, "the standby was not refilled");
  claim(control.lost + control.cut > 0, "the control lost nothing: this run proves nothing");
  return broken;
}

/** In a smaller storm the one or two standby may be on nodes that go themselves. */
const FEWEST_NODES_FOR_STANDBY = 10;

/** With fewer the mean is that of a machine that started slowly, where there is room for all. */
const FEWEST_OF_A_CLASS = 5;

function isOrderJudged(classes: StormReport["classes"], name: "standard" | "batch"): boolean {
  return classes.critical.noticed >= FEWEST_OF_A_CLASS && classes[name].noticed >= FEWEST_OF_A_CLASS;
}

function isBefore(first: ClassOutcome, second: ClassOutcome): boolean {
  return first.meanMs === null || second.meanMs === null || first.meanMs <= second.meanMs;
}

export function renderStorm(report: StormReport): string {
  const table = new Table({
    head: ["class", "noticed", "replaced", "by standby", "lost", "mean", "last"],
    chars: { ...BARE, middle: "  " },
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: ["left", ...Array.from({ length: 6 }, () => "right" as const)],
  });
  for (const name of PRIORITIES) {
    const { noticed, replaced, byStandby, forced, meanMs, lastMs } = report.classes[name];
    table.push([name, noticed, replaced, byStandby, forced, seconds(meanMs), seconds(lastMs)]);
  }
  const { requests, control } = report;
  return [
    table.toString().replaceAll(/ +$/gm, ""),
    "",
    `${report.going} of ${report.nodes} nodes went, ${report.deadlineS} s after their notices; ${report.processes} processes`,
    `mean, last: from the notice to the service of the successor`,
    `in this order: ${report.order || "nobody"}`,
    `${report.nodesOnDemand} machines came on demand; the standby was ${report.standbyRefilled ? "" : "not "}refilled`,
    ...(isOrderJudged(report.classes, "standard") && isOrderJudged(report.classes, "batch")
      ? []
      : [`the order is not judged where a class has fewer than ${FEWEST_OF_A_CLASS}`]),
    ...(report.going < FEWEST_NODES_FOR_STANDBY ? [`whether standby is taken is not judged below ${FEWEST_NODES_FOR_STANDBY} nodes`] : []),
    ...report.unsavable.map((sentence) => `unsavable: ${sentence}`),
    "",
    `requests: ${told(requests)}`,
    `control, the same with disruption.mode Off: ${told(control)}`,
    ...report.problems.map((problem) => `  ${problem}`),
    `level: ${report.level}; the machines under them are simulated; ${report.durationS} s`,
    "",
    report.held ? "Every claim held, and the control lost work." : report.broken.map((sentence) => `BROKEN: ${sentence}`).join("\n"),
  ].join("\n");
}

function told({ sent, completed, queued, retried, rejected, cut, lost }: StormRequests): string {
  return `${sent} sent, ${completed} completed (${queued} queued, ${retried} retried), ${rejected} rejected, ${cut} cut, ${lost} lost`;
}

function seconds(ms: number | null): string {
  return ms === null ? "-" : `${(ms / 1000).toFixed(1)} s`;
}
