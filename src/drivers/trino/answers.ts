/** What the engine sends, parsed at the edge. Fields that nobody here reads are left alone. */
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";

export interface Column {
  readonly name: string;
  /** As Trino writes it: `varchar(1)`, `bigint`. */
  readonly type: string;
}

/** How a query failed, in the engine's words: it comes in an answer with status 200. */
export interface QueryError {
  /** `PAGE_TRANSPORT_TIMEOUT`. */
  readonly name: string;
  readonly code: number;
  /** `USER_ERROR`, `INTERNAL_ERROR`, `EXTERNAL`, `INSUFFICIENT_RESOURCES`. */
  readonly type: string;
  readonly message: string;
}

const errorSchema = z.object({
  message: z.string().nullish(),
  errorCode: z.int().default(0),
  errorName: z.string().default("UNKNOWN"),
  errorType: z.string().default("INTERNAL_ERROR"),
});

const resultsSchema = z.object({
  id: z.string(),
  infoUri: z.string().nullish(),
  nextUri: z.string().nullish(),
  columns: z.array(z.object({ name: z.string(), type: z.string() })).nullish(),
  data: z.array(z.array(z.unknown())).nullish(),
  stats: z.object({ state: z.string() }),
  error: errorSchema.nullish(),
  updateType: z.string().nullish(),
});

/** One answer of `/v1/statement`. */
export interface Results {
  readonly queryId: string;
  readonly infoUri: string;
  /** Absent: that was the last one. */
  readonly nextUri: string | undefined;
  readonly columns: readonly Column[] | undefined;
  readonly rows: readonly unknown[][];
  readonly state: string;
  readonly error: QueryError | undefined;
}

export function parseResults(text: string, where: string): Results {
  const sent = parseAs(text, resultsSchema, where);
  const { error } = sent;
  return {
    queryId: sent.id,
    infoUri: sent.infoUri ?? "",
    nextUri: sent.nextUri ?? undefined,
    columns: sent.columns?.map(({ name, type }) => ({ name, type })),
    rows: sent.data ?? [],
    state: sent.stats.state,
    error: error ? { name: error.errorName, code: error.errorCode, type: error.errorType, message: error.message ?? "" } : undefined,
  };
}

const infoSchema = z.object({
  nodeId: z.string().min(1),
  state: z.string().optional(),
  nodeVersion: z.object({ version: z.string() }),
  environment: z.string(),
  coordinator: z.boolean(),
  coordinatorId: z.string().nullish(),
  starting: z.boolean(),
  uptime: z.string().optional(),
});

/** `GET /v1/info`. */
export interface NodeInfo {
  readonly nodeId: string;
  readonly version: string;
  readonly environment: string;
  readonly isCoordinator: boolean;
  /** New with every process of a coordinator, and the end of its query ids; null of a worker. */
  readonly coordinatorId: string | null;
  readonly isStarting: boolean;
  /** `ACTIVE`, `DRAINING`, …; null: the server is too old to say. */
  readonly state: string | null;
  /** As Trino writes it: `57.66s`. */
  readonly uptime: string | null;
}

export function parseInfo(text: string, where: string): NodeInfo {
  const sent = parseAs(text, infoSchema, where);
  return {
    nodeId: sent.nodeId,
    version: sent.nodeVersion.version,
    environment: sent.environment,
    isCoordinator: sent.coordinator,
    coordinatorId: sent.coordinatorId ?? null,
    isStarting: sent.starting,
    state: sent.state ?? null,
    uptime: sent.uptime ?? null,
  };
}

/** Throws `instance_answer_invalid`. */
export function parseAs<T>(text: string, schema: z.ZodType<T>, where: string): T {
  let json: unknown;
  try {
    json = parseExactly(text);
  } catch (cause) {
    throw new RelevoError("instance_answer_invalid", `Trino at ${where} did not answer with JSON.`, { found: text.slice(0, 200), cause });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new RelevoError("instance_answer_invalid", `What listens at ${where} does not answer as Trino does.`, {
    found: `${issue?.path.join(".")}: ${issue?.message}`,
  });
}

const MAY_BE_UNSAFE = /\d{16}/;

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown;

/** A bigint of SQL may be larger than what a number holds: such a one becomes a bigint, lest a sum be compared with its neighbour. */
function parseExactly(text: string): unknown {
  if (!MAY_BE_UNSAFE.test(text)) return JSON.parse(text);
  const exact: Reviver = (_key, value, { source }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
  return JSON.parse(text, exact as (this: unknown, key: string, value: unknown) => unknown);
}
