/**
 * Whether what a source answered can be believed. Pure, and the only place where that is judged: adapters hand numbers on as they got them.
 *
 * 1. What cannot be believed is trouble with a code, never a zero and never a guess (K11).
 * 2. Age is told by the source's own clock, where it has one; else by how long we have seen the same time of the value. Our wall clock is not asked: theirs may be
 *    minutes off.
 * 3. Another flow's backlog is refused, however well it looks (K1).
 */
import { RelevoError } from "../kernel/errors.ts";
import { formatDuration } from "../kernel/units.ts";
import { DEMAND_TROUBLES, type DemandReading, type DemandTrouble } from "../model/demand.ts";

/** More work than this is a mistake of the source. */
export const MAX_BACKLOG = 1e12;

export interface Trouble {
  readonly code: DemandTrouble;
  readonly detail: string;
}

/** The last reading that was valid, with the monotonic time at which its `valueAt` was first seen. */
export interface Believed {
  readonly reading: DemandReading;
  readonly firstSeen: number;
}

export interface Expected {
  /** The pool's own flow; null: it names none, so nothing can be compared. */
  readonly flow: string | null;
  readonly maxAgeMs: number;
  readonly former: Believed | null;
  /** Monotonic, of the answer. */
  readonly at: number;
}

export type Judgement = { readonly valid: Believed } | { readonly trouble: Trouble };

export function judgeReading(reading: DemandReading, expected: Expected): Judgement {
  const { former } = expected;
  const trouble =
    troubleOfNumber("backlog", reading.backlog, former?.reading.backlog ?? null) ??
    (reading.inFlight === null ? lostInFlight(former) : troubleOfNumber("in flight", reading.inFlight, former?.reading.inFlight ?? null)) ??
    (reading.oldestAgeMs === null ? null : troubleOfNumber("oldest age", reading.oldestAgeMs, former?.reading.oldestAgeMs ?? null)) ??
    troubleOfFlow(reading.flow, expected.flow) ??
    troubleOfTime(reading);
  if (trouble !== null) return { trouble };
  const isSameValue = reading.valueAt !== null && reading.valueAt === former?.reading.valueAt;
  const believed = { reading, firstSeen: isSameValue ? former.firstSeen : expected.at };
  const age = ageOf(believed, expected.at);
  if (age > expected.maxAgeMs)
    return {
      trouble: {
        code: "stale",
        detail: `its value is ${formatDuration(Math.round(age))} old, ${formatDuration(expected.maxAgeMs)} are allowed`,
      },
    };
  return { valid: believed };
}

/** The values of an answer have types at run time that no compiler has seen. */
function troubleOfNumber(what: string, value: unknown, former: number | null): Trouble | null {
  if (typeof value !== "number" && former !== null)
    return { code: "type_changed", detail: `${what} was a number and is ${describe(value)}` };
  if (typeof value !== "number" || Number.isNaN(value)) return { code: "not_a_number", detail: `${what} is ${describe(value)}` };
  if (!Number.isFinite(value) || value > MAX_BACKLOG) return { code: "infinite", detail: `${what} is ${value}` };
  return value < 0 ? { code: "negative", detail: `${what} is ${value}` } : null;
}

/** Without what is taken the sum would fall at once, although nothing was done. */
function lostInFlight(former: Believed | null): Trouble | null {
  const known = former?.reading.inFlight ?? null;
  return known === null ? null : { code: "type_changed", detail: `in flight was a number (${known}) and is not told any more` };
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? `the text ${JSON.stringify(value.slice(0, 100))}` : `of type ${typeof value}`;
}

function troubleOfFlow(found: unknown, expected: string | null): Trouble | null {
  if (expected === null || found === expected) return null;
  return { code: "other_flow", detail: `it is the backlog of ${String(found).slice(0, 200)}, and the workers take ${expected}` };
}

function troubleOfTime({ valueAt, sourceNow }: DemandReading): Trouble | null {
  for (const [what, time] of [
    ["the time of its value", valueAt],
    ["its clock", sourceNow],
  ] as const)
    if (time !== null && !Number.isFinite(time)) return { code: "not_a_number", detail: `${what} is ${describe(time)}` };
  return null;
}

/** In ms; 0 where the value is as of the answer. A value from the future is as new as one of now. */
function ageOf({ reading: { valueAt, sourceNow }, firstSeen }: Believed, at: number): number {
  if (valueAt === null) return 0;
  return Math.max(sourceNow === null ? 0 : sourceNow - valueAt, at - firstSeen);
}

const RETRY: DemandTrouble = "unreachable";

/** What an adapter threw, as trouble. */
export function troubleOfError(error: unknown): Trouble {
  if (!(error instanceof RelevoError))
    return { code: RETRY, detail: error instanceof Error ? error.message.slice(0, 300) : String(error).slice(0, 300) };
  const code = DEMAND_TROUBLES.find((each) => error.code === `demand_${each}`) ?? RETRY;
  const found = error.found === undefined ? "" : `: ${typeof error.found === "string" ? error.found : JSON.stringify(error.found)}`;
  return { code, detail: `${error.message.replace(/\.$/, "")}${found}`.slice(0, 500) };
}

/** Whether somebody answered at all: then the next look costs nothing more than any other. */
export function isAnswer({ code }: Trouble): boolean {
  return code !== "unreachable" && code !== "credentials_refused" && code !== "not_available";
}
