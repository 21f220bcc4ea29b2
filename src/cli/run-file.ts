/**
 * `.relevo/run.json` of the working directory: where the parts of `relevo up` listen, so that the other commands find them. It holds a token: readable by
 * its owner alone.
 */
import { accessSync, chmodSync, constants, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";

export const runFileSchema = z.object({
  controllerUrl: z.url(),
  /** Null when the controller demands none. */
  token: z.string().nullable(),
  /** With which notices are signed; null when the controller checks none. */
  webhookSecret: z.string().nullable(),
  gatewayUrl: z.url(),
  /** Of the embedded cluster's Kubernetes API, and its admin interface; null with a cluster of somebody else's. */
  clusterUrl: z.url().nullable(),
  adminUrl: z.url().nullable(),
  kubeconfig: z.string(),
  pids: z.object({ up: z.int(), controller: z.int(), gateway: z.int(), cluster: z.int().nullable() }),
});
export type RunFile = z.infer<typeof runFileSchema>;

export function runFilePath(cwd: string): string {
  return join(cwd, ".relevo", "run.json");
}

/** Before anything is started that would have to end for want of it. Throws `directory_not_writable`. */
export function assertRunFileCanBeWritten(cwd: string): void {
  const folder = dirname(runFilePath(cwd));
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    throw new RelevoError("directory_not_writable", `The folder ${folder} cannot be written.`, {
      found: (cause as NodeJS.ErrnoException).code,
      todo: "start it in a directory of your own: other commands look there for what it wrote",
      cause,
    });
  }
}

export function writeRunFile(cwd: string, run: RunFile): void {
  const path = runFilePath(cwd);
  mkdirSync(dirname(path), { recursive: true });
  const fresh = `${path}.new`;
  writeFileSync(fresh, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 });
  chmodSync(fresh, 0o600); // the mode above does not change a file that was there
  renameSync(fresh, path);
}

/** Undefined when there is none; throws `run_file_invalid`. */
export function readRunFile(cwd: string): RunFile | undefined {
  const path = runFilePath(cwd);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new RelevoError("run_file_invalid", `${path} cannot be read.`, { cause: error });
  }
  try {
    return runFileSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new RelevoError("run_file_invalid", `${path} is not what relevo up writes.`, {
      cause,
      todo: "remove it and start relevo up again",
    });
  }
}

export function removeRunFile(cwd: string): void {
  rmSync(runFilePath(cwd), { force: true });
}
