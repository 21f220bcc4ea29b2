/** Rolls a Deployment's template out through ReplicaSets, one per template, and keeps its status true. */
import { isDeepStrictEqual } from "node:util";
import { DEPLOYMENTS, PODS, REPLICA_SETS } from "../../kube/resources.ts";
import { controllerKey, type ClusterAccess } from "./access.ts";
import type { EventRecorder } from "./events.ts";
import { ControllerLoop } from "./loop.ts";
import { ownerReference } from "./replica-set.ts";
import { nextFreshSize, nextOldSizes, rolloutBounds, type RolloutSet, type RolloutState } from "./rollout.ts";
import { templateHash } from "./template-hash.ts";
import {
  isTerminal,
  keyOf,
  refOf,
  withCondition,
  type Condition,
  type DeploymentView,
  type PodView,
  type ReplicaSetView,
} from "./views.ts";

const HASH_LABEL = "pod-template-hash";
const REVISION = "deployment.kubernetes.io/revision";

export function deploymentController(access: ClusterAccess, events: EventRecorder): ControllerLoop {
  const deployments = access.informer(DEPLOYMENTS);
  const sets = access.informer(REPLICA_SETS);
  const pods = access.informer(PODS);
  const loop = new ControllerLoop({ name: "deployment", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  deployments.onChange(({ key }) => loop.enqueue(key));
  sets.onChange(({ before, after }) => {
    for (const set of [before, after]) {
      const owner = set === undefined ? undefined : controllerKey(set, "Deployment");
      if (owner !== undefined) loop.enqueue(owner);
    }
  });
  // `Recreate` waits until the last old pod is gone, which no ReplicaSet's status tells.
  pods.onChange(({ before, after }) => {
    if (before === undefined || after !== undefined) return;
    const set = sets.get(controllerKey(before, "ReplicaSet") ?? "");
    const owner = set === undefined ? undefined : controllerKey(set, "Deployment");
    if (owner !== undefined) loop.enqueue(owner);
  });

  const owned = (deployment: DeploymentView): readonly ReplicaSetView[] =>
    (sets.byIndex("owner", deployment.metadata.uid) as readonly ReplicaSetView[])
      .filter((set) => set.metadata.deletionTimestamp === undefined)
      .toSorted((a, b) => revisionOf(a) - revisionOf(b) || keyOf(a).localeCompare(keyOf(b)));

  async function reconcile(key: string): Promise<void> {
    const deployment = deployments.get(key) as DeploymentView | undefined;
    if (deployment === undefined || deployment.metadata.deletionTimestamp !== undefined) return;
    const hash = templateHash(deployment.spec.template);
    const fresh = owned(deployment).find((set) => set.metadata.labels?.[HASH_LABEL] === hash);
    const old = owned(deployment).filter((set) => set !== fresh);
    if (deployment.spec.paused === true) await resizeWhilePaused(deployment, fresh ?? old.at(-1));
    else if (deployment.spec.strategy?.type === "Recreate") await recreate(deployment, hash, fresh, old);
    else await roll(deployment, hash, fresh, old);
    await dropHistory(deployment, hash);
    await writeStatus(deployment, hash);
  }

  async function roll(
    deployment: DeploymentView,
    hash: string,
    fresh: ReplicaSetView | undefined,
    old: readonly ReplicaSetView[],
  ): Promise<void> {
    const desired = deployment.spec.replicas ?? 1;
    const { maxSurge, maxUnavailable } = rolloutBounds(
      desired,
      deployment.spec.strategy?.rollingUpdate?.maxSurge,
      deployment.spec.strategy?.rollingUpdate?.maxUnavailable,
    );
    const state: RolloutState = { desired, maxSurge, maxUnavailable, fresh: fresh && rolloutSet(fresh), old: old.map(rolloutSet) };
    const size = nextFreshSize(state);
    const current = fresh === undefined ? await createSet(deployment, hash, size) : await ensureRevision(deployment, fresh, old);
    await resize(deployment, current, size);
    const sizes = nextOldSizes({ ...state, fresh: { ...rolloutSet(current), replicas: size } });
    for (const set of old) await resize(deployment, set, sizes.get(set.metadata.name) ?? 0);
  }

  async function recreate(
    deployment: DeploymentView,
    hash: string,
    fresh: ReplicaSetView | undefined,
    old: readonly ReplicaSetView[],
  ): Promise<void> {
    for (const set of old) await resize(deployment, set, 0);
    const hasOldPods = old.some((set) => (pods.byIndex("owner", set.metadata.uid) as readonly PodView[]).some((pod) => !isTerminal(pod)));
    if (hasOldPods) return;
    const desired = deployment.spec.replicas ?? 1;
    if (fresh === undefined) await createSet(deployment, hash, desired);
    else await resize(deployment, await ensureRevision(deployment, fresh, old), desired);
  }

  async function resizeWhilePaused(deployment: DeploymentView, newest: ReplicaSetView | undefined): Promise<void> {
    if (newest !== undefined) await resize(deployment, newest, deployment.spec.replicas ?? 1);
  }

  async function createSet(deployment: DeploymentView, hash: string, replicas: number): Promise<ReplicaSetView> {
    const { template, selector, minReadySeconds } = deployment.spec;
    const labels = { ...template.metadata?.labels, [HASH_LABEL]: hash };
    const revision = String(Math.max(0, ...owned(deployment).map(revisionOf)) + 1);
    const set = await access.create(
      REPLICA_SETS,
      {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        metadata: {
          name: `${deployment.metadata.name}-${hash}`,
          labels,
          annotations: { [REVISION]: revision },
          ownerReferences: [ownerReference(deployment)],
        },
        spec: {
          replicas,
          ...(minReadySeconds === undefined ? {} : { minReadySeconds }),
          selector: { ...selector, matchLabels: { ...selector.matchLabels, [HASH_LABEL]: hash } },
          template: { ...template, metadata: { ...template.metadata, labels } },
        },
      },
      deployment.metadata.namespace,
    );
    events.record(deployment, "Normal", "ScalingReplicaSet", `Scaled up replica set ${set.metadata.name} from 0 to ${replicas}`);
    await mark(deployment, revision);
    return set as ReplicaSetView;
  }

  /** A template that was there before becomes the newest revision again. */
  async function ensureRevision(deployment: DeploymentView, set: ReplicaSetView, old: readonly ReplicaSetView[]): Promise<ReplicaSetView> {
    const newest = Math.max(0, ...old.map(revisionOf));
    if (revisionOf(set) > newest) return set;
    const revision = String(newest + 1);
    const marked = await access.patch(refOf(REPLICA_SETS, set), {
      metadata: { uid: set.metadata.uid, annotations: { [REVISION]: revision } },
    });
    await mark(deployment, revision);
    return marked as ReplicaSetView;
  }

  async function mark(deployment: DeploymentView, revision: string): Promise<void> {
    if (deployment.metadata.annotations?.[REVISION] === revision) return;
    await access.patch(refOf(DEPLOYMENTS, deployment), {
      metadata: { uid: deployment.metadata.uid, annotations: { [REVISION]: revision } },
    });
  }

  async function resize(deployment: DeploymentView, set: ReplicaSetView, replicas: number): Promise<void> {
    const present = set.spec.replicas ?? 1;
    if (present === replicas) return;
    await access.patch(refOf(REPLICA_SETS, set), { metadata: { uid: set.metadata.uid }, spec: { replicas } });
    const direction = replicas > present ? "up" : "down";
    events.record(
      deployment,
      "Normal",
      "ScalingReplicaSet",
      `Scaled ${direction} replica set ${set.metadata.name} from ${present} to ${replicas}`,
    );
  }

  async function dropHistory(deployment: DeploymentView, hash: string): Promise<void> {
    const idle = owned(deployment).filter(
      (set) => set.metadata.labels?.[HASH_LABEL] !== hash && (set.spec.replicas ?? 1) === 0 && (set.status?.replicas ?? 0) === 0,
    );
    const surplus = idle.length - (deployment.spec.revisionHistoryLimit ?? 10);
    for (const set of idle.slice(0, Math.max(0, surplus))) await access.delete(refOf(REPLICA_SETS, set), set.metadata.uid);
  }

  async function writeStatus(deployment: DeploymentView, hash: string): Promise<void> {
    const all = owned(deployment);
    const fresh = all.find((set) => set.metadata.labels?.[HASH_LABEL] === hash);
    const sum = (of: (set: ReplicaSetView) => number): number => all.reduce((total, set) => total + of(set), 0);
    const desired = deployment.spec.replicas ?? 1;
    const availableReplicas = sum((set) => set.status?.availableReplicas ?? 0);
    const counts = {
      replicas: sum((set) => set.status?.replicas ?? 0),
      updatedReplicas: fresh?.status?.replicas ?? 0,
      readyReplicas: sum((set) => set.status?.readyReplicas ?? 0),
      availableReplicas,
      unavailableReplicas: Math.max(0, sum((set) => set.spec.replicas ?? 1) - availableReplicas),
    };
    const status = {
      observedGeneration: deployment.metadata.generation ?? 1,
      ...counts,
      conditions: conditions(deployment, counts, desired, access.stamp()),
    };
    if (isDeepStrictEqual(deployment.status, status)) return;
    await access.patchStatus(refOf(DEPLOYMENTS, deployment), { metadata: { uid: deployment.metadata.uid }, status });
  }

  return loop;
}

function conditions(
  deployment: DeploymentView,
  counts: { readonly replicas: number; readonly updatedReplicas: number; readonly availableReplicas: number },
  desired: number,
  now: string,
): readonly Condition[] {
  const { maxUnavailable } = rolloutBounds(desired, 0, deployment.spec.strategy?.rollingUpdate?.maxUnavailable);
  const isAvailable = counts.availableReplicas >= desired - (deployment.spec.strategy?.type === "Recreate" ? 0 : maxUnavailable);
  const isComplete = counts.updatedReplicas === desired && counts.replicas === desired && counts.availableReplicas >= desired;
  const available: Condition = isAvailable
    ? { type: "Available", status: "True", reason: "MinimumReplicasAvailable", message: "Deployment has minimum availability." }
    : {
        type: "Available",
        status: "False",
        reason: "MinimumReplicasUnavailable",
        message: "Deployment does not have minimum availability.",
      };
  const progressing: Condition = isComplete
    ? { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable", message: "ReplicaSet has successfully progressed." }
    : { type: "Progressing", status: "True", reason: "ReplicaSetUpdated", message: "ReplicaSet is progressing." };
  return withCondition(withCondition(deployment.status?.conditions, available, now), progressing, now);
}

function rolloutSet(set: ReplicaSetView): RolloutSet {
  return { name: set.metadata.name, replicas: set.spec.replicas ?? 1, available: set.status?.availableReplicas ?? 0 };
}

function revisionOf(set: ReplicaSetView): number {
  return Number(set.metadata.annotations?.[REVISION] ?? 0) || 0;
}
