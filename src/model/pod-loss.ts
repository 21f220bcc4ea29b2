/** Why a pod of an instance went, as the cluster shows it: counted apart, because each asks for something else (T9). */
export const POD_LOSS_CAUSES = [
  /** The kubelet made room on a node that ran out of memory. */
  "memory_pressure",
  /** A container used more memory than its own limit. */
  "out_of_memory",
  /** The machine was taken by its cloud. */
  "spot",
  /** Somebody evicted it, or its node was drained or replaced. */
  "voluntary",
  "other",
] as const;
export type PodLossCause = (typeof POD_LOSS_CAUSES)[number];

export type PodLossCounts = Readonly<Record<PodLossCause, number>>;

export const NO_POD_LOSSES: PodLossCounts = { memory_pressure: 0, out_of_memory: 0, spot: 0, voluntary: 0, other: 0 };

/** Why a pod finds no place: `limit` is one that somebody set, `resource` one that no node has left now. */
export interface PlacementTrouble {
  readonly kind: "quota" | "capacity" | "limit" | "resource";
  /** `SSD_TOTAL_GB`, `cpu`, `NodePool fleet`; never a sentence of others (D16). */
  readonly dimension: string;
}
