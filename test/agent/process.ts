/** `relevo agent` as a real process, as it is shipped: built, with the flags of the manifests. A controller and an API server that can be away. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { close, listen } from "../../src/agent/testing/metadata.ts";
import { HOLDS_LITTLE } from "../../src/cli/processes/node-flags.ts";

const ROOT = join(import.meta.dirname, "..", "..");

export interface Build {
  readonly dir: string;
  remove(): void;
}

/** Types are checked elsewhere. */
export function build(): Build {
  const dir = mkdtempSync(join(tmpdir(), "relevo-agent-"));
  const args = [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json", "--noCheck", "--outDir", join(dir, "dist")];
  const run = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`it cannot be built: ${run.stdout}${run.stderr}`);
  for (const name of ["bin", "package.json"]) cpSync(join(ROOT, name), join(dir, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(dir, "node_modules"));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

export interface AgentProcess {
  /** Its log, parsed. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** In MB of a million bytes: what it holds now, and the most that it held. */
  memory(): { readonly now: number; readonly most: number };
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<number | null>;
}

export function startAgent({ dir }: Build, args: readonly string[], env: Readonly<Record<string, string>> = {}): AgentProcess {
  const child = spawn(process.execPath, [join(dir, "bin/relevo.mjs"), "agent", "--node=node-1", ...args], {
    env: { PATH: process.env["PATH"] ?? "", NODE_OPTIONS: HOLDS_LITTLE.join(" "), NODE_COMPILE_CACHE: join(dir, "cache"), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: Record<string, unknown>[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts.map((line) => JSON.parse(line) as Record<string, unknown>));
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => lines.push({ level: "stderr", msg: chunk }));
  return {
    lines,
    memory: () => ({ now: statusOf(child, "VmRSS"), most: statusOf(child, "VmHWM") }),
    stop: (signal = "SIGTERM") => stop(child, signal),
  };
}

function statusOf({ pid }: ChildProcess, field: "VmRSS" | "VmHWM"): number {
  const kib = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`the process ${pid} has no ${field}`);
  return (Number(kib) * 1_024) / 1_000_000;
}

function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => {
    child.once("exit", (code) => resolve(code));
    child.kill(signal);
  });
}

export interface Heard {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface StandInController {
  readonly url: string;
  /** What it kept. */
  readonly notices: Heard[];
  readonly heartbeats: Heard[];
  /** 503, as with a store that is away. */
  isAway: boolean;
  close(): Promise<void>;
}

export async function startController(): Promise<StandInController> {
  const state = { isAway: false };
  const notices: Heard[] = [];
  const heartbeats: Heard[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      if (state.isAway) return void response.writeHead(503).end("{}");
      const isNotice = request.url?.startsWith("/v1/notices/") === true;
      const heard = {
        path: request.url ?? "",
        authorization: request.headers.authorization,
        body: JSON.parse(body) as Record<string, unknown>,
      };
      (isNotice ? notices : heartbeats).push(heard);
      response.writeHead(isNotice ? 202 : 204).end(isNotice ? "{}" : undefined);
    });
  });
  const url = await listen(server);
  return {
    url,
    notices,
    heartbeats,
    get isAway() {
      return state.isAway;
    },
    set isAway(isAway) {
      state.isAway = isAway;
    },
    close: () => close(server),
  };
}

export interface StandInApi {
  readonly url: string;
  pods: readonly unknown[];
  isAway: boolean;
  close(): Promise<void>;
}

/** An API server that lists pods, and drops each connection while it is away. */
export async function startApi(): Promise<StandInApi> {
  const state: { pods: readonly unknown[]; isAway: boolean } = { pods: [], isAway: false };
  const server = createServer((request, response) => {
    if (state.isAway) return void request.socket.destroy();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ kind: "PodList", items: state.pods }));
  });
  return Object.defineProperties(
    { url: await listen(server), close: () => close(server) },
    {
      pods: {
        get: () => state.pods,
        set: (pods: readonly unknown[]) => {
          state.pods = pods;
        },
      },
      isAway: {
        get: () => state.isAway,
        set: (isAway: boolean) => {
          state.isAway = isAway;
        },
      },
    },
  ) as StandInApi;
}
