/** The lines of `server/log.ts` without the library behind it, which would be a tenth of the agent's memory. The agent's fields hold no secret. */
import type { AgentLog } from "../../agent/agent.ts";
import { type Clock, formatInstant } from "../../kernel/clock.ts";
import { describeError } from "../../kernel/errors.ts";
import { LogSink } from "../../server/log-sink.ts";

const LEVELS = ["trace", "debug", "info", "warn", "error", "silent"];

export interface SmallLogOptions {
  readonly level: string;
  /** Which process speaks. */
  readonly name: string;
  readonly clock: Clock;
  /** Takes whole lines; standard output unless given. */
  readonly destination?: { write(line: string): void };
}

export function createSmallLog({ level, name, clock, destination = new LogSink({ clock, name }) }: SmallLogOptions): AgentLog {
  const least = LEVELS.indexOf(level);
  return (at, message, fields) => {
    if (LEVELS.indexOf(at) < least) return;
    const { error, ...rest } = fields;
    const told = error === undefined ? {} : { error: describeError(error) };
    destination.write(`${JSON.stringify({ level: at, time: formatInstant(clock.now()), name, ...rest, ...told, msg: message })}\n`);
  };
}
