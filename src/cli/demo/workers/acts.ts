/** The two acts with Relevo: healthy workers whose number follows their backlog, and the same with jobs among them that hang. */
import { poolView } from "../../../server/views.ts";
import { type JobCounts, countRecords, readRecords } from "./job-records.ts";
import type { WorkersFigures } from "./report.ts";
import {
  FIRST_HANGING,
  FLOOR,
  goodJobs,
  hangingJobs,
  happens,
  isDrained,
  longJobs,
  MIXED,
  mixedJobs,
  queueOf,
  recordFileOf,
  restingMb,
  SEEN_HANGING,
  type Stage,
  STUCK_SHARE,
} from "./stage.ts";
import { reactionsTo, risesWhileStuck, type WorkersWatch } from "./watch.ts";

const RISES_WITHIN_MS = 10_000;
const SETTLED_WITHIN_MS = 30_000;
const DRAINED_WITHIN_MS = 120_000;
const SCALED_IN_WITHIN_MS = 60_000;
const STUCK_WITHIN_MS = 20_000;

export interface PlayedHealthy {
  readonly figures: WorkersFigures["healthy"];
  readonly jobs: number;
  /** The most slots that were busy when the pool was to have so few instances that some of these had to go. */
  readonly busyAtScaleIn: number;
}

const FIRST_WAVE = 12;
const SECOND_WAVE = 40;
const LONG = 7;

export async function playHealthy(stage: Stage, name: string, watch: WorkersWatch): Promise<PlayedHealthy> {
  const { site, clock, narrator } = stage;
  const startedAt = clock.monotonic();
  const demands: number[] = [];
  const add = async (jobs: Parameters<typeof site.queue.add>[1]) => {
    demands.push(clock.monotonic());
    await site.queue.add(queueOf(name), jobs);
    narrator.tell(`${jobs.length} jobs come`);
    const before = watch.replicas();
    await happens(stage, RISES_WITHIN_MS, () => watch.replicas() > before);
    narrator.tell(`${watch.replicas()} replicas`);
  };
  await add(goodJobs("first", FIRST_WAVE));
  await happens(stage, SETTLED_WITHIN_MS, async () => (await site.world.serving(`default/${name}`)) === watch.replicas());
  await add([...goodJobs("second", SECOND_WAVE), ...longJobs("long", LONG)]);

  let busyAtScaleIn = 0;
  const isEmpty = await happens(stage, DRAINED_WITHIN_MS, async () => {
    const { desired } = await site.client.get(`/v1/pools/default/${name}`, poolView);
    if (desired === FLOOR) busyAtScaleIn = Math.max(busyAtScaleIn, watch.lastSample()?.busy ?? 0);
    return isDrained(await site.queue.counts(queueOf(name)));
  });
  narrator.tell(isEmpty ? "the backlog is drained; the pool scales in" : "the backlog is not drained");
  const isIn = await happens(stage, SCALED_IN_WITHIN_MS, () => watch.replicas() === FLOOR && watch.pods() === FLOOR);
  const changes = watch.changes(startedAt);
  const reactions = reactionsTo(demands, changes);
  const counts = await countsOf(stage, name);
  const all = FIRST_WAVE + SECOND_WAVE + LONG;
  return {
    figures: {
      reactionMs: reactions.some((each) => each === null) ? null : Math.round(Math.max(...reactions.map(Number))),
      maxReplicas: Math.max(FLOOR, ...changes.map(({ replicas }) => replicas)),
      drained: isEmpty && isIn && counts.doneInQueue === all,
      duplicatedJobs: counts.duplicated,
      interruptedJobs: counts.interrupted,
    },
    jobs: all,
    busyAtScaleIn,
  };
}

export interface PlayedStuck {
  readonly figures: WorkersFigures["stuck"];
  readonly jobs: number;
  readonly hanging: number;
  readonly refusals: readonly string[];
  readonly replicasAfterRepair: number;
  /** From the mixed jobs to the drained backlog: so long the controls are given too. */
  readonly drainedAfterMs: number;
}

export async function playStuck(stage: Stage, name: string, watch: WorkersWatch): Promise<PlayedStuck> {
  const { site, clock, narrator } = stage;
  const rssBeforeMb = await restingMb(stage, name);
  const before = await countsOf(stage, name);
  const [oomBefore, restartsBefore] = [watch.oomKills(), watch.restarts()];
  const startedAt = clock.monotonic();
  narrator.tell(`${FLOOR} replicas hold ${rssBeforeMb} MB; ${FIRST_HANGING} jobs come that hang: one for each slot`);
  await site.queue.add(queueOf(name), hangingJobs("hang", FIRST_HANGING));
  await happens(stage, STUCK_WITHIN_MS, () => (watch.lastSample()?.stuck ?? 0) >= SEEN_HANGING);
  narrator.tell(`${watch.lastSample()?.stuck ?? 0} slots are stuck; ${MIXED.good} jobs come that work, and ${MIXED.hanging} that hang`);
  const mixedAt = clock.monotonic();
  await site.queue.add(queueOf(name), mixedJobs("mixed"));

  const refusals = new Map<string, string>();
  let reaped = 0;
  const isEmpty = await happens(stage, DRAINED_WITHIN_MS, async () => {
    const { reasons } = await site.client.get(`/v1/pools/default/${name}`, poolView);
    for (const { code, sentence, subject } of reasons)
      if (subject === "" && code.startsWith("scale_held") && !refusals.has(code)) {
        refusals.set(code, sentence);
        narrator.tell(`Relevo does not scale: ${sentence}`);
      }
    const counts = countRecords(readRecords(recordFileOf(site, name)));
    if (counts.reaped - before.reaped > reaped) narrator.tell(`${counts.reaped - before.reaped} children were ended that did nothing`);
    reaped = counts.reaped - before.reaped;
    return isDrained(await site.queue.counts(queueOf(name)));
  });
  const drainedAfterMs = clock.monotonic() - mixedAt;
  const changes = watch.changes(startedAt);
  narrator.tell(isEmpty ? "the backlog is drained; the pool scales in" : "the backlog is not drained");
  const isIn = await happens(stage, SCALED_IN_WITHIN_MS, () => watch.replicas() === FLOOR && watch.pods() === FLOOR);
  const rssAfterMb = await restingMb(stage, name);
  return {
    figures: {
      scaleUpsWhileStuck: risesWhileStuck(changes, watch.samples(startedAt), STUCK_SHARE),
      reaped,
      rssBeforeMb,
      rssAfterMb,
      oomKills: watch.oomKills() - oomBefore,
      restartsAfterRepair: watch.restarts() - restartsBefore,
      drained: isEmpty && isIn,
    },
    jobs: FIRST_HANGING + MIXED.good + MIXED.hanging,
    hanging: FIRST_HANGING + MIXED.hanging,
    refusals: [...refusals.values()],
    replicasAfterRepair: Math.max(FLOOR, ...changes.map(({ replicas }) => replicas)),
    drainedAfterMs,
  };
}

async function countsOf({ site }: Stage, name: string): Promise<JobCounts & { readonly doneInQueue: number }> {
  const { done } = await site.queue.counts(queueOf(name));
  return { ...countRecords(readRecords(recordFileOf(site, name))), doneInQueue: done };
}
