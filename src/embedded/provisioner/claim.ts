/** How a NodePool and its NodeClaims look. Pure. */
import type { KubeObjectDraft } from "../../kube/api.ts";
import { NODE_CLAIMS, NODE_POOLS, apiVersionOf } from "../../kube/resources.ts";
import { numericHash } from "../controllers/template-hash.ts";
import type { NodePoolView } from "../controllers/views.ts";
import {
  ARCH,
  CAPACITY_TYPE,
  INSTANCE_TYPE,
  NODE_POOL_HASH,
  NODE_POOL_HASH_VERSION,
  NODE_POOL_LABEL,
  OS,
  TERMINATION_FINALIZER,
  ZONE,
} from "./labels.ts";
import type { CapacityType, Offering } from "./offerings.ts";
import type { ProvisionerOptions } from "./options.ts";

const HASH_VERSION = "v3";

/** One NodePool for each kind of capacity, as people make them with Karpenter. */
export function nodePoolDraft(options: ProvisionerOptions, capacityType: CapacityType): KubeObjectDraft {
  return {
    apiVersion: apiVersionOf(NODE_POOLS),
    kind: "NodePool",
    metadata: { name: poolNameOf(options, capacityType) },
    spec: {
      disruption: {
        budgets: [{ nodes: "10%" }],
        consolidateAfter: `${Math.ceil(options.consolidateAfterMs / 1000)}s`,
        consolidationPolicy: "WhenEmpty",
      },
      limits: { nodes: String(capacityType === "spot" ? options.maxNodes : options.maxOnDemand) },
      weight: capacityType === "spot" ? 10 : 1,
      template: {
        metadata: { labels: {} },
        spec: {
          expireAfter: "Never",
          nodeClassRef: { group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default" },
          requirements: [
            { key: CAPACITY_TYPE, operator: "In", values: [capacityType] },
            { key: ARCH, operator: "In", values: ["amd64"] },
            { key: OS, operator: "In", values: ["linux"] },
            { key: ZONE, operator: "In", values: [...options.zones] },
            { key: INSTANCE_TYPE, operator: "In", values: [options.instanceType, ...Object.keys(options.moreTypes)] },
          ],
        },
      },
    },
  };
}

export function poolNameOf({ pool }: ProvisionerOptions, capacityType: CapacityType): string {
  return capacityType === "spot" ? pool : capacityType;
}

/** What a NodeClaim carries a copy of: a difference means drift. */
export function poolHash(pool: NodePoolView): string {
  return String(numericHash(pool.spec.template));
}

/** The provisioner has chosen the offering; the cloud obeys, or has none. */
export function nodeClaimDraft(pool: NodePoolView, { zone, instanceType, capacityType }: Offering): KubeObjectDraft {
  const { metadata, spec } = pool.spec.template;
  const nodeClassRef = spec.nodeClassRef ?? { group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default" };
  return {
    apiVersion: apiVersionOf(NODE_CLAIMS),
    kind: "NodeClaim",
    metadata: {
      generateName: `${pool.metadata.name}-`,
      labels: {
        ...metadata?.labels,
        [NODE_POOL_LABEL]: pool.metadata.name,
        [CAPACITY_TYPE]: capacityType,
        [`${nodeClassRef.group}/${nodeClassRef.kind.toLowerCase()}`]: nodeClassRef.name,
      },
      annotations: { ...metadata?.annotations, [NODE_POOL_HASH]: poolHash(pool), [NODE_POOL_HASH_VERSION]: HASH_VERSION },
      finalizers: [TERMINATION_FINALIZER],
      ownerReferences: [
        {
          apiVersion: apiVersionOf(NODE_POOLS),
          kind: "NodePool",
          name: pool.metadata.name,
          uid: pool.metadata.uid,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      expireAfter: spec.expireAfter ?? "Never",
      nodeClassRef,
      requirements: [
        ...(spec.requirements ?? []).filter(({ key }) => key !== ZONE && key !== INSTANCE_TYPE),
        { key: NODE_POOL_LABEL, operator: "In", values: [pool.metadata.name] },
        { key: ZONE, operator: "In", values: [zone] },
        { key: INSTANCE_TYPE, operator: "In", values: [instanceType] },
      ],
      ...(spec.terminationGracePeriod === undefined ? {} : { terminationGracePeriod: spec.terminationGracePeriod }),
      ...(spec.taints === undefined ? {} : { taints: spec.taints }),
    },
  };
}

export function poolHashAnnotations(pool: NodePoolView): Readonly<Record<string, string>> {
  return { [NODE_POOL_HASH]: poolHash(pool), [NODE_POOL_HASH_VERSION]: HASH_VERSION };
}
