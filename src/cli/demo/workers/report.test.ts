import { describe, expect, test } from "vitest";
import { renderWorkers, type WorkersContext, type WorkersFigures, workersReportOf } from "./report.ts";

const figures: WorkersFigures = {
  healthy: { reactionMs: 310, maxReplicas: 6, drained: true, duplicatedJobs: 0, interruptedJobs: 0 },
  stuck: { scaleUpsWhileStuck: 0, reaped: 12, rssBeforeMb: 150, rssAfterMb: 160, oomKills: 0, restartsAfterRepair: 0, drained: true },
  control: { cpu: { drained: false }, backlogOnly: { rssMb: 1900, oomKills: 7, drained: false } },
};
const context: WorkersContext = {
  floor: 2,
  slotsAtFloor: 4,
  busyAtScaleIn: 7,
  jobs: { healthy: 59, stuck: 60, hanging: 12 },
  refusals: ["stays at 2: 4 of 4 busy slots are stuck"],
  replicasAfterRepair: 6,
  cpu: { percent: 3.1, replicas: 2, waiting: 52 },
  backlogOnly: { replicas: 6, waiting: 31 },
};

const broken = (change: {
  readonly healthy?: Partial<WorkersFigures["healthy"]>;
  readonly stuck?: Partial<WorkersFigures["stuck"]>;
  readonly cpu?: Partial<WorkersFigures["control"]["cpu"]>;
  readonly backlogOnly?: Partial<WorkersFigures["control"]["backlogOnly"]>;
  readonly context?: Partial<WorkersContext>;
}) =>
  workersReportOf(
    {
      healthy: { ...figures.healthy, ...change.healthy },
      stuck: { ...figures.stuck, ...change.stuck },
      control: {
        cpu: { ...figures.control.cpu, ...change.cpu },
        backlogOnly: { ...figures.control.backlogOnly, ...change.backlogOnly },
      },
    },
    { ...context, ...change.context },
    200_000,
  ).broken;

describe("the report of the workers' demo", () => {
  test("holds the figures as the demo promises them, and says that all held", () => {
    expect(workersReportOf(figures, context, 200_040)).toEqual({
      ...figures,
      context,
      durationS: 200,
      level: "real processes",
      held: true,
      broken: [],
    });
  });

  test.each([
    [{ healthy: { reactionMs: 1_001 } }, "healthy: replicas followed after 1001 ms, allowed are 1000"],
    [{ healthy: { reactionMs: null } }, "healthy: the replicas did not follow the backlog"],
    [{ healthy: { maxReplicas: 2 } }, "healthy: there were never more than 2 replicas"],
    [{ healthy: { drained: false } }, "healthy: the backlog was not drained, or the pool did not scale in"],
    [{ healthy: { duplicatedJobs: 1 } }, "healthy: 1 jobs were done twice"],
    [{ healthy: { interruptedJobs: 2 } }, "healthy: 2 jobs were interrupted"],
    [{ context: { busyAtScaleIn: 4 } }, "healthy: no busy slot stood in the way of the scale-in: this run proves nothing"],
    [{ stuck: { scaleUpsWhileStuck: 1 } }, "stuck: scaled up 1 times while slots were stuck"],
    [{ context: { refusals: [] } }, "stuck: nobody said why it does not scale"],
    [{ stuck: { reaped: 0 } }, "stuck: nothing was reaped: this run proves nothing"],
    [{ context: { replicasAfterRepair: 2 } }, "stuck: it did not scale after the repair"],
    [{ stuck: { drained: false } }, "stuck: the backlog was not drained"],
    [{ stuck: { oomKills: 1 } }, "stuck: 1 containers were killed at their memory limit"],
    [{ stuck: { restartsAfterRepair: 1 } }, "stuck: 1 containers were restarted after the repair"],
    [{ stuck: { rssAfterMb: 181 } }, "stuck: 181 MB after it, 150 MB before, more than 20 % apart"],
    [{ stuck: { rssBeforeMb: 0, rssAfterMb: 0 } }, "stuck: 0 MB after it, 0 MB before, more than 20 % apart"],
    [{ cpu: { drained: true } }, "the control by CPU drained its backlog: this run proves nothing"],
    [{ backlogOnly: { drained: true } }, "the control by backlog alone drained its backlog: this run proves nothing"],
    [{ backlogOnly: { oomKills: 0 } }, "the control by backlog alone ran into no memory limit: this run proves nothing"],
  ])("names the claim that did not hold: %j", (change, sentence) => {
    expect(broken(change)).toEqual([sentence]);
  });

  test("is read by people as one table", () => {
    expect(renderWorkers(workersReportOf(figures, context, 200_000))).toBe(
      [
        "act                  replicas  reaped  OOM kills  restarts  backlog",
        "healthy                2 to 6                               drained",
        "stuck                  2 to 6      12          0         0  drained",
        "control: by CPU             2                               not drained, 52 wait",
        "control: by backlog         6                  7            not drained, 31 wait",
        "",
        "healthy: 59 jobs; replicas followed the backlog within 310 ms;",
        "  0 jobs done twice, 0 interrupted",
        "stuck: 12 of 60 jobs hang; scaled up 0 times while slots were stuck",
        "  it said: stays at 2: 4 of 4 busy slots are stuck",
        "  memory of 2 replicas: 150 MB before, 160 MB after",
        "control by CPU: the same jobs, nothing reaped; 3.1 % of the requested CPU were used, so nothing happened",
        "control by backlog: the same jobs, nothing reaped; 1900 MB at most",
        "level: real processes; the machines under them are simulated; 200 s",
        "",
        "Every claim held, and neither control drained its backlog.",
      ].join("\n"),
    );
  });
});
