/**
 * Where the children of a process have their temporary files, and how a later life of the process finds what an earlier one left: each process has a folder
 * that is named after it, each child one within that. The path of the child's folder stands in the environment of all that the child starts.
 */
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelevoError } from "../kernel/errors.ts";
import { hasProcessFiles, readFacts, readPids, readVariable, send } from "./process-tree.ts";

/** Paths of folders, the innermost child's first: a child may have children of its own that are bounded. */
export const CHILD_VARIABLE = "RELEVO_CHILD";
const SEPARATOR = ":";
/** One that forks at this moment has a child that was not seen. */
const MAX_ROUNDS = 10;

export interface Leftovers {
  readonly folders: number;
  readonly processes: number;
}

/** All workers of one machine may have one; those of different containers must not share it, because they do not see each other's processes. */
export function defaultRoot(): string {
  return join(tmpdir(), `relevo-children-${process.getuid?.() ?? 0}`);
}

/** A folder for one child; its path is the child's token. Throws `child_root_foreign` where somebody else could exchange it. */
export function newChildFolder(root: string): string {
  const own = join(root, lifeOf(process.pid));
  mkdirSync(own, { recursive: true, mode: 0o700 });
  refuseForeign(root);
  // Short, because programs put sockets into it, whose paths may have 107 characters: Chromium adds 46.
  return mkdtempSync(join(own, "c-"));
}

function refuseForeign(root: string): void {
  const stat = lstatSync(root);
  // A volume that was mounted for us is the administrator's.
  if (stat.isDirectory() && (process.getuid === undefined || [0, process.getuid()].includes(stat.uid))) return;
  throw new RelevoError("child_root_foreign", "The folder for children's files belongs to somebody else.", {
    found: root,
    todo: "give another one as `root`, or set TMPDIR",
  });
}

/** With all that is in it. What cannot be removed is left for the next life, and told by a false. */
export function removeChildFolder(root: string, folder: string): boolean {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 });
  } catch {
    return false;
  }
  try {
    rmdirSync(join(root, lifeOf(process.pid)));
  } catch {
    // Another child has its folder in it.
  }
  return true;
}

/** The value of CHILD_VARIABLE for a child. */
export function tokenFor(folder: string, inherited: string | undefined): string {
  return inherited === undefined || inherited === "" ? folder : `${folder}${SEPARATOR}${inherited}`;
}

export function carries(value: string, folder: string): boolean {
  return value.split(SEPARATOR).includes(folder);
}

/** Ends what processes that are gone left behind beneath this root: the trees of their children, and their files. */
export function endLeftoverChildren(root: string): Leftovers {
  let folders = 0;
  const processes = new Set<number>();
  for (const life of livesIn(root)) {
    if (isAlive(life)) continue;
    const path = join(root, life);
    for (let rounds = 0; rounds < MAX_ROUNDS; rounds++) {
      const found = endTreesOf(path);
      if (found.length === 0) break;
      for (const pid of found) processes.add(pid);
    }
    rmSync(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 });
    folders++;
  }
  return { folders, processes: processes.size };
}

function livesIn(root: string): readonly string[] {
  try {
    return readdirSync(root).filter((name) => /^\d+-\d+$/.test(name));
  } catch {
    return []; // nobody has had a child yet
  }
}

function endTreesOf(life: string): readonly number[] {
  return readPids().filter((pid) => {
    if (pid === process.pid) return false;
    const value = readVariable(pid, CHILD_VARIABLE);
    const isOwn = value?.split(SEPARATOR).some((folder) => folder.startsWith(`${life}/`)) ?? false;
    return isOwn && readFacts(pid)?.isZombie === false && send(pid, "SIGKILL");
  });
}

/** `PID-START`: the number alone is given to another process some day. */
function lifeOf(pid: number): string {
  return `${pid}-${readFacts(pid)?.startedAt ?? 0}`;
}

function isAlive(life: string): boolean {
  const pid = Number.parseInt(life, 10);
  return hasProcessFiles() ? lifeOf(pid) === life && readFacts(pid)?.isZombie === false : send(pid, 0);
}
