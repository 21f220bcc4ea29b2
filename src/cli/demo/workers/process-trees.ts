/** Memory and processor time of the processes of a pool, read from /proc: theirs, their children's, and those of a child whose parent has gone. */
import { readdirSync, readFileSync } from "node:fs";

/** In the environment of each container, and so of all that it starts; its value is the name of the pool. */
export const POOL_MARK = "DEMO_POOL";

/** A tick of the kernel's accounting, as it is on every Linux that Node runs on. */
const TICK_MS = 10;

export interface Usage {
  readonly processes: number;
  readonly rssMb: number;
  /** Since each of them began; only a difference between two looks says something. */
  readonly cpuMs: ReadonlyMap<number, number>;
}

export function usageOf(pool: string): Usage {
  const mark = `${POOL_MARK}=${pool}\0`;
  const processes = readProcesses();
  const members = new Set<number>();
  for (const { pid } of processes) if (`\0${environOf(pid)}\0`.includes(`\0${mark}`)) members.add(pid);
  // One that was given an environment of its own is found by its parent.
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const { pid, parent } of processes) if (members.has(parent)) members.add(pid);
  }
  const found = processes.filter(({ pid }) => members.has(pid));
  return {
    processes: found.length,
    rssMb: found.reduce((sum, { rssKb }) => sum + rssKb, 0) / 1024,
    cpuMs: new Map(found.map(({ pid, cpuMs }) => [pid, cpuMs])),
  };
}

/** Of the second look, without what ran before the first. */
export function cpuBetween(first: Usage, second: Usage): number {
  let sum = 0;
  for (const [pid, ms] of second.cpuMs) sum += ms - (first.cpuMs.get(pid) ?? 0);
  return sum;
}

interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly rssKb: number;
  readonly cpuMs: number;
}

function readProcesses(): readonly ProcessFacts[] {
  const found: ProcessFacts[] = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const facts = factsOf(entry);
    if (facts !== undefined) found.push(facts);
  }
  return found;
}

function factsOf(entry: string): ProcessFacts | undefined {
  try {
    const status = readFileSync(`/proc/${entry}/status`, "latin1");
    const stat = readFileSync(`/proc/${entry}/stat`, "latin1");
    // A program's name may hold blanks and brackets: what is counted stands behind the last one.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return {
      pid: Number(entry),
      parent: Number(fields[1]),
      rssKb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0),
      cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
    };
  } catch {
    return undefined; // it ended meanwhile
  }
}

function environOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return ""; // another user's, or it ended meanwhile
  }
}
