/**
 * `relevo demo workers`: workers on a queue, whose number follows their own backlog; then jobs among them that hang: repaired before it scales; then the
 * controls without Relevo, which must not drain the same backlog.
 */
import { POOLS } from "../../../kube/resources.ts";
import type { DemoOptions } from "../main-job.ts";
import type { Stack } from "../../processes/stack.ts";
import { playHealthy, playStuck } from "./acts.ts";
import { byBacklog, byCpu, playControl } from "./control.ts";
import { type WorkersReport, workersReportOf } from "./report.ts";
import { poolDocument, startSite } from "./site.ts";
import { FLOOR, MAX, poolSpec, queueOf, SLOTS, type Stage, variantOf, watchWorkers } from "./stage.ts";

const POOL = "capture";
const SERVING_WITHIN_MS = 60_000;
/** Of the controls: at least, and at most however long Relevo took. */
const OBSERVED_MS = { least: 45_000, most: 90_000 };

export interface RunningWorkers {
  readonly report: WorkersReport;
  readonly stack: Stack;
  /** A file that commands need, and the arguments with which they can go on. */
  readonly connections: string;
  stop(): Promise<void>;
}

/** Plays everything and leaves the pool running at its floor; `stop` ends it. */
export async function playWorkers(options: DemoOptions): Promise<RunningWorkers> {
  const { clock, narrator, signal } = options;
  const startedAt = clock.monotonic();
  narrator.title("starting: embedded cluster, controller, and the built-in queue");
  const site = await startSite(options);
  try {
    const stage: Stage = { site, clock, random: options.random, signal, narrator };
    narrator.title(`the pool ${POOL}: ${FLOOR} to ${MAX} workers with ${SLOTS} slots each, whose jobs are child processes`);
    await site.queue.put(queueOf(POOL), { maxAttempts: 3 });
    const watch = await watchWorkers(stage, POOL);
    await site.kube.create(POOLS, poolDocument(variantOf(stage, POOL, true), poolSpec(POOL)), { namespace: "default" });
    await site.world.until(
      `${FLOOR} serving workers`,
      SERVING_WITHIN_MS,
      async () => (await site.world.serving(`default/${POOL}`)) >= FLOOR,
    );

    narrator.title("act 1, healthy: the backlog rises and falls");
    const healthy = await playHealthy(stage, POOL, watch);
    narrator.title("act 2, stuck: jobs that hang come among the others");
    const stuck = await playStuck(stage, POOL, watch);
    watch.stop();

    const observedMs = Math.min(OBSERVED_MS.most, Math.max(OBSERVED_MS.least, stuck.drainedAfterMs));
    narrator.title(
      `controls: the same workers and jobs without Relevo, for ${Math.round(observedMs / 1000)} s: scaled by CPU, and by backlog alone`,
    );
    const [cpu, backlogOnly] = await Promise.all([
      playControl(stage, `${POOL}-cpu`, byCpu, observedMs),
      playControl(stage, `${POOL}-backlog`, byBacklog, observedMs),
    ]);
    const { rssMb, oomKills, drained } = backlogOnly;
    const report = workersReportOf(
      {
        healthy: healthy.figures,
        stuck: stuck.figures,
        control: { cpu: { drained: cpu.drained }, backlogOnly: { rssMb, oomKills, drained } },
      },
      {
        floor: FLOOR,
        jobs: { healthy: healthy.jobs, stuck: stuck.jobs, hanging: stuck.hanging },
        slotsAtFloor: FLOOR * SLOTS,
        busyAtScaleIn: healthy.busyAtScaleIn,
        refusals: stuck.refusals,
        replicasAfterRepair: stuck.replicasAfterRepair,
        cpu: { percent: cpu.cpuPercent, replicas: cpu.replicas, waiting: cpu.waiting },
        backlogOnly: { replicas: backlogOnly.replicas, waiting: backlogOnly.waiting },
      },
      clock.monotonic() - startedAt,
    );
    return { report, stack: site.stack, connections: site.connections, stop: () => site.stop() };
  } catch (error) {
    await site.stop();
    throw error;
  }
}
