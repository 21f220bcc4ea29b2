/** The processes of a pod, found from outside by their environment, and what is done to them: as the kernel or an operator would, without a word to Relevo. */
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RelevoError } from "../../../kernel/errors.ts";

export interface ServerProcess {
  readonly pid: number;
  /** The pod's folder. */
  readonly podDir: string;
}

/** The JVM of a pod; undefined while none runs. */
export function serverOf(pod: string): ServerProcess | undefined {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const server = readServer(entry, pod);
    if (server !== undefined) return server;
  }
  return undefined;
}

function readServer(entry: string, pod: string): ServerProcess | undefined {
  try {
    const environment = readFileSync(`/proc/${entry}/environ`, "utf8").split("\0");
    if (!environment.includes(`HOSTNAME=${pod}`) || !readlinkSync(`/proc/${entry}/exe`).endsWith("/java")) return undefined;
    const podDir = environment.find((pair) => pair.startsWith("POD_DIR="))?.slice("POD_DIR=".length);
    return podDir === undefined ? undefined : { pid: Number(entry), podDir };
  } catch {
    return undefined; // another user's, or it ended meanwhile
  }
}

/**
 * Kills the server and leaves a file behind that names a live process: in a container process ids begin at 1 again, so that the number in a file that outlives
 * the process is nearly always another one's.
 */
export function killLeaving(server: ServerProcess, livePid: number): void {
  const file = join(server.podDir, "data/var/run/launcher.pid");
  const named = Number(readFileSync(file, "utf8").trim());
  if (named !== server.pid)
    throw new RelevoError("demo_pid_file", "The launcher's file does not name the server.", { found: named, allowed: String(server.pid) });
  writeFileSync(file, `${livePid}\n`);
  process.kill(server.pid, "SIGKILL");
}
