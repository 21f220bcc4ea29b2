/** Seeds of the standard mix in processes of their own, as `npm run simulate:standard` runs them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** `output` is empty when nothing was violated. */
export async function simulateRange(from: number, to: number): Promise<{ readonly code: number | null; readonly output: string }> {
  const script = join(import.meta.dirname, "../../tools/simulate/simulate.ts");
  const run = spawn(process.execPath, ["--no-warnings", script, "--seeds", `${from}..${to}`], { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(run.stdout), once(run, "exit") as Promise<[number | null]>]);
  return { code, output: code === 0 ? "" : output };
}
