/** Times of the engine against the notice that a machine is given before it goes. */
import { formatDuration, parseDuration } from "../../../kernel/units.ts";
import type { RetryPolicy } from "../../../model/trino.ts";
import { fine, found, type Judgement, type PodPlan, settingOf } from "./facts.ts";

const CONFIG = "config.properties";
const UNSEEN = ["query.remote-task.max-error-duration", "exchange.max-error-duration"] as const;
const UNSEEN_UNLESS_SAID = "1m";
const GRACE_UNLESS_SAID = "2m";

/** The engine's way of writing: `10s`, `1.00m`, `500ms`. */
function timeOf(plan: PodPlan, name: string, otherwise: string): number {
  const said = settingOf(plan, CONFIG, name)?.replaceAll(" ", "") ?? otherwise;
  return parseDuration(said) ?? parseDuration(otherwise) ?? 0;
}

/** How long a worker that died goes unseen, of whichever plan it is longest. */
export function judgeErrorDurations(plans: readonly PodPlan[], noticeMs: number): Judgement {
  const times = plans.flatMap((plan) => UNSEEN.map((name) => ({ name, role: plan.role, ms: timeOf(plan, name, UNSEEN_UNLESS_SAID) })));
  const longest = times.toSorted((a, b) => b.ms - a.ms)[0];
  if (longest === undefined) return fine("there is no pod to be judged");
  const message = `a worker that dies goes unseen for ${formatDuration(longest.ms)} (${longest.name} of the ${longest.role})`;
  if (longest.ms < noticeMs) return fine(`${message}, less than the notice of ${formatDuration(noticeMs)}`);
  return found(
    "warning",
    `${message}, and a notice is ${formatDuration(noticeMs)}`,
    `set ${UNSEEN.join(" and ")} to less than ${formatDuration(noticeMs)} on every node, for instance 10s`,
  );
}

/** The grace is slept twice: before its tasks are waited for, and after. */
export function judgeGrace(plan: PodPlan, noticeMs: number, retryPolicy: RetryPolicy): Judgement {
  const grace = timeOf(plan, "shutdown.grace-period", GRACE_UNLESS_SAID);
  const least = 2 * grace;
  const pod = (plan.spec.terminationGracePeriodSeconds ?? 30) * 1000;
  const arithmetic = `2 × ${formatDuration(grace)} = ${formatDuration(least)}`;
  if (pod < least)
    return found(
      "refused",
      `a worker's shut-down takes at least ${arithmetic}, and its pod is killed after ${formatDuration(pod)}`,
      `set terminationGracePeriodSeconds to more than ${Math.ceil(least / 1000)}, or lower shutdown.grace-period`,
    );
  if (least < noticeMs) return fine(`${arithmetic}, less than the notice of ${formatDuration(noticeMs)}`);
  const after = retryPolicy === "TASK" ? "what runs is tried again elsewhere" : "what still runs is lost";
  return found(
    "warning",
    `${arithmetic} do not fit the notice of ${formatDuration(noticeMs)}: ${after}`,
    "lower shutdown.grace-period, so that twice of it and the longest task fit",
  );
}
