/** What a Pool of Trino clusters says beside what every Pool says, and the words that are Trino's own. */
import { z } from "zod";
import { someTime } from "./duration.ts";
import { sizingSchema } from "./sizing.ts";

/** As `retry-policy` and the session property `retry_policy` name it. */
export const RETRY_POLICIES = ["NONE", "QUERY", "TASK"] as const;
export type RetryPolicy = (typeof RETRY_POLICIES)[number];

/** Where an instance of this driver says who it is and how it is; a worker answers 404 there. */
export const COORDINATOR_PATH = "/v1/info/coordinator";

const pattern = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => isPattern(text), "must be a regular expression");

function isPattern(text: string): boolean {
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}

/** Which statements a pool takes, of all pools of driver `trino` under one host. */
export const routingSchema = z.strictObject({
  /** Asked for by the header `X-Trino-Routing-Group`; a pool without rules and without a group takes the rest. */
  group: z
    .string()
    .regex(/^[A-Za-z0-9][-_.A-Za-z0-9]{0,62}$/, "letters, digits, dots, dashes and underscores, at most 63 characters")
    .optional(),
  /** Whole values of `X-Trino-User` and `X-Trino-Source`, as regular expressions; all that are given must match. */
  user: pattern.optional(),
  source: pattern.optional(),
});
export type Routing = z.output<typeof routingSchema>;

export const trinoSchema = z.strictObject({
  /** As whom Relevo asks, probes and drains. It must read `system.runtime`, and on workers write system information. */
  user: z.string().min(1).max(128).default("relevo"),
  /** What the clusters are configured with. Nothing relies on it before it is proven to be effective (I24). */
  retryPolicy: z.enum(RETRY_POLICIES).default("NONE"),
  /** The engine's `query.client.timeout`: a client that does not poll for so long has given its query up. */
  clientTimeout: someTime.prefault("5m"),
  /** The engine's `transaction.idle-timeout`: only the engine ends a transaction that was left open. */
  transactionTimeout: someTime.prefault("5m"),
  routing: routingSchema.prefault({}),
  /** What the preflight counts with. */
  sizing: sizingSchema.prefault({}),
});
export type TrinoPolicy = z.output<typeof trinoSchema>;

/**
 * Which process a cluster's coordinator is: its node id, and the coordinator id that it gave itself at its start. The latter ends the id of each of its queries, so
 * that whoever sees a query id knows whose it is.
 */
export function bootIdOf(nodeId: string, coordinatorId: string): string {
  return `${nodeId}/${coordinatorId}`;
}

/** Of a boot id as above; null where there is none. */
export function coordinatorIdOf(bootId: string | null): string | null {
  const at = bootId?.lastIndexOf("/") ?? -1;
  return bootId === null || at < 0 ? null : bootId.slice(at + 1);
}

/** `20261201_044100_00001_ab12c`: date, time, number, coordinator id. */
const QUERY_ID = /^\d{8}_\d{6}_\d{5,}_([a-z0-9]{5})$/;

/** Whose query it is; undefined when it is no query id. */
export function coordinatorOfQuery(queryId: string): string | undefined {
  return QUERY_ID.exec(queryId)?.[1];
}

/** Gauges under `/metrics` of a coordinator. */
export const QUEUED_QUERIES = "trino_execution_name_QueryManager_QueuedQueries";
export const RUNNING_QUERIES = "trino_execution_name_QueryManager_RunningQueries";
/** Without the coordinator. */
export const ACTIVE_WORKERS = "trino_node_name_CoordinatorNodeManager_ActiveWorkerCount";
