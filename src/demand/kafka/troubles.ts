/** What the client threw, as trouble: by the broker's own error codes, wherever in the chain they are. */
import { RelevoError } from "../../kernel/errors.ts";
import { demandError } from "../errors.ts";
import type { GroupOnTopic } from "./lag.ts";

const REFUSED: readonly string[] = [
  "SASL_AUTHENTICATION_FAILED",
  "UNSUPPORTED_SASL_MECHANISM",
  "ILLEGAL_SASL_STATE",
  "TOPIC_AUTHORIZATION_FAILED",
  "GROUP_AUTHORIZATION_FAILED",
  "CLUSTER_AUTHORIZATION_FAILED",
  "PLT_KFK_AUTHENTICATION",
];
const GONE: readonly string[] = ["UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION", "INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND"];
/** One partition has no leader, or none that knows itself: the others answer. */
const IN_PART: readonly string[] = [
  "LEADER_NOT_AVAILABLE",
  "NOT_LEADER_OR_FOLLOWER",
  "REPLICA_NOT_AVAILABLE",
  "OFFSET_NOT_AVAILABLE",
  "UNKNOWN_LEADER_EPOCH",
  "FENCED_LEADER_EPOCH",
  "LISTENER_NOT_FOUND",
  "KAFKA_STORAGE_ERROR",
  "UNSTABLE_OFFSET_COMMIT",
];
const DEPTH_MAX = 8;

export function troubleOf(error: unknown, who: string, { topic, group }: GroupOnTopic): Error {
  if (error instanceof RelevoError) return error;
  const faults = flatten(error);
  const codes = new Set(faults.flatMap(({ apiId, code }) => [apiId, code].filter((each) => typeof each === "string")));
  const has = (some: readonly string[]): string | undefined => some.find((each) => codes.has(each));
  // The deepest says what happened; those above only that it happened.
  const found = (has([...REFUSED, ...GONE, ...IN_PART]) ?? faults.at(-1)?.message ?? String(error)).slice(0, 300);
  if (has(REFUSED))
    return demandError("credentials_refused", `${who} refuses to tell of topic ${topic} and group ${group}`, { found, cause: error });
  if (has(GONE) || faults.some(({ message }) => message.startsWith("Unknown topic")))
    return demandError("missing", `${who} has no topic ${topic} or no group ${group}`, { found, cause: error });
  if (has(IN_PART)) return demandError("partial", `a partition of topic ${topic} has no leader that answers`, { found, cause: error });
  return demandError("unreachable", `${who} cannot be reached`, { found, cause: error });
}

interface Fault {
  readonly message: string;
  readonly apiId?: unknown;
  readonly code?: unknown;
}

function flatten(error: unknown, depth = 0): readonly Fault[] {
  if (!(error instanceof Error) || depth > DEPTH_MAX) return [];
  const inner: readonly unknown[] = [...(error instanceof AggregateError ? (error.errors as unknown[]) : []), error.cause];
  return [error as Fault, ...inner.flatMap((each) => flatten(each, depth + 1))];
}
