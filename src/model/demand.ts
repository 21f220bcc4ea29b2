/**
 * Demand: how much work waits for a pool, and where that is read. A Pool names a *connection*, which its operator configured, and what to look at through it;
 * it holds no address and no secret, so that who may write Pools cannot make the controller call anybody or send a secret anywhere.
 */
import { z } from "zod";
import { rfc1123Label } from "./names.ts";
import type { Instant } from "../kernel/clock.ts";

const name = rfc1123Label;
const text = z.string().min(1).max(250);
const query = z.string().min(1).max(4_000);

/** What is looked at, by kind. `connection` is one of the same family: see `CONNECTION_OF`. */
export const signalSchema = z.discriminatedUnion("kind", [
  /** The built-in queue. */
  z.strictObject({ kind: z.literal("queue"), connection: name, queue: text }),
  /** One row: `backlog`, and as far as it knows them `in_flight`, `oldest_age_seconds`, `flow`. Run in a read-only transaction. */
  z.strictObject({ kind: z.literal("postgresql"), connection: name, query }),
  /** `processing`: the list into which workers move what they take. */
  z.strictObject({ kind: z.literal("redis-list"), connection: name, list: text, processing: text.optional() }),
  z.strictObject({ kind: z.literal("redis-stream"), connection: name, stream: text, group: text }),
  z.strictObject({ kind: z.literal("kafka"), connection: name, topic: text, group: text }),
  z.strictObject({ kind: z.literal("sqs"), connection: name, queue: text }),
  z.strictObject({ kind: z.literal("pubsub"), connection: name, project: text, subscription: text }),
  /** An instant query with one sample. `flowLabel`: the label of the sample that says whose backlog it is. */
  z.strictObject({ kind: z.literal("prometheus"), connection: name, query, ageQuery: query.optional(), flowLabel: text }),
  /** The queries that a coordinator has; it says itself which environment it is of. */
  z.strictObject({ kind: z.literal("trino"), connection: name }),
  /** Of `external.metrics.k8s.io`, in the Pool's namespace. `flowLabel`: the metric label that says whose backlog it is; absent: the metric's name is the flow. */
  z.strictObject({
    kind: z.literal("external-metric"),
    metric: text,
    selector: z.record(z.string(), z.string()).default({}),
    flowLabel: text.optional(),
  }),
]);
export type SignalSpec = z.output<typeof signalSchema>;
export type SignalKind = SignalSpec["kind"];
export type SignalOf<K extends SignalKind> = Extract<SignalSpec, { readonly kind: K }>;

/** Through which family of connection a signal is read; null: through the API server that the controller uses anyway. */
export const CONNECTION_OF = {
  queue: "queue",
  postgresql: "postgresql",
  "redis-list": "redis",
  "redis-stream": "redis",
  kafka: "kafka",
  sqs: "sqs",
  pubsub: "google-monitoring",
  prometheus: "prometheus",
  trino: "trino",
  "external-metric": null,
} as const satisfies Readonly<Record<SignalKind, string | null>>;

/** What one real look answered. Numbers are as the source gave them: whether they can be believed is judged in one place (`demand/validity.ts`). */
export interface DemandReading {
  /** Messages, rows or jobs that wait and that nobody has taken. */
  readonly backlog: number;
  /** Taken and not finished; null: the source does not say. */
  readonly inFlight: number | null;
  /** Of the oldest that waits; null: the source does not say, or none waits. */
  readonly oldestAgeMs: number | null;
  /**
   * Whose backlog it is: `queue/NAME`, `redis/LIST`, `redis/STREAM/GROUP`, `kafka/TOPIC/GROUP`, `sqs/QUEUE`, `pubsub/PROJECT/SUBSCRIPTION`,
   * `trino/ENVIRONMENT`; of a query or a metric what its `flow` column or label says. Compared with the pool's `worker.flow` (K1).
   */
  readonly flow: string;
  /** The source's own time of the value; null: as of the answer. */
  readonly valueAt: Instant | null;
  /** The source's own clock when it answered; null: it does not say. What is stale is told by it: its clock may be minutes off. */
  readonly sourceNow: Instant | null;
}

export const DEMAND_TROUBLES = [
  /** No answer, an error, a status that is none of success. */
  "unreachable",
  "credentials_refused",
  /** It answered, and there is no value. */
  "missing",
  /** Of several parts (partitions, samples) some did not answer. */
  "partial",
  /** Not a number: NaN, null, text. */
  "not_a_number",
  "infinite",
  "negative",
  "stale",
  /** It answers another type or shape than before. */
  "type_changed",
  /** It is another flow's (K1). */
  "other_flow",
  /** The connection is not configured, is of another kind, is not for this namespace, or does not exist at this site (K2). */
  "not_available",
] as const;
export type DemandTrouble = (typeof DEMAND_TROUBLES)[number];

/** What the planner sees of a pool's demand. */
export interface DemandView {
  /** The last one that was valid; null: none since this controller looks. */
  readonly reading: DemandReading | null;
  /** When it was read, by our clock. */
  readonly readAt: Instant | null;
  /** Why the newest look was not valid, and since when none was, of whatever kind the trouble; null: it was. */
  readonly trouble: { readonly code: DemandTrouble; readonly detail: string; readonly since: Instant } | null;
}
