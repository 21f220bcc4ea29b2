/**
 * Backlog by an instant query to Prometheus, or to what speaks its API (Thanos, VictoriaMetrics, Mimir).
 *
 * 1. One sample, with the label that says whose backlog it is. None is no zero; several are no sum.
 * 2. Its time is that of the sample below it where the query is a plain selector (`timestamp()` says it), else that of the evaluation: a server that evaluates an
 *    expression knows no other.
 */
import type { Agent } from "undici";
import { z } from "zod";
import type { Instant } from "../../kernel/clock.ts";
import type { DemandReading, SignalOf } from "../../model/demand.ts";
import type { ConnectionOf } from "../connections.ts";
import { demandError } from "../errors.ts";
import { fetchJson } from "../http-json.ts";
import type { DemandAdapter } from "../port.ts";
import { sharedAgents } from "../shared-agents.ts";
import type { ClientLease } from "../shared-clients.ts";

type Spec = SignalOf<"prometheus">;
type PrometheusConnection = ConnectionOf<"prometheus">;

const SOCKETS_MAX = 8;

const agents = sharedAgents<PrometheusConnection>(SOCKETS_MAX);

export const prometheusAdapter: DemandAdapter<"prometheus"> = {
  kind: "prometheus",
  needs: {
    infrastructure: "Prometheus 2.x or 3.x, or a server with its HTTP API",
    permissions: ["GET on /api/v1/query"],
  },
  flowOf: () => null,
  open(spec, connection) {
    if (connection?.kind !== "prometheus") throw demandError("not_available", "a prometheus signal needs a connection of kind prometheus");
    const lease = agents.lease(connection);
    return {
      read: (signal) => readDemand(spec, connection, lease, signal),
      close: () => lease.release(),
    };
  },
};

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly at: Instant;
}

interface Evaluation {
  /** Undefined: no sample. */
  readonly sample: Sample | undefined;
  readonly date: Instant | null;
}

async function readDemand(
  spec: Spec,
  connection: PrometheusConnection,
  lease: ClientLease<Agent>,
  signal: AbortSignal,
): Promise<DemandReading> {
  const { query, ageQuery, flowLabel } = spec;
  const dispatcher = await lease.client();
  const evaluate = (what: string, promql: string): Promise<Evaluation> => evaluateQuery(what, promql, connection, dispatcher, signal);
  const { sample, date } = await evaluate("query", query);
  if (sample === undefined) throw demandError("missing", "the query has no sample", { found: query });
  const flow = sample.labels[flowLabel];
  if (flow === undefined || flow === "")
    throw demandError("missing", `the sample has no label ${flowLabel}: it does not say whose backlog it is`, {
      found: sample.labels,
      todo: `keep it in the aggregation: sum by (${flowLabel}) (…)`,
    });
  const [taken, oldest] = await Promise.all([
    // A line of its own: the query may end in a comment.
    evaluate("time of the sample", `timestamp(\n${query}\n)`),
    ageQuery === undefined ? undefined : evaluate("ageQuery", ageQuery),
  ]);
  return {
    backlog: sample.value,
    inFlight: null,
    oldestAgeMs: oldest?.sample === undefined ? null : ageOf(oldest.sample, flowLabel, flow),
    flow,
    valueAt: taken.sample !== undefined && Number.isFinite(taken.sample.value) ? taken.sample.value * 1_000 : sample.at,
    sourceNow: date,
  };
}

/** Of an aggregation without labels it is believed; one that names another flow is that flow's. */
function ageOf({ labels, value }: Sample, flowLabel: string, flow: string): number {
  const said = labels[flowLabel];
  if (said !== undefined && said !== flow) throw demandError("other_flow", `the ageQuery is about ${said}, the query about ${flow}`);
  return value * 1_000;
}

const answerSchema = z.object({
  status: z.literal("success"),
  data: z.object({ resultType: z.string(), result: z.unknown() }),
  warnings: z.array(z.string()).nullish(),
  /** Of VictoriaMetrics. */
  isPartial: z.boolean().nullish(),
});
const vectorSchema = z.array(z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.unknown()]) }));

async function evaluateQuery(
  what: string,
  promql: string,
  { name, url, bearerToken }: PrometheusConnection,
  dispatcher: Agent,
  signal: AbortSignal,
): Promise<Evaluation> {
  const who = `Prometheus (connection ${name})`;
  const address = new URL(`${url.replace(/\/+$/, "")}/api/v1/query`);
  address.searchParams.set("query", promql);
  const headers: Record<string, string> = bearerToken === undefined ? {} : { authorization: `Bearer ${bearerToken}` };
  const { body, date } = await fetchJson({ url: address, who, headers, dispatcher }, signal);
  const answer = answerSchema.safeParse(body);
  if (!answer.success) throw demandError("type_changed", `the answer of ${who} is not one of its query API`, { found: body });
  const { data, warnings, isPartial } = answer.data;
  const warning = warnings?.[0] ?? (isPartial === true ? "isPartial" : undefined);
  if (warning !== undefined) throw demandError("partial", `${who} answered in part`, { found: warning });
  const vector = data.resultType === "vector" ? vectorSchema.safeParse(data.result) : undefined;
  if (!vector?.success)
    throw demandError("type_changed", `the ${what} answers a ${data.resultType} where samples with a value each are needed`, {
      found: data.result,
      allowed: "an instant vector with one sample",
    });
  const [sample, ...others] = vector.data;
  if (others.length > 0)
    throw demandError("partial", `the ${what} answers ${vector.data.length} samples, and only one can be the backlog`, {
      found: vector.data.slice(0, 3).map(({ metric }) => metric),
      todo: "aggregate them: sum by (…) (…)",
    });
  if (sample === undefined) return { sample: undefined, date };
  const [at, value] = sample.value;
  return { sample: { labels: sample.metric, value: parseValue(value, what), at: at * 1_000 }, date };
}

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const INFINITE = /^([+-]?)Inf$/;

/** As Prometheus writes them: text, with `NaN`, `+Inf` and `-Inf`, which are handed on. */
function parseValue(value: unknown, what: string): number {
  if (typeof value === "string" && DECIMAL.test(value)) return Number(value);
  const infinite = typeof value === "string" ? INFINITE.exec(value) : null;
  if (infinite !== null) return infinite[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (value === "NaN") return Number.NaN;
  throw demandError("not_a_number", `the value of the ${what} is no number`, { found: value });
}
