/** Processes that went where no signal to a group reaches them: found by a mark in their environment, wherever they are. Only where there is /proc. */
import { readdirSync, readFileSync } from "node:fs";

/** In the environment of every helper and container; its value is the cluster's folder. */
export const CLUSTER_MARK = "RELEVO_CLUSTER_DIR";
/** In the environment of every container; its value is the container's id. */
export const CONTAINER_MARK = "RELEVO_CONTAINER_ID";

/** Those of an earlier life of this cluster; returns how many there were. */
export function endLeftovers(dir: string): number {
  return endMarked((environ) => environ.includes(`\0${CLUSTER_MARK}=${dir}\0`));
}

/** All of these containers, also what leads a session of its own: a real container takes all its processes with it. */
export function endProcessesOf(containerIds: ReadonlySet<string>): number {
  if (containerIds.size === 0) return 0;
  return endMarked((environ) => {
    const id = containerOf(environ);
    return id !== undefined && containerIds.has(id);
  });
}

/** Of a process's environment as `readEnviron` returns it. */
export function containerOf(environ: string): string | undefined {
  return environ.split(`\0${CONTAINER_MARK}=`, 2)[1]?.split("\0", 1)[0];
}

/** Begins and ends with a NUL; empty for another user's process, and for one that is gone. */
export function readEnviron(pid: number): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}\0`;
  } catch {
    return "";
  }
}

/** Pids of all processes; none where there is no /proc. */
export function readPids(): readonly number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((entry) => (/^\d+$/.test(entry) ? [Number(entry)] : []));
}

export function killProcess(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false; // another user's, or gone meanwhile
  }
}

function endMarked(isMarked: (environ: string) => boolean): number {
  return readPids().filter((pid) => pid !== process.pid && isMarked(readEnviron(pid)) && killProcess(pid)).length;
}
