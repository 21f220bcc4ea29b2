/** What is told of a pool whose size follows its demand: one answer for status, metrics, `relevo explain` and the API. */
import { type SignalSpec, CONNECTION_OF } from "../model/demand.ts";
import type { Hold } from "../plan/decision.ts";
import { GROWTH_HOLDS } from "../plan/scaling/saturation.ts";
import { sizeOf } from "../plan/scaling/size-of.ts";
import type { PoolScale } from "../server/scale-state.ts";
import type { Pass } from "./pass.ts";
import { proofOf } from "./proof.ts";

/** Undefined: its size does not follow anything. */
export function scaleReportOf({ snapshot, plan }: Pass): PoolScale | undefined {
  const { spec, demand, slots, scale, proven } = snapshot;
  if (spec.scale === undefined) return undefined;
  const desired = sizeOf(snapshot);
  const change = plan.decisions.find(({ kind }) => kind === "set_desired");
  return {
    signal: describeSignal(spec.scale.signal),
    flow: spec.worker.flow ?? null,
    target: spec.scale.target,
    demand: demand ?? { reading: null, readAt: null, trouble: null },
    slots,
    desired,
    floor: spec.size.floor,
    max: spec.size.max,
    pausedAt: spec.scale.pausedAt ?? null,
    proven,
    proof: proofOf(snapshot, desired),
    wanted: plan.recommendation,
    changedAt: scale?.changedAt ?? null,
    next: change?.kind === "set_desired" ? { size: change.to, reason: change.reason } : null,
    holds: plan.holds.filter(isOfScale).map(({ reason }) => reason),
    isGrowthHeld: plan.holds.some(({ subject, reason }) => subject === "" && GROWTH_HOLDS.has(reason.code)),
  };
}

function isOfScale({ subject, reason }: Hold): boolean {
  return subject === "" && reason.code.startsWith("scale_");
}

/** `queue captures through main`. */
function describeSignal(signal: SignalSpec): string {
  const through = "connection" in signal ? ` through ${signal.connection}` : "";
  const family = CONNECTION_OF[signal.kind];
  return `${signal.kind} ${namesOf(signal).join("/")}${family === null ? "" : through}`;
}

function namesOf(signal: SignalSpec): readonly string[] {
  switch (signal.kind) {
    case "queue":
    case "sqs":
      return [signal.queue];
    case "redis-list":
      return [signal.list];
    case "redis-stream":
      return [signal.stream, signal.group];
    case "kafka":
      return [signal.topic, signal.group];
    case "pubsub":
      return [signal.project, signal.subscription];
    case "external-metric":
      return [signal.metric];
    case "trino":
      return ["queries"];
    case "postgresql":
    case "prometheus":
      return ["query"];
    default:
      return signal satisfies never;
  }
}
