/** What scales workers elsewhere, for the control: pure, as published. */

export interface CpuTarget {
  /** Of what the pods request, in per cent: 80 as a HorizontalPodAutoscaler has it by itself. */
  readonly utilization: number;
  readonly min: number;
  readonly max: number;
}

/** No change while the ratio is within this share of 1 (`--horizontal-pod-autoscaler-tolerance`). */
const TOLERANCE = 0.1;

/**
 * `ceil(current × usage / target)`, the algorithm of the HorizontalPodAutoscaler (kubernetes.io, "Horizontal Pod Autoscaling", Algorithm details). `usedPercent`: the
 * mean over the pods, of their requests.
 */
export function cpuReplicas(current: number, usedPercent: number, { utilization, min, max }: CpuTarget): number {
  const ratio = usedPercent / utilization;
  const wanted = Math.abs(ratio - 1) <= TOLERANCE ? current : Math.ceil(current * ratio);
  return Math.max(min, Math.min(max, wanted));
}

/** As an external metric of average value scales: so many that each has at most `target` of the work. */
export function backlogReplicas(work: number, target: number, { min, max }: { readonly min: number; readonly max: number }): number {
  return Math.max(min, Math.min(max, Math.ceil(work / target)));
}
