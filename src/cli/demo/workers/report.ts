/** What the workers' demo came to: one JSON document, one table, and whether its claims and its controls held. */
import Table from "cli-table3";
import { BARE } from "../table.ts";

/** Backlog → replicas (the figure). */
export const REACTION_LIMIT_MS = 1_000;
/** Memory after the repair may be so much more than before. */
export const RSS_SHARE = 0.2;

export interface WorkersFigures {
  readonly healthy: {
    /** From the newer backlog to the first replica more; of several rises the slowest. */
    readonly reactionMs: number | null;
    readonly maxReplicas: number;
    readonly drained: boolean;
    readonly duplicatedJobs: number;
    readonly interruptedJobs: number;
  };
  readonly stuck: {
    readonly scaleUpsWhileStuck: number;
    readonly reaped: number;
    readonly rssBeforeMb: number;
    readonly rssAfterMb: number;
    readonly oomKills: number;
    readonly restartsAfterRepair: number;
    readonly drained: boolean;
  };
  readonly control: {
    readonly cpu: { readonly drained: boolean };
    readonly backlogOnly: { readonly rssMb: number; readonly oomKills: number; readonly drained: boolean };
  };
}

/** What stands beside the figures, so that a reader can tell that they are of something. */
export interface WorkersContext {
  readonly floor: number;
  readonly jobs: { readonly healthy: number; readonly stuck: number; readonly hanging: number };
  readonly slotsAtFloor: number;
  /** Busy slots when the pool was to be at its floor: what is more than these has run on instances that went. */
  readonly busyAtScaleIn: number;
  /** Why Relevo did not scale, in its own words. */
  readonly refusals: readonly string[];
  /** Replicas once it scaled after all. */
  readonly replicasAfterRepair: number;
  readonly cpu: { readonly percent: number; readonly replicas: number; readonly waiting: number };
  readonly backlogOnly: { readonly replicas: number; readonly waiting: number };
}

export interface WorkersReport extends WorkersFigures {
  readonly context: WorkersContext;
  readonly durationS: number;
  readonly level: "real processes";
  readonly held: boolean;
  readonly broken: readonly string[];
}

export function workersReportOf(figures: WorkersFigures, context: WorkersContext, durationMs: number): WorkersReport {
  const broken = brokenClaims(figures, context);
  const durationS = Math.round(durationMs / 100) / 10;
  return { ...figures, context, durationS, level: "real processes", held: broken.length === 0, broken };
}

/** Each claim in words, when it did not hold; both controls must fail, or the acts proved nothing. */
export function brokenClaims(
  { healthy, stuck, control }: WorkersFigures,
  { floor, slotsAtFloor, busyAtScaleIn, refusals, replicasAfterRepair }: WorkersContext,
): readonly string[] {
  const broken: string[] = [];
  const claim = (holds: boolean, sentence: string) => {
    if (!holds) broken.push(sentence);
  };
  if (healthy.reactionMs === null) broken.push("healthy: the replicas did not follow the backlog");
  else
    claim(
      healthy.reactionMs <= REACTION_LIMIT_MS,
      `healthy: replicas followed after ${healthy.reactionMs} ms, allowed are ${REACTION_LIMIT_MS}`,
    );
  claim(healthy.maxReplicas > floor, `healthy: there were never more than ${healthy.maxReplicas} replicas`);
  claim(healthy.drained, "healthy: the backlog was not drained, or the pool did not scale in");
  claim(busyAtScaleIn > slotsAtFloor, "healthy: no busy slot stood in the way of the scale-in: this run proves nothing");
  claim(healthy.duplicatedJobs === 0, `healthy: ${healthy.duplicatedJobs} jobs were done twice`);
  claim(healthy.interruptedJobs === 0, `healthy: ${healthy.interruptedJobs} jobs were interrupted`);

  claim(stuck.scaleUpsWhileStuck === 0, `stuck: scaled up ${stuck.scaleUpsWhileStuck} times while slots were stuck`);
  claim(refusals.length > 0, "stuck: nobody said why it does not scale");
  claim(stuck.reaped > 0, "stuck: nothing was reaped: this run proves nothing");
  claim(replicasAfterRepair > floor, "stuck: it did not scale after the repair");
  claim(stuck.drained, "stuck: the backlog was not drained");
  claim(stuck.oomKills === 0, `stuck: ${stuck.oomKills} containers were killed at their memory limit`);
  claim(stuck.restartsAfterRepair === 0, `stuck: ${stuck.restartsAfterRepair} containers were restarted after the repair`);
  claim(
    stuck.rssBeforeMb > 0 && Math.abs(stuck.rssAfterMb - stuck.rssBeforeMb) <= RSS_SHARE * stuck.rssBeforeMb,
    `stuck: ${stuck.rssAfterMb} MB after it, ${stuck.rssBeforeMb} MB before, more than ${RSS_SHARE * 100} % apart`,
  );

  claim(!control.cpu.drained, "the control by CPU drained its backlog: this run proves nothing");
  claim(!control.backlogOnly.drained, "the control by backlog alone drained its backlog: this run proves nothing");
  claim(control.backlogOnly.oomKills > 0, "the control by backlog alone ran into no memory limit: this run proves nothing");
  return broken;
}

export function renderWorkers(report: WorkersReport): string {
  const { healthy, stuck, control, context } = report;
  const table = new Table({
    head: ["act", "replicas", "reaped", "OOM kills", "restarts", "backlog"],
    chars: { ...BARE, middle: "  " },
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: ["left", "right", "right", "right", "right", "left"],
  });
  const told = (isDrained: boolean, waiting: number | null) =>
    isDrained ? "drained" : waiting === null ? "not drained" : `not drained, ${waiting} wait`;
  table.push(
    ["healthy", `${context.floor} to ${healthy.maxReplicas}`, "", "", "", told(healthy.drained, null)],
    [
      "stuck",
      `${context.floor} to ${context.replicasAfterRepair}`,
      stuck.reaped,
      stuck.oomKills,
      stuck.restartsAfterRepair,
      told(stuck.drained, null),
    ],
    ["control: by CPU", context.cpu.replicas, "", "", "", told(control.cpu.drained, context.cpu.waiting)],
    [
      "control: by backlog",
      context.backlogOnly.replicas,
      "",
      control.backlogOnly.oomKills,
      "",
      told(control.backlogOnly.drained, context.backlogOnly.waiting),
    ],
  );
  return [
    table.toString().replaceAll(/ +$/gm, ""),
    "",
    `healthy: ${context.jobs.healthy} jobs; replicas followed the backlog within ${healthy.reactionMs ?? "-"} ms;`,
    `  ${healthy.duplicatedJobs} jobs done twice, ${healthy.interruptedJobs} interrupted`,
    `stuck: ${context.jobs.hanging} of ${context.jobs.stuck} jobs hang; scaled up ${stuck.scaleUpsWhileStuck} times while slots were stuck`,
    ...context.refusals.map((sentence) => `  it said: ${sentence}`),
    `  memory of ${context.floor} replicas: ${stuck.rssBeforeMb} MB before, ${stuck.rssAfterMb} MB after`,
    `control by CPU: the same jobs, nothing reaped; ${context.cpu.percent} % of the requested CPU were used, so nothing happened`,
    `control by backlog: the same jobs, nothing reaped; ${control.backlogOnly.rssMb} MB at most`,
    `level: ${report.level}; the machines under them are simulated; ${report.durationS} s`,
    "",
    report.held ? "Every claim held, and neither control drained its backlog." : report.broken.map((each) => `BROKEN: ${each}`).join("\n"),
  ].join("\n");
}
