/** Starts the stand-in as a process, so that what it does weighs on nobody's event loop. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { RelevoError } from "../../../kernel/errors.ts";

export interface StandInProcess {
  /** At which every pod is spoken to. */
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

const announcement = z.object({ port: z.int() });

/** `kubeconfig` is the kubelet's: it reads pods. Errors: `stand_in_not_started`. */
export async function startStandInProcess(options: {
  readonly kubeconfig: string;
  readonly ledgerUrl: string;
  readonly startMs: number;
}): Promise<StandInProcess> {
  const file = fileURLToPath(new URL(`./stand-in-main${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
  const child = spawn(process.execPath, [file, options.kubeconfig, options.ledgerUrl, String(options.startMs)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    const fail = (found: string) =>
      reject(new RelevoError("stand_in_not_started", "The stand-in for the pods' processes did not start.", { found }));
    child.once("exit", (code) => fail(`exit ${code}`));
    child.once("error", (error) => fail(error.message));
  });
  return {
    port: announcement.parse(JSON.parse(line)).port,
    pid: child.pid ?? 0,
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}
