/** Helpers to read what metadata answered, by hand: the agent loads no schema library. */
import { type Instant, parseInstant } from "../kernel/clock.ts";

/** What metadata answered is not what it should be: one sentence. */
export class MetadataUnreadable extends Error {
  constructor(sentence: string) {
    super(sentence);
    this.name = "MetadataUnreadable";
  }
}

export function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new MetadataUnreadable(`no JSON: ${text.slice(0, 40)}`);
  }
}

export function readObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new MetadataUnreadable(`${what} is no JSON object`);
  return value as Readonly<Record<string, unknown>>;
}

export function readList(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new MetadataUnreadable(`${what} is no list`);
  return value;
}

/** At most 256 characters, and at least one. */
export function readText(value: unknown, what: string): string {
  if (typeof value !== "string" || value.length === 0 || value.length > 256) throw new MetadataUnreadable(`${what} is no text`);
  return value;
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

export function readInstant(value: unknown, what: string): Instant {
  const at = typeof value === "string" && RFC_3339.test(value) ? parseInstant(value) : undefined;
  if (at === undefined) throw new MetadataUnreadable(`${what} is no time`);
  return at;
}

const GMT = /^([A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** `21 Jan 2019 09:00:43 GMT`, with a day of the week before it or without; the day of one digit or two. */
export function parseGmt(value: unknown): Instant | undefined {
  return typeof value === "string" && GMT.test(value) ? parseInstant(value) : undefined;
}

export function readGmt(value: unknown, what: string): Instant {
  const at = parseGmt(value);
  if (at === undefined) throw new MetadataUnreadable(`${what} is no time`);
  return at;
}
