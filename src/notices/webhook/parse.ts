/**
 * Notices of anybody who has no format of its own here: our JSON form, or the same as the data of a CloudEvent (1.0), structured or binary. docs/notices.md
 * has the forms.
 *
 * 1. A machine is named by its providerID or by its EC2 instance id; anything else is refused with its field, so that a name is never taken for a machine.
 * 2. `cancelled` takes back what was announced under the id that is its `subject`.
 */
import { z } from "zod";
import { instantSchema } from "../../kube/types.ts";
import { excerpt, NoticeError } from "../notice.ts";
import { machineIdFrom } from "../machine.ts";
import { parseNoticeBody, parseObject, parseWith } from "../parse-body.ts";
import type { Announcement, NoticeMessage, NoticeReason, NoticeSource, ParseContext } from "../source.ts";

export const WEBHOOK = "webhook";

/** What the words of our form mean. */
export const WEBHOOK_KINDS = {
  interruption: "spot_interruption",
  rebalance: "node_rebalance",
  maintenance: "scheduled_maintenance",
  going: "instance_state_change",
  cancelled: "withdrawn",
} as const satisfies Readonly<Record<string, NoticeReason>>;

/** A CloudEvent's type is this and a kind. */
export const CLOUD_EVENT_TYPE = "dev.relevo.notice.";

const MAX_MACHINES = 100;
const id = z.string().min(1).max(256);

const dataSchema = z.object({
  machines: z.array(z.string().max(1_024)).max(MAX_MACHINES).default([]),
  deadline: instantSchema.nullish(),
  subject: id.optional(),
  cluster: z.string().max(256).optional(),
});
const plainSchema = dataSchema.extend({ id, kind: z.string().min(1).max(256) });
const attributesSchema = z.object({
  specversion: z.literal("1.0", "CloudEvents 1.0 is understood"),
  id,
  source: z.string().min(1).max(512),
  type: z.string().min(1).max(256),
});

export const webhookSource: NoticeSource = {
  name: WEBHOOK,
  sender: "anybody",
  headers: ["content-type", "ce-specversion", "ce-id", "ce-source", "ce-type"],
  parse: (message, context) => [parseWebhook(message, context)],
};

/** Throws NoticeError and nothing else. */
export function parseWebhook(message: NoticeMessage, { receivedAt }: ParseContext): Announcement {
  const announcement = understand(message);
  // What goes now has no other deadline.
  return announcement.reason === "instance_state_change"
    ? { ...announcement, deadline: announcement.deadline ?? receivedAt }
    : announcement;
}

function understand({ body, headers }: NoticeMessage): Announcement {
  const message = parseNoticeBody(body);
  if (headers["ce-specversion"] !== undefined) return parseCloudEvent(attributesOf(headers), message, []);
  const isStructured = /^application\/cloudevents\+json\b/i.test(headers["content-type"] ?? "") || Object.hasOwn(message, "specversion");
  if (isStructured) return parseCloudEvent(message, dataOf(message), ["data"]);
  const { id: sentId, kind, ...data } = parseWith(plainSchema, message);
  return announce(kind, sentId, scopeOf(""), data, []);
}

function parseCloudEvent(attributes: unknown, data: unknown, path: readonly string[]): Announcement {
  const event = parseWith(attributesSchema, attributes);
  const kind = event.type.startsWith(CLOUD_EVENT_TYPE) ? event.type.slice(CLOUD_EVENT_TYPE.length) : event.type;
  const hasKind = event.type.startsWith(CLOUD_EVENT_TYPE);
  // Of a type that is not ours the data may be anything.
  if (!hasKind) return { dedupeKey: `${scopeOf(event.source)}${event.id}`, reason: "unknown_kind", machineIds: [], deadline: null };
  return announce(kind, event.id, scopeOf(event.source), parseWith(dataSchema, data, path), path);
}

/** The source without a space, and one: no source and id are written like another source and another id. Our own form has no source. */
const scopeOf = (source: string): string => `${source.replaceAll("%", "%25").replaceAll(" ", "%20")} `;

/** `scope` makes ids of several senders differ. */
function announce(kind: string, sentId: string, scope: string, data: z.output<typeof dataSchema>, path: readonly string[]): Announcement {
  const reason: NoticeReason = Object.hasOwn(WEBHOOK_KINDS, kind) ? WEBHOOK_KINDS[kind as keyof typeof WEBHOOK_KINDS] : "unknown_kind";
  const machineIds = data.machines.map((machine, index) => machineOf(machine, [...path, "machines", String(index)]));
  const field = (name: string): string => [...path, name].join(".");
  if (reason === "withdrawn" && data.subject === undefined)
    throw new NoticeError("notice_malformed", field("subject"), "says which notice is cancelled", { found: "nothing" });
  if (reason !== "withdrawn" && reason !== "unknown_kind" && machineIds.length === 0)
    throw new NoticeError("notice_malformed", field("machines"), "names at least one machine", { found: "[]" });
  return {
    dedupeKey: `${scope}${sentId}`,
    subject: `${scope}${data.subject ?? sentId}`,
    reason,
    machineIds,
    deadline: data.deadline ?? null,
    clusterHint: data.cluster ?? null,
  };
}

function machineOf(text: string, path: readonly string[]): string {
  const machine = machineIdFrom(text);
  if (machine !== undefined) return machine;
  throw new NoticeError("notice_malformed", path.join("."), "is no machine", {
    found: excerpt(text),
    allowed: "a providerID such as gce://project/zone/name, or an EC2 instance id; never the name of a node",
  });
}

/** Percent-encoded where the value is not plain ASCII, as the HTTP binding says. */
function attributesOf(headers: NoticeMessage["headers"]): Readonly<Record<string, string | undefined>> {
  const read = (name: string): string | undefined => {
    const value = headers[`ce-${name}`];
    try {
      return value === undefined ? undefined : decodeURIComponent(value);
    } catch {
      return value;
    }
  };
  return { specversion: read("specversion"), id: read("id"), source: read("source"), type: read("type") };
}

function dataOf(event: Readonly<Record<string, unknown>>): unknown {
  const encoded = event["data_base64"];
  return typeof encoded === "string" ? parseObject(Buffer.from(encoded, "base64").toString("utf8"), "data_base64") : event["data"];
}
