/**
 * AWS EventBridge events about EC2 machines, exactly as AWS sends them, also when SNS or an escaped `Message` is around them.
 *
 * 1. `resources` is never read: samples put the zone in the region's place of an ARN, and one event type sends a text instead of a list.
 * 2. An event of another source or type is well-formed and unknown: kept, never acted upon. The same goes for a state that EC2 does not have.
 */
import { z } from "zod";
import { type Instant, parseInstant } from "../../kernel/clock.ts";
import { instantSchema } from "../../kube/types.ts";
import { lifecycleSchema, meaningOfLifecycleAction } from "../autoscaling/parse.ts";
import { ec2InstanceId, parseNoticeBody, parseWith } from "../parse-body.ts";
import type { Announcement, NoticeMessage, NoticeReason, NoticeSource, ParseContext } from "../source.ts";
import { unwrap } from "./envelope.ts";

export const EVENTBRIDGE = "eventbridge";

/** EC2's promise for stop and terminate; hibernation begins at once. */
const SPOT_LEAD_MS = 120_000;

const envelopeSchema = z.object({
  id: z.string().min(1).max(256),
  "detail-type": z.string().min(1).max(256),
  source: z.string().min(1).max(256),
  account: z.string().max(64).default(""),
  time: instantSchema,
  region: z.string().max(64).default(""),
  detail: z.record(z.string(), z.unknown()),
});
type Envelope = z.output<typeof envelopeSchema>;

interface Meaning {
  readonly reason: NoticeReason | null;
  readonly machineIds: readonly string[];
  readonly deadline: Instant | null;
  readonly subject?: string;
  readonly clusterHint?: string;
}

interface Context {
  readonly envelope: Envelope;
  readonly receivedAt: Instant;
  readonly leadMs: number;
}

type Reader = (detail: unknown, context: Context) => Meaning;

export const eventBridgeSource: NoticeSource = {
  name: EVENTBRIDGE,
  sender: "anybody",
  parse: (message, context) => [parseEventBridge(message, context)],
};

/** Throws NoticeError and nothing else. */
export function parseEventBridge(
  { body }: Pick<NoticeMessage, "body">,
  { receivedAt, spotLeadMs = SPOT_LEAD_MS }: ParseContext,
): Announcement {
  const envelope = parseWith(envelopeSchema, unwrap(parseNoticeBody(body)));
  const hint = [envelope.account, envelope.region].filter((part) => part !== "").join("/") || null;
  const read = readerOf(envelope);
  if (read === undefined) return { dedupeKey: envelope.id, reason: "unknown_kind", machineIds: [], deadline: null, clusterHint: hint };
  return { dedupeKey: envelope.id, clusterHint: hint, ...read(envelope.detail, { envelope, receivedAt, leadMs: spotLeadMs }) };
}

// ---- what each type of event means

const READERS: Readonly<Record<string, Readonly<Record<string, Reader>>>> = {
  "aws.ec2": {
    "EC2 Spot Instance Interruption Warning": readInterruption,
    "EC2 Capacity Reservation Instance Interruption Warning": readInterruption,
    "EC2 Instance Rebalance Recommendation": readRebalance,
    "EC2 Instance State-change Notification": readStateChange,
  },
  "aws.health": { "AWS Health Event": readHealth },
  "aws.autoscaling": {
    "EC2 Instance-terminate Lifecycle Action": readLifecycle,
    "EC2 Instance-launch Lifecycle Action": readLifecycle,
  },
};

function readerOf({ source, "detail-type": detailType }: Envelope): Reader | undefined {
  const ofSource = Object.hasOwn(READERS, source) ? READERS[source] : undefined;
  return ofSource !== undefined && Object.hasOwn(ofSource, detailType) ? ofSource[detailType] : undefined;
}

const interruptionSchema = z.object({
  "instance-id": ec2InstanceId,
  "instance-action": z.string().min(1),
  /** Only capacity reservations say it. */
  "instance-termination-time": instantSchema.optional(),
});

/** A sender whose clock is ahead must not make the deadline later than it can be. */
function readInterruption(value: unknown, { envelope, receivedAt, leadMs }: Context): Meaning {
  const detail = parseWith(interruptionSchema, value, ["detail"]);
  const from = Math.min(envelope.time, receivedAt);
  const atMost = detail["instance-action"].toLowerCase() === "hibernate" ? from : from + leadMs;
  const said = detail["instance-termination-time"];
  return {
    reason: "spot_interruption",
    machineIds: [detail["instance-id"]],
    deadline: said === undefined ? atMost : Math.min(said, atMost),
  };
}

function readRebalance(value: unknown): Meaning {
  const detail = parseWith(z.object({ "instance-id": ec2InstanceId }), value, ["detail"]);
  return { reason: "node_rebalance", machineIds: [detail["instance-id"]], deadline: null };
}

const GOING = new Set(["stopping", "stopped", "shutting-down", "terminated"]);
const STAYING = new Set(["pending", "running"]);

/** These states have no lead: the machine is going at the moment of the event. */
function readStateChange(value: unknown, { envelope, receivedAt }: Context): Meaning {
  const detail = parseWith(z.object({ "instance-id": ec2InstanceId, state: z.string() }), value, ["detail"]);
  const machineIds = [detail["instance-id"]];
  const state = detail.state.trim().toLowerCase();
  if (GOING.has(state)) return { reason: "instance_state_change", machineIds, deadline: Math.min(envelope.time, receivedAt) };
  return { reason: STAYING.has(state) ? null : "unknown_kind", machineIds, deadline: null };
}

/** RFC 1123 as AWS Health writes it: `Thu, 27 Aug 2026 13:19:03 GMT`; RFC 3339 is taken too. */
const healthTime = z
  .string()
  .regex(
    /^([A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2}))$/,
    "a time such as Thu, 27 Aug 2026 13:19:03 GMT",
  )
  .transform((text, context) => {
    const at = parseInstant(text);
    if (at === undefined) context.addIssue({ code: "custom", message: "no such time", input: text });
    return at ?? z.NEVER;
  });

const healthSchema = z.object({
  eventArn: z.string().max(512).optional(),
  service: z.string(),
  eventTypeCategory: z.string(),
  statusCode: z.string().optional(),
  affectedEntities: z.array(z.object({ entityValue: z.string(), status: z.string().optional() })).default([]),
});
const scheduledSchema = z.object({ startTime: healthTime });

/** One event may name several machines, and things that are no machines. An event that is closed takes back what was said of it. */
function readHealth(value: unknown): Meaning {
  const detail = parseWith(healthSchema, value, ["detail"]);
  const isClosed = detail.statusCode?.toLowerCase() === "closed";
  // Of a closed event all machines are resolved, and all of them are meant.
  const machineIds = detail.affectedEntities
    .filter(({ entityValue, status }) => ec2InstanceId.safeParse(entityValue).success && (isClosed || status?.toUpperCase() !== "RESOLVED"))
    .map(({ entityValue }) => entityValue);
  const subject = detail.eventArn === undefined ? {} : { subject: detail.eventArn };
  if (detail.service !== "EC2" || detail.eventTypeCategory !== "scheduledChange") return { reason: null, machineIds, deadline: null };
  if (isClosed) return { reason: detail.eventArn === undefined ? null : "withdrawn", machineIds, deadline: null, ...subject };
  return {
    reason: "scheduled_maintenance",
    machineIds,
    deadline: parseWith(scheduledSchema, value, ["detail"]).startTime,
    ...subject,
  };
}

function readLifecycle(value: unknown): Meaning {
  return meaningOfLifecycleAction(parseWith(lifecycleSchema, value, ["detail"]));
}
