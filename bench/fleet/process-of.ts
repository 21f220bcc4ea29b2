/** The process of an instance, found by what the pool's document puts into its environment. Linux only. */
import { readdirSync, readFileSync } from "node:fs";

/** Of exactly one process; throws when there is none or more. */
export function pidOfInstance(instance: string): number {
  const found = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && environmentOf(entry).includes(`RELEVO_INSTANCE=${instance}`));
  const [pid, ...others] = found;
  if (pid === undefined || others.length > 0) throw new Error(`${found.length} processes of the instance ${instance}`);
  return Number(pid);
}

function environmentOf(pid: string): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    return []; // another user's, or gone meanwhile
  }
}
