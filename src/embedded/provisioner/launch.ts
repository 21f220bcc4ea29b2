/** The first half of a NodeClaim's life, in Karpenter's order: all conditions Unknown, Launched, Registered, Initialized, Ready. */
import { NODE_CLAIMS, NODES, apiVersionOf } from "../../kube/resources.ts";
import type { SelectorRequirement } from "../../kube/scheduling.ts";
import { NOT_READY_TAINT } from "../controllers/node-lifecycle.ts";
import { conditionOf, isReady, refOf, type NodeClaimView, type NodeView, type Taint } from "../controllers/views.ts";
import type { NodeSpec } from "../nodes/kubelet.ts";
import type { Instance } from "./cloud.ts";
import { isTrue, type ProvisionerContext } from "./context.ts";
import {
  ARCH,
  CAPACITY_TYPE,
  HOSTNAME,
  INITIALIZED,
  INSTANCE_TYPE,
  OS,
  REGION,
  REGISTERED,
  TERMINATION_FINALIZER,
  UNREGISTERED_TAINT,
  ZONE,
} from "./labels.ts";
import type { Offering } from "./offerings.ts";
import type { Capacity, ProvisionerOptions } from "./options.ts";

/** False when the cloud has no machine for it: the claim goes, and what needed it looks for another offering. */
export async function launchClaim(context: ProvisionerContext, claim: NodeClaimView, bootDelayMs: number): Promise<boolean> {
  let seen = claim;
  if (conditionOf(seen.status?.conditions, "Ready") === undefined) seen = await begin(context, seen);
  if (!isTrue(seen, "Launched")) {
    const offering = offeringOf(context, seen);
    const refusal = refusalOf(context, seen, offering);
    if (refusal !== undefined) {
      await refuse(context, seen, offering, refusal);
      return false;
    }
    seen = await launch(context, seen, offering, bootDelayMs);
  }
  const node = context.nodeOf(seen);
  if (node === undefined) {
    if (!isTrue(seen, "Registered")) {
      await context.setConditions(seen, {
        type: "Registered",
        status: "Unknown",
        reason: "NodeNotFound",
        message: "Node not registered with cluster",
      });
    }
    return true;
  }
  const registered = await register(context, seen, node);
  seen = await context.setConditions(registered.claim, { type: "Registered", status: "True", reason: "Registered" });
  await initialize(context, seen, registered.node);
  return true;
}

async function begin(context: ProvisionerContext, claim: NodeClaimView): Promise<NodeClaimView> {
  const lastTransitionTime = context.access.stamp();
  const observedGeneration = claim.metadata.generation ?? 1;
  const unknown = (type: string, reason: string, message: string) => ({
    type,
    status: "Unknown",
    reason,
    message,
    lastTransitionTime,
    observedGeneration,
  });
  const waiting = "object is awaiting reconciliation";
  const conditions = [
    ...["Launched", "Registered", "Initialized"].map((type) => unknown(type, "AwaitingReconciliation", waiting)),
    unknown("Ready", "ReconcilingDependents", "condition dependents are being reconciled"),
  ];
  return (await context.access.patchStatus(refOf(NODE_CLAIMS, claim), {
    metadata: { uid: claim.metadata.uid },
    status: { conditions },
  })) as NodeClaimView;
}

function refusalOf({ options, cloud, offerings }: ProvisionerContext, claim: NodeClaimView, offering: Offering): string | undefined {
  if (cloud.byProviderID(claim.status?.providerID) !== undefined) return undefined;
  const limit = offerings.limitOf(offering);
  if (limit !== null && cloud.countOf(offering) >= limit)
    return `no ${offering.capacityType} capacity for ${offering.instanceType} in ${offering.zone}`;
  return options.refuses?.(offering.zone);
}

/** As Karpenter does: an Event tells, the claim is deleted, and the offering is left out for a while. */
async function refuse(
  { access, events, offerings }: ProvisionerContext,
  claim: NodeClaimView,
  offering: Offering,
  why: string,
): Promise<void> {
  offerings.leaveOut(offering);
  events.record(claim, "Warning", "InsufficientCapacityError", `NodeClaim ${claim.metadata.name} event: insufficient capacity, ${why}`);
  await access.delete(refOf(NODE_CLAIMS, claim), claim.metadata.uid);
}

async function launch(context: ProvisionerContext, claim: NodeClaimView, offering: Offering, bootDelayMs: number): Promise<NodeClaimView> {
  const { options, cloud, access } = context;
  const instance = cloud.byProviderID(claim.status?.providerID) ?? cloud.launch(offering, bootDelayMs);
  const { uid } = claim.metadata;
  await access.patch(refOf(NODE_CLAIMS, claim), { metadata: { uid, labels: machineLabels(instance, options) } });
  const capacity = context.offerings.capacityOf(instance.instanceType);
  const status = { providerID: instance.providerID, capacity, allocatable: capacity };
  const launched = await access.patchStatus(refOf(NODE_CLAIMS, claim), { metadata: { uid }, status });
  return await context.setConditions(launched as NodeClaimView, { type: "Launched", status: "True", reason: "Launched" });
}

