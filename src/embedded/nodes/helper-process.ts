/**
 * The machine of one node: a small process that starts, ends and reaps the node's containers. It leads a process group of its own and its containers stay in
 * it, so one signal to the group takes the whole machine. It imports next to nothing: how fast a node boots hangs on it.
 *
 * When its channel closes, whoever owned the cluster is gone, and the group ends itself.
 */
import { spawn, execFile, type ChildProcess } from "node:child_process";
import { closeSync, copyFileSync, mkdirSync, openSync, statSync, truncateSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { dirname } from "node:path";
import { systemClock } from "../../kernel/system.ts";
import type { FromHelper, StartContainer, ToHelper } from "./helper-protocol.ts";
import { CONTAINER_MARK, endProcessesOf } from "./leftovers.ts";
import { MemoryWatch } from "./memory-watch.ts";

const LOG_CHECK_MS = 1_000;
const OUTPUT_MAX = 4_096;
/** A command that says more is ended. */
const OUTPUT_READ_MAX = 1 << 20;

interface Running {
  readonly child: ChildProcess;
  readonly logPath: string;
  readonly maxLogBytes: number;
}

const containers = new Map<string, Running>();
const memory = new MemoryWatch(systemClock);

function send(message: FromHelper): void {
  process.send?.(message, () => undefined);
}

function start(message: StartContainer): void {
  const { id, file, args, cwd, env, logPath, maxLogBytes, memoryLimitBytes } = message;
  let log: number | undefined;
  try {
    mkdirSync(dirname(logPath), { recursive: true });
    log = openSync(logPath, "a");
    const child = spawn(file, args, { cwd, env: { ...env, [CONTAINER_MARK]: id }, stdio: ["ignore", log, log] });
    let isStarted = false;
    child.once("spawn", () => {
      isStarted = true;
      containers.set(id, { child, logPath, maxLogBytes });
      if (memoryLimitBytes !== undefined && child.pid !== undefined) memory.add(id, child.pid, memoryLimitBytes);
      send({ kind: "started", id, pid: child.pid ?? 0 });
    });
    child.once("error", (error) => {
      if (!isStarted) send({ kind: "failed", id, message: error.message });
    });
    child.once("exit", (code, signal) => {
      containers.delete(id);
      endProcessesOf(new Set([id]));
      send({ kind: "exited", id, code, signal, isOutOfMemory: memory.remove(id) });
    });
  } catch (error) {
    send({ kind: "failed", id, message: error instanceof Error ? error.message : String(error) });
  } finally {
    if (log !== undefined) closeSync(log);
  }
}

interface Run {
  readonly request: number;
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly timeoutMs: number;
}

function run({ request, file, args, cwd, env, timeoutMs }: Run): void {
  const answer = (code: number, output: string): void => send({ kind: "ran", request, code, output: output.slice(0, OUTPUT_MAX) });
  const options = { cwd, env, timeout: Math.ceil(timeoutMs), killSignal: "SIGKILL", maxBuffer: OUTPUT_READ_MAX } as const;
  try {
    execFile(file, [...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      answer(code, `${stdout}${stderr}${code === -1 ? (error?.message ?? "") : ""}`);
    });
  } catch (error) {
    answer(-1, error instanceof Error ? error.message : String(error));
  }
}

/** The containers write by themselves, appending; what grew too long is copied once and cut, so the writer never notices. */
function rotateLogs(): void {
  for (const { logPath, maxLogBytes } of containers.values()) {
    try {
      if (statSync(logPath).size <= maxLogBytes) continue;
      copyFileSync(logPath, `${logPath}.1`);
      truncateSync(logPath);
    } catch {
      // A log that is gone needs no rotation.
    }
  }
}

function rotateLogsFromNowOn(): void {
  systemClock.after(LOG_CHECK_MS, () => {
    rotateLogs();
    rotateLogsFromNowOn();
  });
}

process.on("message", (message: ToHelper) => {
  switch (message.kind) {
    case "start":
      return start(message);
    case "signal":
      containers.get(message.id)?.child.kill(message.signal);
      return;
    case "run":
      return run(message);
    case "ping":
      return send({ kind: "pong", request: message.request });
    default:
      return message satisfies never;
  }
});
process.on("disconnect", () => {
  endProcessesOf(new Set(containers.keys()));
  process.kill(-process.pid, "SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
rotateLogsFromNowOn();
send({ kind: "ready" });
flushCompileCache(); // it would be written at a clean exit, and there is none
