/** Why an instance waits for a step that is under way. */
import { formatInstant } from "../kernel/clock.ts";
import { reason } from "../model/reasons.ts";
import type { StepRecord } from "../model/step.ts";
import type { Draft } from "./draft.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import { idOf, openStep } from "./view.ts";

export function holdForStep(pool: PoolSnapshot, instance: InstanceSnapshot, kind: string, draft: Draft): void {
  const step = openStep(pool, idOf(instance), kind);
  if (step === undefined) draft.hold(idOf(instance), reason("step_unknown", { step: kind }));
  else tellStep(idOf(instance), step, draft);
}

export function tellStep(instance: string, step: StepRecord, draft: Draft): void {
  if (step.state === "held") draft.hold(instance, reason("step_held", { step: step.id, why: step.outcome ?? "unknown" }));
  else if (step.attempts > 1)
    draft.hold(
      instance,
      reason("step_retry", {
        step: step.id,
        attempts: step.attempts,
        error: step.outcome ?? "?",
        until: formatInstant(step.notBefore),
      }),
    );
  else draft.hold(instance, reason("step_unknown", { step: step.id }));
}
