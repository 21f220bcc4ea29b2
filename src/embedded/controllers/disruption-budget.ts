/** Says how many pods of a budget may be disrupted now; the Eviction API believes no older generation. */
import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../kube/api.ts";
import { DEPLOYMENTS, PODS, POD_DISRUPTION_BUDGETS, REPLICA_SETS, STATEFUL_SETS } from "../../kube/resources.ts";
import { controllerKey, type ClusterAccess } from "./access.ts";
import { ControllerLoop, type ReconcileResult } from "./loop.ts";
import {
  controllerOf,
  isReady,
  isTerminal,
  refOf,
  resolveIntOrPercent,
  withCondition,
  type DisruptionBudgetView,
  type PodView,
} from "./views.ts";
import { matchesLabelSelector } from "../store/selectors.ts";

/** An eviction that was allowed but never became a deletion counts for this long, as in Kubernetes. */
const DISRUPTED_MS = 120_000;

export function disruptionBudgetController(access: ClusterAccess): ControllerLoop {
  const budgets = access.informer(POD_DISRUPTION_BUDGETS);
  const pods = access.informer(PODS);
  const owners = {
    ReplicaSet: access.informer(REPLICA_SETS),
    StatefulSet: access.informer(STATEFUL_SETS),
    Deployment: access.informer(DEPLOYMENTS),
  };
  budgets.addIndex("namespace", (budget) => [budget.metadata.namespace ?? ""]);
  const loop = new ControllerLoop({ name: "disruption-budget", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  budgets.onChange(({ key }) => loop.enqueue(key));
  pods.onChange(({ before, after }) => {
    const namespace = (after ?? before)?.metadata.namespace ?? "";
    for (const budget of budgets.byIndex("namespace", namespace) as readonly DisruptionBudgetView[]) {
      const concerns = [before, after].some((pod) => pod !== undefined && matchesLabelSelector(budget.spec.selector, pod.metadata.labels));
      if (concerns) loop.enqueue(`${namespace}/${budget.metadata.name}`);
    }
  });
  for (const informer of Object.values(owners)) {
    informer.onChange(({ after }) => {
      for (const budget of budgets.byIndex("namespace", after?.metadata.namespace ?? ""))
        loop.enqueue(`${budget.metadata.namespace}/${budget.metadata.name}`);
    });
  }

  async function reconcile(key: string): Promise<ReconcileResult | void> {
    const budget = budgets.get(key) as DisruptionBudgetView | undefined;
    if (budget === undefined || budget.metadata.deletionTimestamp !== undefined) return;
    const now = access.clock.now();
    const covered = (pods.byIndex("namespace", budget.metadata.namespace ?? "") as readonly PodView[]).filter(
      (pod) => !isTerminal(pod) && matchesLabelSelector(budget.spec.selector, pod.metadata.labels),
    );
    const disrupted = stillDisrupted(budget, covered, now);
    const expectedPods = expected(budget, covered);
    const desiredHealthy = healthyNeeded(budget, expectedPods);
    const currentHealthy = covered.filter(
      (pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined && disrupted[pod.metadata.name] === undefined,
    ).length;
    const disruptionsAllowed = expectedPods === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
    await write(budget, { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods }, disrupted);
    const oldest = Math.min(...Object.values(disrupted).map((at) => Date.parse(at)));
    return { requeueAfterMs: Number.isFinite(oldest) ? Math.max(1, oldest + DISRUPTED_MS - now) : undefined };
  }

  async function write(
    budget: DisruptionBudgetView,
    counts: Readonly<Record<string, number>> & { readonly disruptionsAllowed: number },
    disrupted: Readonly<Record<string, string>>,
  ): Promise<void> {
    const allowed = counts.disruptionsAllowed > 0;
    const conditions = withCondition(
      budget.status?.conditions,
      {
        type: "DisruptionAllowed",
        status: allowed ? "True" : "False",
        reason: allowed ? "SufficientPods" : "InsufficientPods",
        message: "",
        observedGeneration: budget.metadata.generation ?? 1,
      },
      access.stamp(),
    );
    const before = budget.status?.disruptedPods ?? {};
    const status = { ...counts, observedGeneration: budget.metadata.generation ?? 1, conditions };
    const dropped = Object.keys(before).filter((name) => disrupted[name] === undefined);
    if (
      dropped.length === 0 &&
      isDeepStrictEqual(budget.status, { ...status, ...(budget.status?.disruptedPods === undefined ? {} : { disruptedPods: before }) })
    )
      return;
    await access.patchStatus(refOf(POD_DISRUPTION_BUDGETS, budget), {
      // An eviction writes the same status: whoever read the older one must think again.
      metadata: { uid: budget.metadata.uid, resourceVersion: budget.metadata.resourceVersion },
      status: { ...status, ...(dropped.length === 0 ? {} : { disruptedPods: Object.fromEntries(dropped.map((name) => [name, null])) }) },
    });
  }

  /** With percentages and maxUnavailable the count is what the pods' owners want, not what happens to be there. */
  function expected(budget: DisruptionBudgetView, covered: readonly PodView[]): number {
    if (typeof budget.spec.minAvailable === "number") return covered.length;
    const sizes = new Map<string, number>();
    for (const pod of covered) {
      const owner = controllerOf(pod);
      const root = owner === undefined ? undefined : scaleOf(pod);
      if (root === undefined) sizes.set(pod.metadata.uid, 1);
      else sizes.set(root.uid, root.replicas);
    }
    return [...sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  function scaleOf(pod: KubeObject): { readonly uid: string; readonly replicas: number } | undefined {
    const set = owners.ReplicaSet.get(controllerKey(pod, "ReplicaSet") ?? "");
    const deployment = set === undefined ? undefined : owners.Deployment.get(controllerKey(set, "Deployment") ?? "");
    const root = deployment ?? set ?? owners.StatefulSet.get(controllerKey(pod, "StatefulSet") ?? "");
    if (root === undefined) return undefined;
    return { uid: root.metadata.uid, replicas: (root["spec"] as { readonly replicas?: number }).replicas ?? 1 };
  }

  return loop;
}

function healthyNeeded(budget: DisruptionBudgetView, expectedPods: number): number {
  const { minAvailable, maxUnavailable } = budget.spec;
  if (minAvailable !== undefined) return resolveIntOrPercent(minAvailable, expectedPods, "up");
  return Math.max(0, expectedPods - resolveIntOrPercent(maxUnavailable ?? 0, expectedPods, "up"));
}

function stillDisrupted(budget: DisruptionBudgetView, covered: readonly PodView[], now: number): Readonly<Record<string, string>> {
  const alive = new Set(covered.filter((pod) => pod.metadata.deletionTimestamp === undefined).map((pod) => pod.metadata.name));
  const entries = Object.entries(budget.status?.disruptedPods ?? {});
  return Object.fromEntries(entries.filter(([name, at]) => alive.has(name) && Date.parse(at) + DISRUPTED_MS > now));
}
