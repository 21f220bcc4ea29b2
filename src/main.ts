/** `relevo`: the only place that puts the real world and the commands together. */
import { userInfo } from "node:os";
import type { CliContext } from "./cli/context.ts";
import { onHangup } from "./cli/hangup.ts";
import type { ProcessCommands } from "./cli/process-commands.ts";
import { runProgram } from "./cli/program.ts";
import { systemClock, systemIds } from "./kernel/system.ts";

const interrupted = new AbortController();

const context: CliContext = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  isTerminal: process.stdout.isTTY === true,
  // A terminal that does not know its width says 0.
  columns: () => (process.stdout.isTTY === true ? process.stdout.columns || 80 : undefined),
  env: process.env,
  cwd: process.cwd(),
  user: process.env.RELEVO_USER ?? userName(),
  clock: systemClock,
  ids: systemIds,
  fetch: globalThis.fetch,
  isAlive,
  readStdin,
  signal: interrupted.signal,
};

const processes: ProcessCommands = {
  up: async (...args) => (await import("./cli/commands/up.ts")).up(...args),
  demo: async (...args) => (await import("./cli/commands/demo.ts")).demo(...args),
  controller: async (...args) => (await import("./cli/commands/processes.ts")).controller(...args),
  gateway: async (...args) => (await import("./cli/commands/processes.ts")).gateway(...args),
  agent: async (...args) => (await import("./cli/commands/agent.ts")).agent(...args),
  cluster: async (...args) => (await import("./cli/commands/processes.ts")).cluster(...args),
  queue: async (...args) => (await import("./cli/commands/processes.ts")).queue(...args),
  store: async (...args) => (await import("./cli/processes/store-command.ts")).storeCommand(...args),
};

process.once("SIGINT", () => interrupted.abort());
process.once("SIGTERM", () => interrupted.abort());
onHangup(process.env, () => interrupted.abort());
// A reader that went (`relevo get … | head`) is no error.
// Nor is one of what is told: it must not end a command that has something to take back.
process.stderr.on("error", () => undefined);
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EIO")
    interrupted.abort(); // the terminal is gone: what was put in is taken back all the same
  else if (!interrupted.signal.aborted) process.exit(error.code === "EPIPE" ? 0 : 1);
});

const code = await runProgram(process.argv.slice(2), context, processes);
process.exitCode = code;

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown"; // an id without an entry in the system's table of users
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function readStdin(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) text += String(chunk);
  return text;
}
