/** SIGHUP: the terminal was closed. It asks a command to end as Ctrl-C does, but not one that `nohup` started. */
import { readFileSync } from "node:fs";

/** `closed` is told each time: the kernel and the shell both send it when a terminal is closed. */
export function onHangup(env: Readonly<Record<string, string | undefined>>, closed: () => void): void {
  process.on("SIGHUP", isUnderNohup(env, stdinFlags()) ? () => undefined : closed);
}

/**
 * Node takes SIGHUP back from `nohup`, so that it cannot be seen that it was ignored. What `nohup` leaves: its name, as the shell called it, or a standard input
 * that can only be written. `flags` are those of the open standard input; undefined: they cannot be read.
 */
export function isUnderNohup(env: Readonly<Record<string, string | undefined>>, flags: number | undefined): boolean {
  return /(^|\/)nohup$/.test(env["_"] ?? "") || (flags !== undefined && (flags & 3) === 1);
}

function stdinFlags(): number | undefined {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync("/proc/self/fdinfo/0", "utf8"))?.[1];
    return flags === undefined ? undefined : Number.parseInt(flags, 8);
  } catch {
    return undefined; // not Linux, or no standard input
  }
}
