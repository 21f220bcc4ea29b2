/**
 * Azure's scheduled events, as a machine reads them. They are broadcast to the whole placement group or scale set: only those that name this machine among
 * their `Resources` are about it, whoever else they are about.
 */
import { type Instant } from "../../kernel/clock.ts";
import { MetadataUnreadable, parseGmt, readJson, readList, readObject, readText } from "../read-metadata.ts";
import type { Said } from "../standing.ts";

export const AZURE_PATH = "scheduledevents";

export const AZURE_TYPES = ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"] as const;
export type AzureType = (typeof AZURE_TYPES)[number];

export interface AzureEvent {
  readonly EventId: string;
  readonly EventType: string;
  readonly EventStatus: string;
  readonly Resources: readonly string[];
  /** RFC 1123; empty once it has started. */
  readonly NotBefore: string;
  /** -1: not known. */
  readonly DurationInSeconds: number;
}

export interface AzureDocument {
  /** Another number, another list. */
  readonly incarnation: number;
  readonly events: readonly AzureEvent[];
}

/** A pause that ends by itself sooner than anybody could move. */
export const SHORT_FREEZE_S = 30;

/** Throws MetadataUnreadable. */
export function readAzure(text: string): AzureDocument {
  const { DocumentIncarnation, Events } = readObject(readJson(text), "the document");
  if (typeof DocumentIncarnation !== "number") throw new MetadataUnreadable("DocumentIncarnation is no number");
  return { incarnation: DocumentIncarnation, events: readList(Events, "Events").map(readEvent) };
}

function readEvent(value: unknown): AzureEvent {
  const event = readObject(value, "an event");
  const notBefore = event["NotBefore"] ?? "";
  if (notBefore !== "" && parseGmt(notBefore) === undefined) throw new MetadataUnreadable("NotBefore is no time");
  const duration = event["DurationInSeconds"];
  return {
    EventId: readText(event["EventId"], "EventId"),
    EventType: readText(event["EventType"], "EventType"),
    EventStatus: readText(event["EventStatus"], "EventStatus"),
    Resources: readList(event["Resources"], "Resources").map((name) => readText(name, "a resource")),
    NotBefore: String(notBefore),
    DurationInSeconds: typeof duration === "number" && Number.isFinite(duration) ? duration : -1,
  };
}

/** Azure writes names in either case. */
export function concerns({ Resources }: Pick<AzureEvent, "Resources">, machineName: string): boolean {
  return Resources.some((name) => name.toLowerCase() === machineName.toLowerCase());
}

export function isShortFreeze({ EventType, DurationInSeconds }: Pick<AzureEvent, "EventType" | "DurationInSeconds">): boolean {
  return EventType === "Freeze" && DurationInSeconds >= 0 && DurationInSeconds <= SHORT_FREEZE_S;
}

/** What the document says of this machine. */
export function saidOfMachine({ events }: AzureDocument, machineName: string): readonly Said[] {
  return events
    .filter((event) => concerns(event, machineName))
    .map((event) => ({
      kind: AZURE_PATH,
      part: event.EventId,
      meaning: `${event.EventType} ${event.EventStatus}`,
      time: timeOf(event),
      document: event,
      isGoing: (AZURE_TYPES as readonly string[]).includes(event.EventType) && event.EventType !== "Freeze",
    }));
}

function timeOf({ NotBefore }: AzureEvent): Instant | null {
  return parseGmt(NotBefore) ?? null;
}

export interface ApprovalInput {
  readonly machineName: string;
  /** Other machines that let their own be started at any time. */
  readonly agreed: readonly string[];
  /** Nothing of ours runs on this machine, and that is known. */
  readonly isEmpty: boolean;
}

/**
 * The events that may start now rather than at their time: an approval is for all of an event's machines, so each must be this one or have agreed. One that
 * has started needs none.
 */
export function approvable({ events }: AzureDocument, { machineName, agreed, isEmpty }: ApprovalInput): readonly string[] {
  if (!isEmpty) return [];
  const mine = new Set([machineName, ...agreed].map((name) => name.toLowerCase()));
  return events
    .filter((event) => event.EventStatus === "Scheduled" && (AZURE_TYPES as readonly string[]).includes(event.EventType))
    .filter((event) => concerns(event, machineName) && event.Resources.every((name) => mine.has(name.toLowerCase())))
    .map(({ EventId }) => EventId);
}
