/** The controls: the same workers and the same jobs without Relevo, scaled as elsewhere. Both must fail, or the acts proved nothing. */
import { DEPLOYMENTS } from "../../../kube/resources.ts";
import { cpuBetween, usageOf } from "./process-trees.ts";
import { backlogReplicas, cpuReplicas } from "./scalers.ts";
import { plainDeployment } from "./site.ts";
import {
  FIRST_HANGING,
  FLOOR,
  hangingJobs,
  happens,
  isDrained,
  MAX,
  mixedJobs,
  POLL_MS,
  queueOf,
  SEEN_HANGING,
  type Stage,
  TARGET,
  variantOf,
  watchWorkers,
} from "./stage.ts";
import type { WorkersWatch } from "./watch.ts";

const BEGUN_WITHIN_MS = 60_000;
const STUCK_WITHIN_MS = 20_000;
const SCALE_EVERY_MS = 2_000;
/** Of one pod. */
const REQUESTED_CPU_MS_PER_S = 500;
/** As a HorizontalPodAutoscaler has it by itself. */
const UTILIZATION = 80;
const BOUNDS = { min: FLOOR, max: MAX };

export interface PlayedControl {
  readonly drained: boolean;
  readonly waiting: number;
  readonly rssMb: number;
  readonly oomKills: number;
  readonly replicas: number;
  /** Of what the pods request, in the mean over the whole time. */
  readonly cpuPercent: number;
}

interface Look {
  readonly pods: number;
  /** Of what the pods request, since the last look. */
  readonly cpuPercent: number;
  readonly work: number;
}

type Scaler = (current: number, look: Look) => number;

export const byCpu: Scaler = (current, { cpuPercent }) => cpuReplicas(current, cpuPercent, { utilization: UTILIZATION, ...BOUNDS });
export const byBacklog: Scaler = (_current, { work }) => backlogReplicas(work, TARGET, BOUNDS);

/** Observed for `observedMs` from the mixed jobs on. */
export async function playControl(stage: Stage, name: string, scaler: Scaler, observedMs: number): Promise<PlayedControl> {
  const { site, clock, signal, narrator } = stage;
  await site.queue.put(queueOf(name), { maxAttempts: 1_000 });
  const watch = await watchWorkers(stage, name);
  await site.kube.create(DEPLOYMENTS, plainDeployment(variantOf(stage, name, false), FLOOR), { namespace: "default" });
  await happens(stage, BEGUN_WITHIN_MS, () => (watch.lastSample()?.workers ?? 0) >= FLOOR);
  await site.queue.add(queueOf(name), hangingJobs("hang", FIRST_HANGING));
  await happens(stage, STUCK_WITHIN_MS, () => (watch.lastSample()?.stuck ?? 0) >= SEEN_HANGING);
  await site.queue.add(queueOf(name), mixedJobs("mixed"));

  let replicas = FLOOR;
  let rssMb = 0;
  let most = FLOOR;
  const shares: number[] = [];
  const end = clock.monotonic() + observedMs;
  while (clock.monotonic() < end) {
    const look = await lookAt(stage, name, watch);
    shares.push(look.cpuPercent);
    rssMb = Math.max(rssMb, look.rssMb);
    const wanted = scaler(replicas, look);
    if (wanted !== replicas) {
      narrator.tell(`${name}: ${replicas} → ${wanted} replicas`);
      await site.kube.patch({ type: DEPLOYMENTS, namespace: "default", name }, { spec: { replicas: wanted } });
      replicas = wanted;
      most = Math.max(most, wanted);
    }
  }
  const counts = await site.queue.counts(queueOf(name));
  const result = {
    drained: isDrained(counts),
    waiting: counts.waiting,
    rssMb: Math.round(rssMb),
    oomKills: watch.oomKills(),
    replicas: most,
    cpuPercent: Math.round((10 * shares.reduce((sum, share) => sum + share, 0)) / shares.length) / 10,
  };
  watch.stop();
  await site.kube.delete({ type: DEPLOYMENTS, namespace: "default", name });
  await happens({ ...stage, signal }, BEGUN_WITHIN_MS, () => usageOf(name).processes === 0);
  return result;
}

async function lookAt({ site, clock, signal }: Stage, name: string, watch: WorkersWatch): Promise<Look & { readonly rssMb: number }> {
  const first = usageOf(name);
  const startedAt = clock.monotonic();
  let rssMb = first.rssMb;
  for (const end = startedAt + SCALE_EVERY_MS; clock.monotonic() < end; await clock.sleep(POLL_MS, signal))
    rssMb = Math.max(rssMb, usageOf(name).rssMb);
  const seconds = (clock.monotonic() - startedAt) / 1000;
  const pods = Math.max(1, watch.pods());
  const { waiting, taken } = await site.queue.counts(queueOf(name));
  const cpuPercent = (100 * cpuBetween(first, usageOf(name))) / seconds / (pods * REQUESTED_CPU_MS_PER_S);
  return { pods, cpuPercent, work: waiting + taken, rssMb };
}
