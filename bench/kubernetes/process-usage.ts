/** What a process of this machine has used, by the kernel. Linux only. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const TICKS_PER_S = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

export interface Usage {
  readonly cpuS: number;
  readonly rssMiB: number;
}

export function usageOf(pid: number): Usage {
  // The name, in parentheses, may hold blanks; utime and stime are the 14th and 15th field.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  const rss = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return { cpuS: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S, rssMiB: Math.round(Number(rss) / 1024) };
}

/** The smallest bucket of a Prometheus histogram that holds the share of what was observed between two looks; null: nothing was, or none does. */
export function quantileBetween(before: string, after: string, name: string, share: number): number | null {
  const at = (text: string) => {
    const sums = new Map<number, number>();
    for (const [, le = "", count = ""] of text.matchAll(new RegExp(`^${name}_bucket\\{[^}]*le="([^"]+)"[^}]*\\} (\\S+)$`, "gm"))) {
      const bound = le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
      sums.set(bound, (sums.get(bound) ?? 0) + Number(count));
    }
    return sums;
  };
  const [first, last] = [at(before), at(after)];
  const counts = [...last].map(([bound, count]) => [bound, count - (first.get(bound) ?? 0)] as const).toSorted(([a], [b]) => a - b);
  const total = counts.at(-1)?.[1] ?? 0;
  const found = counts.find(([, count]) => total > 0 && count >= share * total);
  return found === undefined || found[0] === Number.POSITIVE_INFINITY ? null : found[0];
}
