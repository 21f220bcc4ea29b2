export type Capacity = { readonly cpu: string; readonly memory: string; readonly pods: string };

/** How the provisioner and its cloud behave. Times are those of a laptop; Kubernetes' and the clouds' own stand beside them. */
export interface ProvisionerOptions {
  /** The NodePool's name. */
  readonly pool: string;
  readonly zones: readonly string[];
  readonly region: string;
  readonly account: string;
  /** Machines that exist from the start and, again and again, at least. */
  readonly minNodes: number;
  readonly maxNodes: number;
  /** From launch to a node that registers; the first machines boot at once. Clouds: 30–90 s. */
  readonly bootDelayMs: number;
  /** A machine whose node has not registered so long after its boot delay is given up. Karpenter: 15 min. */
  readonly registerWithinMs: number;
  readonly instanceType: string;
  readonly capacity: Capacity;
  /** Other machine types, by name; tried in this order where the first one has no capacity or does not do. */
  readonly moreTypes: Readonly<Record<string, Capacity>>;
  /** Machines on demand that may be there beside those of spot; with 0 none is offered. */
  readonly maxOnDemand: number;
  /** An offering that had no capacity is left out for so long. Karpenter: 3 min. */
  readonly unavailableForMs: number;
  /** Unschedulable pods are collected for this long. */
  readonly batchMs: number;
  /** Karpenter looks for nodes to disrupt this often. */
  readonly disruptionIntervalMs: number;
  /** A node without pods goes after this long, while more than `minNodes` are there or it is drifted or cordoned. */
  readonly consolidateAfterMs: number;
  /** A machine that was lost: its Node and NodeClaim go after this long. Karpenter: up to 2 min. */
  readonly vanishAfterMs: number;
  /** How often an eviction that was refused is tried again. */
  readonly drainRetryMs: number;
  /** Why the cloud launches no machine in a zone right now (no capacity, no quota); undefined: it does. */
  readonly refuses?: (zone: string) => string | undefined;
}

export const DEFAULT_PROVISIONER_OPTIONS: ProvisionerOptions = {
  pool: "spot",
  zones: ["zone-a", "zone-b"],
  region: "local-1",
  account: "000000000000",
  minNodes: 6,
  maxNodes: 20,
  bootDelayMs: 1_500,
  registerWithinMs: 60_000,
  instanceType: "local.xlarge",
  capacity: { cpu: "4", memory: "8Gi", pods: "110" },
  moreTypes: {},
  maxOnDemand: 0,
  unavailableForMs: 10_000,
  batchMs: 1_000,
  disruptionIntervalMs: 10_000,
  consolidateAfterMs: 30_000,
  vanishAfterMs: 15_000,
  drainRetryMs: 500,
};
