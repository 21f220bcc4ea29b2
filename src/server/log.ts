/** Structured logs: one JSON object a line. Secrets never get in: what may hold one is replaced before it is written. */
import { type DestinationStream, type Logger, pino, stdSerializers } from "pino";
import { type Clock, formatInstant } from "../kernel/clock.ts";
import { LogSink } from "./log-sink.ts";

const SECRET_FIELDS = ["token", "secret", "password", "authorization", "cookie", "signature"];
const SECRET_HEADERS = ["authorization", "cookie", "x-relevo-signature", "x-relevo-secret", "relevo-token"];

const REDACTED = [
  ...SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
  ...SECRET_HEADERS.flatMap((header) => [`headers["${header}"]`, `*.headers["${header}"]`]),
];

export type { Logger } from "pino";

export interface LogOptions {
  /** `trace`, `debug`, `info`, `warn`, `error`, `fatal`, `silent`. */
  readonly level: string;
  /** Which process speaks: `controller`, `gateway`, … */
  readonly name: string;
  readonly clock: Clock;
  /** Standard output unless given. */
  readonly destination?: DestinationStream;
}

export function createLogger({ level, name, clock, destination }: LogOptions): Logger {
  const options = {
    level,
    name,
    base: { name },
    timestamp: () => `,"time":"${formatInstant(clock.now())}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    // Without it an error that is called so would be written without its sentence.
    serializers: { error: stdSerializers.err },
    redact: { paths: REDACTED, censor: "[redacted]" },
  };
  return pino(options, destination ?? new LogSink({ clock, name }));
}
