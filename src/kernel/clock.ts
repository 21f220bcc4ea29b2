/**
 * Time comes through this port and no other way, so that the simulator can own it.
 */

/** A point in time: milliseconds since the Unix epoch. */
export type Instant = number;

/** A running timer; cancelling twice is harmless. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time. May jump; use it for stamps and for deadlines that others gave. */
  now(): Instant;
  /** Milliseconds on a clock that never goes back; for measuring and for time-outs. */
  monotonic(): number;
  /** Calls `fire` once after `delayMs`. A timer never keeps the process alive. */
  after(delayMs: number, fire: () => void): Timer;
  /** Settles after `delayMs`; rejects with the signal's reason when it aborts. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** The pure part of it is used; taken at import, because a simulator puts a guard around the global one. */
const PureDate = Date;

/** Of one moment many things are written down. */
let last: { readonly at: Instant; readonly text: string } = { at: 0, text: "1970-01-01T00:00:00.000Z" };

/** RFC 3339 with milliseconds, in UTC. */
export function formatInstant(at: Instant): string {
  if (at !== last.at) last = { at, text: new PureDate(at).toISOString() };
  return last.text;
}

/** Parses RFC 3339 (and what JavaScript's Date takes besides); undefined when it is no time. */
export function parseInstant(text: string): Instant | undefined {
  const at = PureDate.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
