/**
 * What the controller tells the gateway, and what the gateway tells back. One numbered generation per route, raised in the transaction that changes a
 * phase. Sent as one JSON object a line over `GET /gateway/v1/stream?replica=ID` (controller → gateway) and `POST /gateway/v1/reports`. With
 * `&predecessor=ID` a replica says whose place it takes: a process that its own parent saw end, so that nothing of it is waited for.
 */
import { z } from "zod";
import { EPOCH_PATTERN, type Epoch } from "../kernel/epoch.ts";
import { routingSchema } from "./trino.ts";
import { WRITER_EPOCH_HEADER } from "./writer.ts";

const epochSchema = z
  .string()
  .regex(EPOCH_PATTERN)
  .transform((text) => text as Epoch);

export const PRIORITIES = ["critical", "standard", "batch"] as const;
export type Priority = (typeof PRIORITIES)[number];

export const memberSchema = z.object({
  instance: z.string(),
  /** Rises with every new process; obligations of an older one are void. */
  incarnation: z.int().min(1),
  /** Of the process that was admitted; null when it does not speak the instance protocol. */
  bootId: z.string().nullable(),
  host: z.string(),
  port: z.int().min(1).max(65535),
  /**
   * `serving` takes new work once the gateway's own check passed; `draining` only what is already tied to it; `suspect` the same, and it may serve again;
   * `sealed` nothing; `fenced` nothing, and what still comes from it is stale.
   */
  state: z.enum(["serving", "suspect", "draining", "sealed", "fenced"]),
  /** Until when a draining one may go on, in ms since the epoch; null: as long as its work lasts. */
  deadline: z.number().nullable(),
  /** Of an instance whose workload has a writer lease: which workload, and its tombstone: an answer that carries an older epoch is stale. */
  writer: z
    .object({ ordinal: z.int().min(0), minAccepted: epochSchema })
    .nullable()
    .default(null),
});
export type Member = z.infer<typeof memberSchema>;

export const routePolicySchema = z.object({
  hosts: z.array(z.string()),
  /** `idempotent`: also retried when an answer may have been lost, if the request is idempotent; `not-taken`: only what the instance provably never took. */
  retry: z.enum(["idempotent", "not-taken"]),
  /** How many tries in all. */
  tries: z.int().min(1).max(10),
  /** Until the head of the answer, for a request that may be tried again; the last try has no limit. */
  perTryTimeoutMs: z.int().min(1),
  queueLimit: z.int().min(0),
  queueWaitMs: z.int().min(0),
  priority: z.enum(PRIORITIES),
  /** A newly admitted member gets its full share only after this long. */
  slowStartMs: z.int().min(0),
  /** Requests in flight per member; the excess queues. */
  concurrency: z.int().min(1),
  /** The member's own health check, tried before it gets traffic and while it has none. */
  healthPath: z.string(),
  healthEveryMs: z.int().min(50),
  /** Of pools of Trino clusters; null for all others. */
  trino: z
    .object({
      routing: z.object(routingSchema.shape),
      /** How long a query, or a transaction, counts as open after its last answer. */
      clientTimeoutMs: z.int().min(1),
      transactionTimeoutMs: z.int().min(1),
    })
    .nullable()
    .default(null),
});
export type RoutePolicy = z.infer<typeof routePolicySchema>;

export const routeMembershipSchema = z.object({
  route: z.string(),
  /** Whose generation it is, `namespace/name`: generations count per pool, and a route's name may pass from one pool to another. */
  pool: z.string().optional(),
  generation: epochSchema,
  policy: routePolicySchema,
  members: z.array(memberSchema),
});
export type RouteMembership = z.infer<typeof routeMembershipSchema>;

/** A line of the stream. The first is always `membership`, with all routes that are known; later ones hold the routes that changed. */
export const controllerLineSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("membership"),
    /** True when `routes` are all there are: routes not named are gone. False while a controller that has just begun does not know them all. */
    complete: z.boolean(),
    routes: z.array(routeMembershipSchema),
    /** With `complete`: routes that are there too, and that another controller publishes. */
    names: z.array(z.string()).optional(),
    /** After this long without a line the gateway knows that it is cut off (and goes on with what it has). */
    ttlMs: z.int(),
  }),
  z.object({ type: z.literal("ping") }),
]);
export type ControllerLine = z.infer<typeof controllerLineSchema>;

export const memberReportSchema = z.object({
  instance: z.string(),
  incarnation: z.int(),
  /** Requests in flight, streams and upgraded connections included. */
  requests: z.int(),
  /** Of these, WebSockets and other upgraded connections. */
  upgraded: z.int(),
  /** Transactions that were opened here and neither closed nor expired. */
  sessions: z.int(),
  /** The gateway's own check of the member: `unknown` before its first answer. */
  health: z.enum(["unknown", "passing", "failing"]),
  /** Why it fails, as a code: `connection_refused`, `timeout`, `status_503`, … */
  healthReason: z.string().nullable(),
});
export type MemberReport = z.infer<typeof memberReportSchema>;

/** Counts since the gateway's start: `accepted = completed + inFlight + queued + rejected + cut`, at every moment (I14). */
export const routeCountsSchema = z.object({
  accepted: z.int(),
  completed: z.int(),
  inFlight: z.int(),
  queued: z.int(),
  rejected: z.int(),
  cut: z.int(),
  /** Not part of the sum: requests that needed more than one try. */
  retried: z.int(),
});
export type RouteCounts = z.infer<typeof routeCountsSchema>;

export const gatewayReportSchema = z.object({
  replica: z.string(),
  /** Rises by one with each report of a replica: an older one that arrives late is dropped. */
  sequence: z.int(),
  /** The last one of a replica that ends in good order: nothing of it is in flight any more. */
  leaving: z.boolean().optional(),
  routes: z.array(
    z.object({
      route: z.string(),
      /** The pool whose generation is applied, as its controller said; absent when that one did not say it. */
      pool: z.string().optional(),
      applied: epochSchema,
      members: z.array(memberReportSchema),
      counts: routeCountsSchema,
    }),
  ),
  /** Of routes that are gone there, the generation that was applied last: a witness while a pool is drained and made again. */
  ended: z.array(z.object({ route: z.string(), pool: z.string(), applied: epochSchema })).optional(),
});
export type GatewayReport = z.infer<typeof gatewayReportSchema>;

/** Headers that the gateway adds or reads; lower case. */
export const HEADERS = {
  /** On answers: which instance served it. */
  instance: "relevo-instance",
  /** On answers: how many times it was tried again before. */
  retried: "relevo-retried",
  /** On answers: how many ms it waited in the queue. */
  queued: "relevo-queued-ms",
  /** On explicit errors of the gateway itself: a code. */
  rejected: "relevo-rejected",
  /** On an instance's answer: `begin; ttl=10` opens a session that must stay on this instance, `end` closes it. Never passed on. */
  session: "relevo-session",
  /** On answers to the client after `begin`, and on its follow-ups: the signed token that names the instance. Also taken from the cookie of that name. */
  token: "relevo-token",
  /** On an instance's answer: the writer epoch under which it was made. Never passed on. */
  writerEpoch: WRITER_EPOCH_HEADER,
  /** On an instance's answer: it provably did not take the request, so it may be sent elsewhere. */
  notTaken: "relevo-not-taken",
} as const;
