/** The numbers of all queues for Prometheus. Names of queues need no escape: see their form. */
import type { QueueCounts } from "../../sdk/queue-client.ts";

const STATES = ["waiting", "taken", "dead"] as const;
const OUTCOMES = ["done", "nothing", "failed", "reaped"] as const;

export function metricsOf(queues: readonly QueueCounts[]): string {
  const lines = [
    "# HELP relevo_queue_jobs Jobs in the queue by state.",
    "# TYPE relevo_queue_jobs gauge",
    ...queues.flatMap((counts) => STATES.map((state) => `relevo_queue_jobs{queue="${counts.queue}",state="${state}"} ${counts[state]}`)),
    "# HELP relevo_queue_jobs_completed_total Jobs that were completed, by outcome.",
    "# TYPE relevo_queue_jobs_completed_total counter",
    ...queues.flatMap((counts) =>
      OUTCOMES.map((outcome) => `relevo_queue_jobs_completed_total{queue="${counts.queue}",outcome="${outcome}"} ${counts[outcome]}`),
    ),
    "# HELP relevo_queue_oldest_age_seconds Age of the job that waits longest; 0 when none waits.",
    "# TYPE relevo_queue_oldest_age_seconds gauge",
    ...queues.map(({ queue, oldestAgeMs }) => `relevo_queue_oldest_age_seconds{queue="${queue}"} ${(oldestAgeMs ?? 0) / 1_000}`),
  ];
  return `${lines.join("\n")}\n`;
}
