/** Counters are fed from what was committed, so that they count what happened. */
import type { Metrics, ScaleGauges } from "../server/metrics.ts";
import type { Instant } from "../kernel/clock.ts";
import type { Phase } from "../model/phase.ts";
import type { EvacuationPlan, Evacuee } from "../plan/evacuation/types.ts";
import type { Change } from "../store/port.ts";
import type { Pass } from "./pass.ts";
import { sizeOf } from "../plan/scaling/size-of.ts";
import { servingCountOf } from "./scale-owner-report.ts";
import { scaleReportOf } from "./scale-report.ts";
import type { Journal } from "./journal.ts";

/** Before the journal is told: it forgets a step at its end. */
export function feedMetrics(metrics: Metrics, pool: string, changes: readonly Change[], journal: Journal): void {
  for (const change of changes) feed(metrics, pool, change, journal);
}

function feed(metrics: Metrics, pool: string, change: Change, journal: Journal): void {
  switch (change.kind) {
    case "record_evidence":
      return metrics.countEvidence(pool, change.evidence.reason, change.evidence.loss);
    case "move_instance":
      if (change.to === "failed") metrics.countCandidateFailure(pool, change.set?.failure ?? "unknown");
      if (change.to === "serving") metrics.countReplacement(pool);
      return;
    case "end_step":
      return metrics.countStep(journal.kindOf(change.step) ?? change.step.split("/")[0] ?? "unknown", change.outcome);
    case "pass_writer":
      return metrics.countWriter(pool, change.to === null ? "nobody" : "process");
    case "count_loss":
      return metrics.countLoss(pool, change.loss, change.obligations, change.seal === "assumed");
    case "create_instance":
    case "take_standby":
    case "update_instance":
    case "renew_incarnation":
    case "set_trust":
    case "record_step":
    case "retry_step":
    case "set_reasons":
      return;
    case "set_desired":
      return metrics.countScaleChange(pool, change.to > change.from ? "up" : "down");
    default:
      change satisfies never;
  }
}

/** `begun` are those whose turn this schedule is: each is counted once. */
export function feedEvacuation(metrics: Metrics, { grants, prediction }: EvacuationPlan, begun: readonly Evacuee[]): void {
  const poolOf = new Map(begun.map(({ id, pool }) => [id, pool]));
  const counts = { go: 0, wait: 0, unsavable: 0 };
  for (const grant of grants) {
    counts[grant.kind] += 1;
    const pool = poolOf.get(grant.evacuee);
    const place = grant.kind === "unsavable" ? grant.late : grant;
    if (pool !== undefined && place !== null) metrics.countEvacuation(pool, grant.kind === "unsavable", place.breach);
  }
  metrics.setEvacuation(counts, prediction);
}

export function feedPass(metrics: Metrics, pass: Pass, now: Instant): void {
  const { snapshot, plan, at } = pass;
  const reasons: Record<string, number> = {};
  for (const { reason } of plan.holds) reasons[reason.code] = (reasons[reason.code] ?? 0) + 1;
  const phases: Partial<Record<Phase, number>> = {};
  for (const { record } of snapshot.instances) phases[record.phase] = (phases[record.phase] ?? 0) + 1;
  metrics.setPool(snapshot.pool, {
    phases,
    serving: servingCountOf(snapshot),
    desired: sizeOf(snapshot),
    floor: snapshot.spec.size.floor,
    max: snapshot.spec.size.max,
    frozen: snapshot.freeze !== null,
    heldSteps: snapshot.openSteps.filter(({ state }) => state === "held").length,
    reasons,
    scale: scaleGauges(pass),
  });
  metrics.setGatewayReplicas(
    snapshot.gateways.filter(({ silent }) => !silent).length,
    snapshot.gateways.filter(({ silent }) => silent).length,
  );
  metrics.passEnded(snapshot.pool, at, now - at);
}

function scaleGauges(pass: Pass): ScaleGauges | undefined {
  const scale = scaleReportOf(pass);
  if (scale === undefined) return undefined;
  const { reading, trouble } = scale.demand;
  return {
    backlog: reading?.backlog ?? null,
    inFlight: reading?.inFlight ?? null,
    oldestAgeMs: reading?.oldestAgeMs ?? null,
    trouble: trouble?.code ?? null,
    slots: scale.slots && { free: scale.slots.free, progressing: scale.slots.progressing, stuck: scale.slots.stuck },
    isHeld: scale.isGrowthHeld,
    proven: scale.proof === "proven_for_other" ? null : (scale.proven?.instances ?? null),
  };
}
