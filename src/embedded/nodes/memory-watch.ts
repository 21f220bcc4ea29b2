/**
 * Limits of containers' memory, as a kubelet has the kernel keep them: the resident memory of all processes of a container above its limit ends all of them. A
 * kernel counts a page that several share once and would sooner give up cached files; here each process counts in full, looked at four times a second.
 *
 * To whom a process belongs is found once, by the mark in its environment or by its parent, and remembered: a look then costs one read for each
 * process of a container that has a limit.
 */
import { readFileSync } from "node:fs";
import type { Clock } from "../../kernel/clock.ts";
import { containerOf, killProcess, readEnviron, readPids } from "./leftovers.ts";

const LOOK_EVERY_MS = 250;

export class MemoryWatch {
  readonly #clock: Clock;
  readonly #limits = new Map<string, number>();
  /** Whose each process is; null: nobody's that has a limit. */
  #owners = new Map<number, string | null>();
  readonly #killed = new Set<string>();
  #isLooking = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `pid` is the container's first process. */
  add(id: string, pid: number, limitBytes: number): void {
    if (process.platform !== "linux") return;
    this.#limits.set(id, limitBytes);
    this.#owners.set(pid, id);
    if (!this.#isLooking) this.#lookLater();
  }

  /** It has ended; true when it was ended here. */
  remove(id: string): boolean {
    this.#limits.delete(id);
    return this.#killed.delete(id);
  }

  #lookLater(): void {
    this.#isLooking = this.#limits.size > 0;
    if (!this.#isLooking) return this.#owners.clear();
    this.#clock.after(LOOK_EVERY_MS, () => {
      this.#look();
      this.#lookLater();
    });
  }

  #look(): void {
    const members = this.#members();
    for (const [id, limitBytes] of this.#limits) {
      const pids = members.get(id) ?? [];
      if (pids.reduce((sum, pid) => sum + residentBytes(pid), 0) <= limitBytes) continue;
      this.#killed.add(id);
      for (const pid of pids) killProcess(pid);
    }
  }

  #members(): ReadonlyMap<string, readonly number[]> {
    const members = new Map<string, number[]>();
    const owners = new Map<number, string | null>();
    for (const pid of readPids()) {
      const known = this.#owners.get(pid);
      const owner = known === undefined ? this.#ownerOf(pid, owners) : known;
      owners.set(pid, owner);
      if (owner === null) continue;
      const pids = members.get(owner);
      if (pids === undefined) members.set(owner, [pid]);
      else pids.push(pid);
    }
    // What is gone is forgotten: its number is given to another one day.
    this.#owners = owners;
    return members;
  }

  #ownerOf(pid: number, owners: ReadonlyMap<number, string | null>): string | null {
    const marked = containerOf(readEnviron(pid));
    if (marked !== undefined && this.#limits.has(marked)) return marked;
    // One that was given an environment of its own.
    return owners.get(parentOf(pid) ?? 0) ?? null;
  }
}

function residentBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) * 1024;
  } catch {
    return 0; // it ended meanwhile
  }
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // A program's name may hold blanks and brackets: what is counted stands behind the last one.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}
