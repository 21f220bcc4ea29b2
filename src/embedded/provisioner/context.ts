/** What the provisioner's parts share, and how they look things up. */
import { NODE_CLAIMS, NODE_POOLS, NODES, PODS } from "../../kube/resources.ts";
import type { ClusterAccess } from "../controllers/access.ts";
import type { EventRecorder } from "../controllers/events.ts";
import type { Informer } from "../controllers/informer.ts";
import {
  conditionOf,
  controllerOf,
  isTerminal,
  refOf,
  withCondition,
  type Condition,
  type NodeClaimView,
  type NodePoolView,
  type NodeView,
  type PodView,
} from "../controllers/views.ts";
import type { NodeFleet } from "../nodes/fleet.ts";
import type { Cloud } from "./cloud.ts";
import { poolNameOf } from "./claim.ts";
import { DO_NOT_DISRUPT, NODE_POOL_LABEL } from "./labels.ts";
import { type CapacityType, Offerings } from "./offerings.ts";
import type { ProvisionerOptions } from "./options.ts";

export class ProvisionerContext {
  readonly access: ClusterAccess;
  readonly cloud: Cloud;
  readonly offerings: Offerings;
  readonly fleet: NodeFleet;
  readonly events: EventRecorder;
  readonly options: ProvisionerOptions;
  readonly claims: Informer;
  readonly pools: Informer;
  readonly nodes: Informer;
  readonly pods: Informer;

  constructor(access: ClusterAccess, cloud: Cloud, fleet: NodeFleet, events: EventRecorder, options: ProvisionerOptions) {
    this.access = access;
    this.cloud = cloud;
    this.offerings = new Offerings(options, access.clock);
    this.fleet = fleet;
    this.events = events;
    this.options = options;
    this.claims = access.informer(NODE_CLAIMS);
    this.pools = access.informer(NODE_POOLS);
    this.nodes = access.informer(NODES);
    this.pods = access.informer(PODS);
    this.nodes.addIndex("provider", (node) => [(node as NodeView).spec.providerID ?? ""]);
    this.claims.addIndex("provider", (claim) => [(claim as NodeClaimView).status?.providerID ?? ""]);
  }

  claim(name: string): NodeClaimView | undefined {
    return this.claims.get(name) as NodeClaimView | undefined;
  }

  allClaims(): readonly NodeClaimView[] {
    return this.claims.values() as readonly NodeClaimView[];
  }

  pool(): NodePoolView | undefined {
    return this.pools.get(this.options.pool) as NodePoolView | undefined;
  }

  /** The NodePool that the claim was made from; undefined when it is gone. */
  poolOf(claim: NodeClaimView): NodePoolView | undefined {
    return this.pools.get(claim.metadata.labels?.[NODE_POOL_LABEL] ?? this.options.pool) as NodePoolView | undefined;
  }

  poolFor(capacityType: CapacityType): NodePoolView | undefined {
    return this.pools.get(poolNameOf(this.options, capacityType)) as NodePoolView | undefined;
  }

  nodeOf(claim: NodeClaimView): NodeView | undefined {
    const providerID = claim.status?.providerID;
    return providerID === undefined ? undefined : (this.nodes.byIndex("provider", providerID)[0] as NodeView | undefined);
  }

  claimOf(node: NodeView): NodeClaimView | undefined {
    const { providerID } = node.spec;
    return providerID === undefined || providerID === ""
      ? undefined
      : (this.claims.byIndex("provider", providerID)[0] as NodeClaimView | undefined);
  }

  /** Pods that still occupy the node; daemons go with it and hold nothing up. */
  podsOn(nodeName: string): readonly PodView[] {
    return (this.pods.byIndex("node", nodeName) as readonly PodView[]).filter(
      (pod) => !isTerminal(pod) && controllerOf(pod)?.kind !== "DaemonSet",
    );
  }

  /** Writes conditions one after the other, each its own change; what is so already is not written. */
  async setConditions(claim: NodeClaimView, ...wanted: readonly Condition[]): Promise<NodeClaimView> {
    let seen = claim;
    for (const condition of wanted) {
      const before = conditionOf(seen.status?.conditions, condition.type);
      const isSame =
        before?.status === condition.status && before.reason === condition.reason && (before.message ?? "") === (condition.message ?? "");
      if (isSame) continue;
      const observedGeneration = seen.metadata.generation ?? 1;
      const conditions = withCondition(seen.status?.conditions, { message: "", ...condition, observedGeneration }, this.access.stamp());
      seen = (await this.access.patchStatus(refOf(NODE_CLAIMS, seen), {
        metadata: { uid: seen.metadata.uid },
        status: { conditions },
      })) as NodeClaimView;
    }
    return seen;
  }

  async clearCondition(claim: NodeClaimView, type: string): Promise<NodeClaimView> {
    if (conditionOf(claim.status?.conditions, type) === undefined) return claim;
    const conditions = claim.status?.conditions?.filter((condition) => condition.type !== type);
    return (await this.access.patchStatus(refOf(NODE_CLAIMS, claim), {
      metadata: { uid: claim.metadata.uid },
      status: { conditions },
    })) as NodeClaimView;
  }
}

export function isTrue(claim: NodeClaimView, type: string): boolean {
  return conditionOf(claim.status?.conditions, type)?.status === "True";
}

export function isDeleting(object: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}

export function isProtected(pod: PodView): boolean {
  return pod.metadata.annotations?.[DO_NOT_DISRUPT] === "true";
}
