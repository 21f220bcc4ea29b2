import type { Instant } from "../../kernel/clock.ts";
import { demandError } from "../errors.ts";

/** The answer to TIME: seconds and microseconds. */
export function timeOf(answer: unknown): Instant {
  const [seconds, micros] = Array.isArray(answer) ? answer.map(Number) : [];
  if (seconds === undefined || micros === undefined || !Number.isFinite(seconds + micros))
    throw demandError("type_changed", "what answers is no Redis: its time cannot be read", { found: answer });
  return seconds * 1_000 + Math.floor(micros / 1_000);
}
