/** What else this machine does: a latency means little without it. */
import { loadavg } from "node:os";

/** Of the last minute. */
export function loadAverage(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10;
}

/** What a bench does meanwhile, on stderr. */
export function say(bench: string, text: string): void {
  process.stderr.write(`${bench}: ${text} (load average ${loadAverage()})\n`);
}
