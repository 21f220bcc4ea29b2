/**
 * Act 3: a worker is killed and leaves a file behind that names a live process (T14). It comes back and runs a task, because whoever begins it removes that file
 * first; the control is one more worker of the same cluster that does not, and never comes back.
 */
import { spawn } from "node:child_process";
import { DEPLOYMENTS } from "../../../kube/resources.ts";
import { workerAt } from "../../../drivers/trino/worker.ts";
import type { KubePod } from "../../../kube/types.ts";
import { numbers } from "./clients.ts";
import { killLeaving, serverOf } from "./processes.ts";
import { CONTROL_WORKER, workerWithoutCleanup } from "./site.ts";
import { engineOf, happens, note, PORT, podsOf, seconds, servingCluster, type Stage, WORKER_WITHIN_MS, workersOf } from "./stage.ts";

const ACT = "worker";
const SPLITS_ROWS = 20_000_000;
const ONE_LOOK_MS = 1_000;
/** The control is watched for so much longer than the other one took. */
const LONGER = 1.5;
const LEAST_MS = 30_000;

export interface PlayedWorker {
  readonly back: boolean;
  readonly backWithoutCleanup: boolean;
  readonly withoutCleanup: { readonly joined: boolean; readonly restarts: number; readonly refusal: string | null };
}

export async function playWorker(stage: Stage): Promise<PlayedWorker> {
  const { site } = stage;
  const cluster = await servingCluster(stage);
  // A process that is not Trino and lives on: its number is what the files name.
  const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e9); process.on('disconnect', () => process.exit())"], {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  const endOther = () => void other.kill("SIGKILL");
  site.undo.push(endOther);
  try {
    const livePid = other.pid ?? 0;
    await site.kube.create(DEPLOYMENTS, workerWithoutCleanup(site, cluster.id), { namespace: "default" });
    note(stage, ACT, "one more worker joins, for the control: its start does not remove launcher.pid");
    const joined = await happens(stage, WORKER_WITHIN_MS, async () => {
      const [pod] = await controlPods(stage);
      return pod !== undefined && (await isActive(stage, pod.metadata.name));
    });
    const [worker] = await workersOf(stage, cluster.id);
    const [control] = await controlPods(stage);
    if (worker === undefined || control === undefined)
      return { back: false, backWithoutCleanup: false, withoutCleanup: { joined: false, restarts: 0, refusal: null } };
    const killedAt = stage.clock.monotonic();
    for (const { metadata } of [worker, control]) {
      const server = serverOf(metadata.name);
      if (server === undefined) throw new Error(`no server runs in ${metadata.name}`);
      killLeaving(server, livePid);
      note(stage, ACT, `${metadata.name}: SIGKILL to ${server.pid}; its launcher.pid names ${livePid}, which lives`);
    }
    const back = await happens(stage, WORKER_WITHIN_MS, async () => {
      await stage.clock.sleep(ONE_LOOK_MS, stage.signal);
      return hasRunTask(stage, worker);
    });
    const tookMs = stage.clock.monotonic() - killedAt;
    note(
      stage,
      ACT,
      back ? `${worker.metadata.name} is back and ran a task after ${seconds(tookMs)}` : `${worker.metadata.name} is not back`,
    );
    const watchMs = Math.max(LEAST_MS, tookMs * LONGER) - tookMs;
    const backWithoutCleanup = await happens(stage, watchMs, () => isActiveAgain(stage, control));
    const withoutCleanup = { joined, ...(await refusalOf(stage)) };
    note(
      stage,
      ACT,
      backWithoutCleanup
        ? "the control came back"
        : `the control is not back after ${seconds(stage.clock.monotonic() - killedAt)}, begun again ${withoutCleanup.restarts} times: ${withoutCleanup.refusal ?? "it does not say why"}`,
    );
    return { back, backWithoutCleanup, withoutCleanup };
  } finally {
    await site.kube.delete({ type: DEPLOYMENTS, namespace: "default", name: CONTROL_WORKER }).catch(() => undefined); // it goes with the site at the latest
    endOther();
  }
}

function controlPods(stage: Stage): Promise<readonly KubePod[]> {
  return podsOf(stage, "app=trino-control");
}

async function isActive(stage: Stage, nodeId: string): Promise<boolean> {
  const nodes = await engineOf(stage, await servingCluster(stage)).nodes();
  return nodes.some((node) => node.nodeId === nodeId && node.state === "active");
}

/** The killed one stays in the table for some seconds: it must say so itself too. Throws while it gives no answer. */
async function isActiveAgain(stage: Stage, { metadata, status }: KubePod): Promise<boolean> {
  const worker = workerAt({ base: `http://${status.podIP}:${PORT}`, user: "relevo", clock: stage.clock, http: stage.http });
  const { isStarting } = await worker.info();
  return !isStarting && (await worker.state()) === "ACTIVE" && (await isActive(stage, metadata.name));
}

/** A query of many splits had a task on it after it was begun anew. */
async function hasRunTask(stage: Stage, pod: KubePod): Promise<boolean> {
  if (!(await isActiveAgain(stage, pod))) return false;
  const { clients } = stage;
  const ended = await clients.check(ACT, clients.client("TASK"), numbers(SPLITS_ROWS));
  if (ended.how !== "right") return false;
  const tasks = await engineOf(stage, await servingCluster(stage)).tasks(ended.queryId);
  return tasks.some(({ nodeId, state }) => nodeId === pod.metadata.name && state === "FINISHED");
}

/** How often the kubelet began it again, and what the launcher said. */
async function refusalOf(stage: Stage): Promise<{ readonly restarts: number; readonly refusal: string | null }> {
  const [pod] = await controlPods(stage);
  if (pod === undefined) return { restarts: 0, refusal: null };
  const restarts = pod.status.containerStatuses[0]?.restartCount ?? 0;
  const url = `${stage.site.stack.clusterUrl}/api/v1/namespaces/default/pods/${pod.metadata.name}/log?tailLines=20`;
  const log = await fetch(url).then((answer) => answer.text());
  return { restarts, refusal: /^.*already running as.*$/m.exec(log)?.[0]?.trim() ?? null };
}
