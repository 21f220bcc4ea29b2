/**
 * Which nodes Karpenter itself takes: drifted ones it replaces first, empty ones it removes. A pod that says do-not-disrupt, a budget without room and the
 * NodePool's own budget hold it back; with a termination grace period neither pod nor budget does.
 */
import { NODE_CLAIMS, NODES, POD_DISRUPTION_BUDGETS } from "../../kube/resources.ts";
import { refOf, type DisruptionBudgetView, type NodeClaimView, type NodeView } from "../controllers/views.ts";
import { matchesLabelSelector } from "../store/selectors.ts";
import { isDeleting, isProtected, isTrue, type ProvisionerContext } from "./context.ts";
import { CAPACITY_TYPE, DISRUPTED_TAINT } from "./labels.ts";
import { taintDisrupted } from "./termination.ts";

/** A drifted claim whose replacement is on its way, by the claims' names. */
export type Replacements = Map<string, string>;

/** One look at the drifted nodes: begins at most as many replacements as the budget leaves. */
export async function disruptDrifted(
  context: ProvisionerContext,
  replacements: Replacements,
  launch: (instead: NodeClaimView) => Promise<NodeClaimView>,
): Promise<void> {
  const claims = context.allClaims();
  let room = budgetOf(context, claims) - claims.filter((claim) => isDeleting(claim) || replacements.has(claim.metadata.name)).length;
  for (const claim of claims.toSorted((a, b) => a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp))) {
    const node = context.nodeOf(claim);
    if (
      !isTrue(claim, "Drifted") ||
      !isTrue(claim, "Initialized") ||
      isDeleting(claim) ||
      node === undefined ||
      replacements.has(claim.metadata.name)
    )
      continue;
    const obstacle = room <= 0 ? "the NodePool's disruption budget is used up" : whyNot(context, claim, node);
    if (obstacle !== undefined) {
      context.events.record(node, "Normal", "DisruptionBlocked", `Node isn't disruptable: ${obstacle}`);
      continue;
    }
    room--;
    await taintDisrupted(context, node);
    await context.setConditions(claim, { type: "DisruptionReason", status: "True", reason: "Drifted", message: "Drifted" });
    context.events.record(claim, "Normal", "DisruptionLaunching", "Launching NodeClaim: Drifted");
    const replacement = await launch(claim);
    replacements.set(claim.metadata.name, replacement.metadata.name);
  }
}

/** Ends what began: a ready replacement releases its drifted node, a lost one is given up and the node may serve on. */
export async function finishReplacements(context: ProvisionerContext, replacements: Replacements): Promise<void> {
  for (const [name, replacementName] of replacements) {
    const claim = context.claim(name);
    const replacement = context.claim(replacementName);
    if (claim === undefined || isDeleting(claim)) replacements.delete(name);
    else if (replacement === undefined || isDeleting(replacement)) {
      replacements.delete(name);
      await untaint(context, claim);
    } else if (isTrue(replacement, "Ready")) {
      replacements.delete(name);
      context.events.record(claim, "Normal", "DisruptionTerminating", "Disrupting NodeClaim: Drifted");
      await context.access.delete(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
    } else context.events.record(claim, "Normal", "DisruptionWaitingReadiness", "Waiting on readiness to continue disruption");
  }
}

/** Since when each node has been without pods, on the monotonic clock. */
export type EmptySince = Map<string, number>;

/** Removes nodes that were empty for long enough; those that are drifted or cordoned first, others only above the minimum. */
export async function consolidateEmpty(context: ProvisionerContext, emptySince: EmptySince): Promise<number | undefined> {
  const { options, access } = context;
  const now = access.clock.monotonic();
  const live = context.allClaims().filter((claim) => !isDeleting(claim) && isTrue(claim, "Initialized"));
  const names = new Set(live.map((claim) => claim.metadata.name));
  for (const name of [...emptySince.keys()]) if (!names.has(name)) emptySince.delete(name);
  const isOnDemand = (claim: NodeClaimView): boolean => claim.metadata.labels?.[CAPACITY_TYPE] === "on-demand";
  let spare = live.filter((claim) => !isOnDemand(claim)).length - options.minNodes;
  let nextMs: number | undefined;
  // What costs more than spot goes first too.
  const retiring = (claim: NodeClaimView): boolean =>
    isTrue(claim, "Drifted") || context.nodeOf(claim)?.spec.unschedulable === true || isOnDemand(claim);
  for (const claim of live.toSorted((a, b) => Number(retiring(b)) - Number(retiring(a)))) {
    const node = context.nodeOf(claim);
    const isEmpty = node !== undefined && context.podsOn(node.metadata.name).length === 0;
    if (!isEmpty) {
      emptySince.delete(claim.metadata.name);
      continue;
    }
    const since = emptySince.get(claim.metadata.name) ?? now;
    emptySince.set(claim.metadata.name, since);
    const leftMs = since + options.consolidateAfterMs - now;
    if (leftMs > 0) {
      nextMs = Math.min(nextMs ?? leftMs, leftMs);
      continue;
    }
    if (!retiring(claim) && spare <= 0) continue;
    if (!isOnDemand(claim)) spare--;
    await taintDisrupted(context, node);
    await context.setConditions(claim, { type: "DisruptionReason", status: "True", reason: "Empty", message: "Empty" });
    context.events.record(claim, "Normal", "DisruptionTerminating", "Disrupting NodeClaim: Empty");
    await access.delete(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
  }
  return nextMs;
}

function whyNot(context: ProvisionerContext, claim: NodeClaimView, node: NodeView): string | undefined {
  if (claim.spec.terminationGracePeriod !== undefined) return undefined;
  const pods = context.podsOn(node.metadata.name);
  const held = pods.find(isProtected);
  if (held !== undefined) return `pod ${held.metadata.namespace}/${held.metadata.name} has "karpenter.sh/do-not-disrupt" annotation`;
  for (const budget of context.access.informer(POD_DISRUPTION_BUDGETS).values() as readonly DisruptionBudgetView[]) {
    const allowed = (budget["status"] as { readonly disruptionsAllowed?: number } | undefined)?.disruptionsAllowed ?? 0;
    const covers = pods.some(
      (pod) => pod.metadata.namespace === budget.metadata.namespace && matchesLabelSelector(budget.spec.selector, pod.metadata.labels),
    );
    if (covers && allowed === 0) return `pdb ${budget.metadata.namespace}/${budget.metadata.name} prevents pod evictions`;
  }
  return undefined;
}

/** The tightest of the NodePool's budgets, in nodes; percentages round up. */
function budgetOf(context: ProvisionerContext, claims: readonly NodeClaimView[]): number {
  const limits = (context.pool()?.spec.disruption?.budgets ?? [{ nodes: "10%" }]).map(({ nodes }) =>
    nodes.endsWith("%") ? Math.ceil((Number.parseInt(nodes, 10) * claims.length) / 100) : Number.parseInt(nodes, 10),
  );
  return Math.min(...limits);
}

async function untaint(context: ProvisionerContext, claim: NodeClaimView): Promise<void> {
  await context.clearCondition(claim, "DisruptionReason");
  const node = context.nodeOf(claim);
  if (node === undefined) return;
  const taints = (node.spec.taints ?? []).filter((taint) => taint.key !== DISRUPTED_TAINT);
  const { uid, resourceVersion } = node.metadata;
  await context.access.patch(refOf(NODES, node), {
    metadata: { uid, resourceVersion },
    spec: { taints: taints.length === 0 ? null : taints },
  });
}
