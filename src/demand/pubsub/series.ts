/** What Cloud Monitoring's `timeSeries.list` answers about one subscription (pure). */
import { z } from "zod";
import { type Instant, parseInstant } from "../../kernel/clock.ts";
import { demandError } from "../errors.ts";

export interface Subscription {
  readonly project: string;
  readonly subscription: string;
}

export interface Point {
  readonly value: number;
  readonly at: Instant;
  /** Of whom the series says that it is. */
  readonly of: Subscription;
}

const pointSchema = z.object({
  interval: z.object({ endTime: z.string() }),
  value: z.object({ int64Value: z.unknown().optional(), doubleValue: z.unknown().optional() }),
});
const answerSchema = z.object({
  timeSeries: z
    .array(
      z.object({
        resource: z.object({ labels: z.object({ project_id: z.string(), subscription_id: z.string() }) }),
        points: z.array(pointSchema),
      }),
    )
    .optional(),
  executionErrors: z.array(z.object({ message: z.string().optional() })).optional(),
  /** Regions that did not answer. */
  unreachable: z.array(z.string()).optional(),
});

/** The newest point, whatever their order; null: there is none. Throws `demand_partial`, `demand_type_changed`, `demand_not_a_number`. */
export function newestPoint(body: unknown, what: string): Point | null {
  const answer = answerSchema.safeParse(body);
  if (!answer.success) throw demandError("type_changed", `the answer about ${what} is no list of time series`, { found: body });
  const { timeSeries = [], executionErrors = [], unreachable = [] } = answer.data;
  const fault = executionErrors[0]?.message ?? unreachable[0];
  if (executionErrors.length + unreachable.length > 0)
    throw demandError("partial", `Cloud Monitoring answered ${what} in part`, { found: fault });
  if (timeSeries.length > 1)
    throw demandError("partial", `there are ${timeSeries.length} series of ${what}, and only one can be the backlog`, {
      found: timeSeries.slice(0, 3).map(({ resource }) => resource.labels),
    });
  const [series] = timeSeries;
  if (series === undefined) return null;
  const { project_id: project, subscription_id: subscription } = series.resource.labels;
  const points = series.points.map(({ interval, value }) => ({ at: timeOf(interval.endTime, what), value }));
  const newest = points.toSorted((a, b) => b.at - a.at)[0];
  if (newest === undefined) return null;
  return { at: newest.at, value: numberOf(newest.value, what), of: { project, subscription } };
}

function timeOf(text: string, what: string): Instant {
  const at = parseInstant(text);
  if (at === undefined) throw demandError("type_changed", `a time of ${what} is none`, { found: text });
  return at;
}

/** 64-bit integers are text in Google's JSON, as are NaN and the infinities. */
function numberOf({ int64Value, doubleValue }: { readonly int64Value?: unknown; readonly doubleValue?: unknown }, what: string): number {
  if (typeof int64Value === "string" && /^-?\d+$/.test(int64Value)) return Number(int64Value);
  if (typeof doubleValue === "number") return doubleValue;
  if (doubleValue === "NaN") return Number.NaN;
  if (doubleValue === "Infinity" || doubleValue === "-Infinity") return Number(doubleValue);
  throw demandError("not_a_number", `the value of ${what} is no number`, { found: int64Value ?? doubleValue ?? null });
}
