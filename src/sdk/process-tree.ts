/**
 * All that a child started, wherever it went, as /proc shows it. A process belongs to the tree by any of these:
 *
 * 1. it is of the session or the group that the child leads, 2. its parent belongs to the tree, 3. it was seen in the tree before, 4. its environment carries
 * the child's token: that finds one whose parent exited and that leads a session of its own.
 *
 * What began before the child is never of its tree. Without /proc (macOS) there is only the group.
 */
import { readdirSync, readFileSync } from "node:fs";

export type TreeSignal = "SIGTERM" | "SIGKILL";

export interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** In ticks since the machine began: with the pid it tells a process from a later one of the same number. */
  readonly startedAt: number;
  readonly isZombie: boolean;
}

export function hasProcessFiles(): boolean {
  return process.platform === "linux";
}

export function readFacts(pid: number | "self"): ProcessFacts | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // A program's name may hold blanks and brackets: what is counted stands behind the last one.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return {
      pid: Number.parseInt(stat, 10),
      parent: Number(fields[1]),
      group: Number(fields[2]),
      session: Number(fields[3]),
      startedAt: Number(fields[19]),
      isZombie: fields[0] === "Z" || fields[0] === "X",
    };
  } catch {
    return undefined; // it ended meanwhile, or there is no /proc
  }
}

/** The value of a variable as the process got it at its start; undefined also for another user's process. */
export function readVariable(pid: number, name: string): string | undefined {
  try {
    const found = `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.split(`\0${name}=`)[1];
    return found?.split("\0", 1)[0];
  } catch {
    return undefined;
  }
}

export function readPids(): readonly number[] {
  return hasProcessFiles() ? readdirSync("/proc").flatMap((entry) => (/^\d+$/.test(entry) ? [Number(entry)] : [])) : [];
}

/** Resident memory in MB; 0 for one that is gone. */
export function rssMbOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** False when it is gone. */
export function send(pid: number, signal: TreeSignal | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    // On macOS a group of zombies is answered so.
    if ((error as NodeJS.ErrnoException).code === "EPERM") return signal !== 0;
    throw error;
  }
}

export interface TreeRoot {
  /** Of a child that leads its own session. */
  readonly pid: number;
  /** Is this value of the environment the tree's? */
  readonly variable: string;
  readonly isToken: (value: string) => boolean;
}

export class ProcessTree {
  readonly #root: TreeRoot;
  readonly #bornAt: number;
  /** pid → when it began. */
  #seen = new Map<number, number>();

  /** Right after the child was started. */
  constructor(root: TreeRoot) {
    this.#root = root;
    this.#bornAt = readFacts(root.pid)?.startedAt ?? Number.POSITIVE_INFINITY;
  }

  /** Those that live, the child among them. */
  members(): readonly number[] {
    const { pid: root } = this.#root;
    if (!hasProcessFiles()) return send(-root, 0) ? [root] : [];
    const all = readPids().flatMap((pid) => {
      const facts = pid === process.pid ? undefined : readFacts(pid);
      return facts === undefined || facts.startedAt < this.#bornAt ? [] : [facts];
    });
    const found = new Map<number, ProcessFacts>();
    for (const facts of all) if (this.#isOwn(facts)) found.set(facts.pid, facts);
    for (let before = -1; before !== found.size; ) {
      before = found.size;
      for (const facts of all) if (found.has(facts.parent)) found.set(facts.pid, facts);
    }
    this.#seen = new Map([...found.values()].map(({ pid, startedAt }) => [pid, startedAt]));
    return [...found.values()].flatMap(({ pid, isZombie }) => (isZombie ? [] : [pid]));
  }

  /** Returns whom it was sent to. */
  signal(signal: TreeSignal): readonly number[] {
    const members = this.members();
    // The group in one stroke first: a process that forks at this moment does not slip through.
    if (members.length > 0) send(-this.#root.pid, signal);
    for (const pid of members) send(pid, signal);
    return members;
  }

  rssMb(): number {
    return this.members().reduce((sum, pid) => sum + rssMbOf(pid), 0);
  }

  #isOwn({ pid, group, session, startedAt }: ProcessFacts): boolean {
    const { pid: root, variable, isToken } = this.#root;
    if (pid === root || session === root || group === root || this.#seen.get(pid) === startedAt) return true;
    const value = readVariable(pid, variable);
    return value !== undefined && isToken(value);
  }
}
