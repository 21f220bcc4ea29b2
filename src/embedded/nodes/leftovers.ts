/** Processes of an earlier life of this cluster: found by a mark in their environment, wherever they went. Only where there is /proc. */
import { readdirSync, readFileSync } from "node:fs";

/** In the environment of every helper and container; its value is the cluster's folder. */
export const CLUSTER_MARK = "RELEVO_CLUSTER_DIR";

/** Ends them; returns how many there were. */
export function endLeftovers(dir: string): number {
  if (process.platform !== "linux") return 0;
  const mark = `${CLUSTER_MARK}=${dir}\0`;
  let ended = 0;
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      if (!`${readFileSync(`/proc/${entry}/environ`, "latin1")}\0`.includes(mark)) continue;
      process.kill(Number(entry), "SIGKILL");
      ended++;
    } catch {
      // Another user's, or gone meanwhile.
    }
  }
  return ended;
}
