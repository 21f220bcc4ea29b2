/** Whether another Relevo already answers the commands of this directory. */
import type { CliContext } from "./context.ts";
import { type RunFile, readRunFile } from "./run-file.ts";

const ANSWER_WITHIN_MS = 2_000;

/** The one that wrote the run file and still answers. What a killed one left behind, or what cannot be read, is nobody's. */
export async function findRunning({
  cwd,
  isAlive,
  fetch,
  clock,
}: Pick<CliContext, "cwd" | "isAlive" | "fetch" | "clock">): Promise<RunFile | undefined> {
  let run: RunFile | undefined;
  try {
    run = readRunFile(cwd);
  } catch {
    return undefined; // whoever starts now writes it anew
  }
  if (run === undefined || !isAlive(run.pids.up)) return undefined;
  // Process ids come again: the address tells whether it is still the same.
  const controller = new AbortController();
  const timer = clock.after(ANSWER_WITHIN_MS, () => controller.abort());
  try {
    const { ok } = await fetch(`${run.controllerUrl}/healthz`, { signal: controller.signal });
    return ok ? run : undefined;
  } catch {
    return undefined;
  } finally {
    timer.cancel();
  }
}