/** Also after the Node object was made anew under an old claim. */
async function register(
  context: ProvisionerContext,
  claim: NodeClaimView,
  node: NodeView,
): Promise<{ readonly claim: NodeClaimView; readonly node: NodeView }> {
  const { access } = context;
  let registered = node;
  if (node.metadata.labels?.[REGISTERED] !== "true" && node.metadata.deletionTimestamp === undefined) {
    const taints = (node.spec.taints ?? []).filter((taint) => taint.key !== UNREGISTERED_TAINT);
    const own = (claim.spec as { readonly taints?: readonly Taint[] }).taints ?? [];
    registered = (await access.patch(refOf(NODES, node), {
      metadata: {
        uid: node.metadata.uid,
        resourceVersion: node.metadata.resourceVersion,
        labels: { ...claim.metadata.labels, ...node.metadata.labels, [REGISTERED]: "true" },
        annotations: { ...node.metadata.annotations, ...claim.metadata.annotations },
        finalizers: [...new Set([...(node.metadata.finalizers ?? []), TERMINATION_FINALIZER])],
        ownerReferences: [
          {
            apiVersion: apiVersionOf(NODE_CLAIMS),
            kind: "NodeClaim",
            name: claim.metadata.name,
            uid: claim.metadata.uid,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: { taints: orNone([...taints, ...own]) },
    })) as NodeView;
  }
  if (claim.status?.nodeName === node.metadata.name) return { claim, node: registered };
  const named = await access.patchStatus(refOf(NODE_CLAIMS, claim), {
    metadata: { uid: claim.metadata.uid },
    status: { nodeName: node.metadata.name },
  });
  return { claim: named as NodeClaimView, node: registered };
}

async function initialize(context: ProvisionerContext, claim: NodeClaimView, node: NodeView): Promise<void> {
  const isStarting = (node.spec.taints ?? []).some((taint) => taint.key === NOT_READY_TAINT || taint.key === UNREGISTERED_TAINT);
  if (!isReady(node) || isStarting || node.metadata.deletionTimestamp !== undefined) return;
  if (node.metadata.labels?.[INITIALIZED] !== "true") {
    await context.access.patch(refOf(NODES, node), { metadata: { uid: node.metadata.uid, labels: { [INITIALIZED]: "true" } } });
  }
  await context.setConditions(
    claim,
    { type: "ConsistentStateFound", status: "True", reason: "ConsistentStateFound" },
    { type: "Initialized", status: "True", reason: "Initialized" },
    { type: "Ready", status: "True", reason: "Ready" },
  );
}

/** An empty list of taints is not kept. */
function orNone(taints: readonly Taint[]): readonly Taint[] | null {
  return taints.length === 0 ? null : taints;
}

/** What it was made for; of a claim that somebody else made, what it leaves open is the preferred. */
export function offeringOf({ offerings }: ProvisionerContext, claim: NodeClaimView): Offering {
  const requirements = (claim.spec as { readonly requirements?: readonly SelectorRequirement[] }).requirements ?? [];
  const asked = (key: string): string | undefined => requirements.find((requirement) => requirement.key === key)?.values?.[0];
  const [first] = offerings.all();
  const capacityType = claim.metadata.labels?.[CAPACITY_TYPE] ?? asked(CAPACITY_TYPE);
  return {
    zone: asked(ZONE) ?? first?.zone ?? "",
    instanceType: asked(INSTANCE_TYPE) ?? first?.instanceType ?? "",
    capacityType: capacityType === "on-demand" ? "on-demand" : "spot",
  };
}

function machineLabels(instance: Instance, options: ProvisionerOptions): Readonly<Record<string, string>> {
  return {
    [HOSTNAME]: instance.nodeName,
    [ARCH]: "amd64",
    [OS]: "linux",
    [INSTANCE_TYPE]: instance.instanceType,
    [ZONE]: instance.zone,
    [REGION]: options.region,
  };
}

/** The node that an instance's kubelet registers. */
export function nodeSpecOf(instance: Instance, options: ProvisionerOptions, capacity: Capacity): NodeSpec {
  return {
    name: instance.nodeName,
    providerID: instance.providerID,
    labels: { ...machineLabels(instance, options), "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux" },
    taints: [
      { key: UNREGISTERED_TAINT, effect: "NoExecute" },
      { key: NOT_READY_TAINT, effect: "NoSchedule" },
    ],
    capacity,
  };
}
