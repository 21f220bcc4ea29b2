/** All that a command may touch of the world outside; made in main.ts, faked in tests. */
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";

export interface CliContext {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Whether `out` is a terminal: colours depend on it. */
  readonly isTerminal: boolean;
  /** How wide the terminal is now, in characters; undefined where `out` is none. */
  readonly columns: () => number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Who is noted as the one that asked. */
  readonly user: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly fetch: typeof fetch;
  /** Whether a process of this machine lives. */
  readonly isAlive: (pid: number) => boolean;
  readonly readStdin: () => Promise<string>;
  /** Aborts when the user interrupts: what watches ends in good order. */
  readonly signal: AbortSignal;
}

export const OUTPUTS = ["table", "wide", "json", "yaml"] as const;
export type Output = (typeof OUTPUTS)[number];

/** The options of every command. */
export interface GlobalOptions {
  readonly server?: string;
  readonly output: Output;
  readonly namespace: string;
  readonly debug?: boolean;
}
