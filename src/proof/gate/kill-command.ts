/** A worker outside Kubernetes: the user's own command kills it, and another brings it back. */
import { spawn } from "node:child_process";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { readInfo } from "../../drivers/trino/engine.ts";
import { TrinoHttp } from "../../drivers/trino/http.ts";
import type { GateWorker, Killer } from "./ports.ts";

export interface KillCommandOptions {
  /** A program and its arguments; no shell. */
  readonly command: readonly string[];
  readonly restart: readonly string[] | undefined;
  readonly cwd: string;
  readonly clock: Clock;
}

const COMMAND_MS = 60_000;
const OUTPUT_MOST = 4_000;

export function killByCommand({ command, restart, cwd, clock }: KillCommandOptions): Killer & { close(): Promise<void> } {
  const http = new TrinoHttp(clock);
  let killedAt = Number.POSITIVE_INFINITY;
  return {
    how: shortened(command.join(" ")),
    async kill(worker) {
      killedAt = clock.monotonic();
      return run(filled(command, worker), cwd, clock);
    },
    async isGone(worker) {
      try {
        const { nodeId, uptime } = await readInfo(worker.uri, http);
        const upMs = uptime === null ? undefined : uptimeMs(uptime);
        // Another process may stand in its place already.
        return nodeId !== worker.nodeId || (upMs !== undefined && upMs < clock.monotonic() - killedAt);
      } catch (error) {
        // Nothing listens there. Whatever else went wrong says nothing about its process.
        return error instanceof RelevoError && error.code === "instance_unreachable" ? true : null;
      }
    },
    async restart(worker) {
      if (restart !== undefined) await run(filled(restart, worker), cwd, clock);
    },
    close: () => http.destroy(),
  };
}

/** `57.66s`, `1.20m`: as airlift writes a duration. */
export function uptimeMs(text: string): number | undefined {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ns|us|ms|s|m|h|d)$/.exec(text) ?? [];
  const factor = UNIT_MS[unit ?? ""];
  return factor === undefined ? undefined : Number(amount) * factor;
}
const UNIT_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function filled(command: readonly string[], { nodeId, uri }: GateWorker): readonly string[] {
  const { hostname, port } = new URL(uri);
  const values: Readonly<Record<string, string>> = { nodeId, uri, host: hostname, port };
  return command.map((part) => part.replaceAll(/\$\(worker\.(\w+)\)/g, (whole, name: string) => values[name] ?? whole));
}

function shortened(text: string): string {
  return text.length <= 120 ? text : `${text.slice(0, 119)}…`;
}

/** What was run, and what it said. Rejects unless it ends with 0 in time. What it left running is its own affair. */
function run(command: readonly string[], cwd: string, clock: Clock): Promise<string> {
  const [program = "", ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const keep = (part: Buffer): void => {
      output = (output + part.toString("utf8")).slice(0, OUTPUT_MOST);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    const fail = (sentence: string, cause?: unknown): void => {
      timer.cancel();
      reject(new RelevoError("gate_command_failed", sentence, { found: output.trim() || "no output", cause }));
    };
    const timer = clock.after(COMMAND_MS, () => {
      child.kill("SIGKILL");
      fail(`${program} did not end within ${COMMAND_MS / 1_000} s.`);
    });
    child.once("error", (cause) => fail(`${program} could not be run.`, cause));
    // Not `close`: what it started may have inherited its output.
    child.once("exit", (code, signal) => {
      if (code !== 0) return fail(`${program} ended with ${code ?? signal}.`);
      timer.cancel();
      child.stdout.destroy();
      child.stderr.destroy();
      resolve(`${shortened(command.join(" "))}${output.trim() === "" ? "" : `: ${shortened(output.trim())}`}`);
    });
  });
}
