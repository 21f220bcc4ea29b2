/** Why a pool or an instance does what it does: what the planner would decide right now, what holds, and what was written down. */
import type { Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { PodLosses } from "../observe/pod-losses.ts";
import type { Explanation, InstanceState } from "../server/control-plane.ts";
import type { Controller } from "./controller.ts";
import { explainScale, type ScaleDeskParts } from "./scale-desk.ts";

export interface ExplainParts extends ScaleDeskParts {
  readonly controller: Pick<Controller, "planNow">;
  /** Absent: nobody counts them. */
  readonly podLosses?: Pick<PodLosses, "of"> | undefined;
}

export interface ExplainSubject {
  readonly subject: string;
  /** Undefined: there is neither a pool nor an instance of this name. */
  readonly pool: string | undefined;
  readonly instance: InstanceState | undefined;
}

/** Throws `subject_not_found`. */
export async function explain(parts: ExplainParts, { subject, pool, instance }: ExplainSubject): Promise<Explanation> {
  const { store, controller } = parts;
  if (pool === undefined) {
    throw new RelevoError("subject_not_found", `there is no pool and no instance ${subject}`, {
      found: subject,
      allowed: "a pool as namespace/name, or an instance id",
      todo: "see relevo get pools and relevo get instances",
    });
  }
  const pass = await controller.planNow(pool);
  const rows = await store.readPool(pool);
  const since = new Map((rows?.reasons ?? []).map((each) => [`${each.subject} ${each.reason.code}`, each.since]));
  const concerns = (id: string) => instance === undefined || id === instance.record.id;
  const decided = (pass?.plan.decisions ?? []).flatMap((decision) =>
    "instance" in decision && concerns(decision.instance)
      ? [{ subject: decision.instance, reason: decision.reason, since: null as Instant | null }]
      : [],
  );
  const held = (pass?.plan.holds ?? [])
    .filter((hold) => concerns(hold.subject))
    .map(({ subject: of, reason }) => ({ subject: of, reason, since: since.get(`${of} ${reason.code}`) ?? null }));
  return {
    kind: instance ? "instance" : "pool",
    subject,
    pool,
    at: pass?.at ?? parts.clock.now(),
    reasons: [...decided, ...held],
    scale: instance ? null : await explainScale(parts, pool, pass),
    podLosses: instance ? null : (parts.podLosses?.of(pool) ?? null),
    instance: instance ?? null,
    evidence: (await store.listEvidence(pool, 100)).filter((evidence) => concerns(evidence.instance)).slice(0, 20),
    steps: (await store.listSteps(pool, 200)).filter((step) => instance === undefined || step.instance === instance.record.id).slice(0, 20),
  };
}
