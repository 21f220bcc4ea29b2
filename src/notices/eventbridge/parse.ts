/**
 * AWS EventBridge events about EC2 machines, exactly as AWS sends them.
 *
 * `resources` is never read: samples put the zone in the region's place of an ARN, and one event type sends a text instead of a list.
 */
import { z } from "zod";
import { type Instant, parseInstant } from "../../kernel/clock.ts";
import type { EvidenceReason } from "../../model/evidence.ts";
import { instantSchema } from "../../kube/types.ts";
import { excerpt, type Notice, NoticeError, parseNoticeBody, type Reception } from "../notice.ts";

export const EVENTBRIDGE = "eventbridge";

export interface EventBridgeOptions {
  /** Between a spot interruption warning and the end of the machine. AWS: 120,000 ms. */
  readonly leadMs?: number;
}

/** EC2's promise for stop and terminate; hibernation begins at once. */
const SPOT_LEAD_MS = 120_000;

const machineId = z.string().regex(/^i-[0-9A-Za-z-]{1,64}$/, "an instance id such as i-0123456789abcdef0");

const envelopeSchema = z.object({
  id: z.string().min(1).max(256),
  "detail-type": z.string().min(1),
  source: z.string().min(1),
  account: z.string().default(""),
  time: instantSchema,
  region: z.string().default(""),
  detail: z.record(z.string(), z.unknown()),
});
type Envelope = z.output<typeof envelopeSchema>;

interface Meaning {
  readonly reason: EvidenceReason | null;
  readonly machineIds: readonly string[];
  readonly deadline: Instant | null;
  readonly hint?: string;
}

interface Context {
  readonly envelope: Envelope;
  readonly receivedAt: Instant;
  readonly leadMs: number;
}

type Reader = (detail: unknown, context: Context) => Meaning;

/** Throws NoticeError and nothing else. */
export function parseEventBridge(body: string, reception: Reception, { leadMs = SPOT_LEAD_MS }: EventBridgeOptions = {}): Notice {
  const envelope = parseWith(envelopeSchema, parseNoticeBody(body), []);
  const meaning = readerOf(envelope)(envelope.detail, { envelope, receivedAt: reception.receivedAt, leadMs });
  return {
    ...reception,
    source: EVENTBRIDGE,
    dedupeKey: envelope.id,
    reason: meaning.reason,
    machineIds: [...new Set(meaning.machineIds)].toSorted(),
    clusterHint: meaning.hint ?? ([envelope.account, envelope.region].filter((part) => part !== "").join("/") || null),
    deadline: meaning.deadline,
    body,
  };
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
  "aws.autoscaling": { "EC2 Instance-terminate Lifecycle Action": readTermination, "EC2 Instance-launch Lifecycle Action": readLaunch },
};

function readerOf({ source, "detail-type": detailType }: Envelope): Reader {
  const ofSource = lookUp(READERS, source, "source");
  return lookUp(ofSource, detailType, "detail-type");
}

function lookUp<T>(table: Readonly<Record<string, T>>, key: string, path: string): T {
  const found = Object.hasOwn(table, key) ? table[key] : undefined;
  if (found === undefined)
    throw new NoticeError("notice_malformed", path, "is not known", { found: excerpt(key), allowed: Object.keys(table).join(", ") });
  return found;
}

const interruptionSchema = z.object({
  "instance-id": machineId,
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
  const detail = parseWith(z.object({ "instance-id": machineId }), value, ["detail"]);
  return { reason: "node_rebalance", machineIds: [detail["instance-id"]], deadline: null };
}

const GOING = new Set(["stopping", "stopped", "shutting-down", "terminated"]);

/** These states have no lead: the machine is going at the moment of the event. */
function readStateChange(value: unknown, { envelope, receivedAt }: Context): Meaning {
  const detail = parseWith(z.object({ "instance-id": machineId, state: z.string().min(1) }), value, ["detail"]);
  const machineIds = [detail["instance-id"]];
  if (!GOING.has(detail.state.toLowerCase())) return { reason: null, machineIds, deadline: null };
  return { reason: "instance_state_change", machineIds, deadline: Math.min(envelope.time, receivedAt) };
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
  service: z.string(),
  eventTypeCategory: z.string(),
  statusCode: z.string().optional(),
  affectedEntities: z.array(z.object({ entityValue: z.string(), status: z.string().optional() })).default([]),
});
const scheduledSchema = z.object({ startTime: healthTime });

/** One event may name several machines, and things that are no machines. */
function readHealth(value: unknown): Meaning {
  const detail = parseWith(healthSchema, value, ["detail"]);
  const going = detail.affectedEntities.filter(
    ({ entityValue, status }) => machineId.safeParse(entityValue).success && status?.toUpperCase() !== "RESOLVED",
  );
  const machineIds = going.map(({ entityValue }) => entityValue);
  const isScheduled =
    detail.service === "EC2" && detail.eventTypeCategory === "scheduledChange" && detail.statusCode?.toLowerCase() !== "closed";
  if (!isScheduled) return { reason: null, machineIds, deadline: null };
  return { reason: "scheduled_maintenance", machineIds, deadline: parseWith(scheduledSchema, value, ["detail"]).startTime };
}

const lifecycleSchema = z.object({ EC2InstanceId: machineId, AutoScalingGroupName: z.string().min(1) });

/** How long the hook waits is not in the event, so there is an end and it is not known. */
function readTermination(value: unknown): Meaning {
  const detail = parseWith(lifecycleSchema, value, ["detail"]);
  return { reason: "instance_state_change", machineIds: [detail.EC2InstanceId], deadline: null, hint: detail.AutoScalingGroupName };
}

function readLaunch(value: unknown): Meaning {
  const detail = parseWith(lifecycleSchema, value, ["detail"]);
  return { reason: null, machineIds: [detail.EC2InstanceId], deadline: null, hint: detail.AutoScalingGroupName };
}

// ---- parsing

function parseWith<S extends z.ZodType>(schema: S, value: unknown, prefix: readonly string[]): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.path ?? [];
  throw new NoticeError("notice_malformed", [...prefix, ...path].map(String).join("."), issue?.message ?? "is not valid", {
    found: excerpt(valueAt(value, path)),
  });
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null && Object.hasOwn(at, key) ? (at as Record<PropertyKey, unknown>)[key] : undefined),
    value,
  );
}
