/** The parent's side of the load client and the ledger: starts each as a process of its own and speaks with it. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { RelevoError } from "../../../kernel/errors.ts";
import type { LoadOptions, LoadSnapshot, RequestTrace } from "./client.ts";
import type { Mix } from "./mix.ts";
import type { ActResult } from "./tally.ts";

export type ClientCommand =
  | { readonly call: "start"; readonly options: LoadOptions }
  | { readonly call: "startAct"; readonly name: string; readonly mix: Mix | null }
  | { readonly call: "endAct"; readonly name: string }
  | { readonly call: "snapshot" }
  | { readonly call: "stop" };

export type ClientAnswer =
  | { readonly seq: number; readonly ok: true; readonly value: unknown }
  | { readonly seq: number; readonly ok: false; readonly code: string; readonly message: string };

interface Waiter {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: RelevoError) => void;
}

/** The child's answers are taken as they are: both ends are this very version. */
export class LoadProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiter>();
  #seq = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (answer: ClientAnswer) => this.#take(answer));
    child.on("exit", (code, signal) => this.#fail(`exit ${code ?? signal}`));
    child.on("error", (error) => this.#fail(error.message));
  }

  /** Starts the process and its load. Errors, also of every other call: `load_client_gone`, and the client's own codes. */
  static async start(options: LoadOptions): Promise<LoadProcess> {
    const child = fork(siblingPath("client-main"), { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const load = new LoadProcess(child);
    await load.#ask({ call: "start", options });
    return load;
  }

  async startAct(name: string, mix: Mix | null = null): Promise<void> {
    await this.#ask({ call: "startAct", name, mix });
  }

  /** Settles when the last request of the act has ended; a session or stream may take as long as the mix says, and its limit. */
  async endAct(name: string): Promise<{ readonly result: ActResult; readonly traces: readonly RequestTrace[] }> {
    return (await this.#ask({ call: "endAct", name })) as { readonly result: ActResult; readonly traces: readonly RequestTrace[] };
  }

  async snapshot(): Promise<LoadSnapshot> {
    return (await this.#ask({ call: "snapshot" })) as LoadSnapshot;
  }

  /** Lets what runs end, then ends the process. */
  async stop(): Promise<void> {
    await this.#ask({ call: "stop" });
    await ended(this.#child, () => this.#child.disconnect());
  }

  /** Ends the process at once. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #ask(command: ClientCommand): Promise<unknown> {
    const seq = this.#seq++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(seq, { resolve, reject });
      if (!this.#child.connected) return this.#fail("not connected");
      this.#child.send({ seq, command });
    });
  }

  #take(answer: ClientAnswer): void {
    const waiter = this.#waiting.get(answer.seq);
    this.#waiting.delete(answer.seq);
    if (answer.ok) waiter?.resolve(answer.value);
    else waiter?.reject(new RelevoError(answer.code, answer.message));
  }

  #fail(found: string): void {
    for (const waiter of this.#waiting.values())
      waiter.reject(new RelevoError("load_client_gone", "The load client's process ended.", { found }));
    this.#waiting.clear();
  }
}

export interface LedgerProcess {
  /** For `LEDGER_URL` of the workload and `ledgerUrl` of the load. */
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

const announcementSchema = z.object({ url: z.string() });

/** Starts the ledger on its file. Errors: `ledger_not_started`. */
export async function startLedgerProcess(path: string): Promise<LedgerProcess> {
  const child = spawn(process.execPath, [siblingPath("ledger-main"), path], { stdio: ["pipe", "pipe", "inherit"] });
  const line = await firstLine(child);
  return {
    url: announcementSchema.parse(JSON.parse(line)).url,
    pid: child.pid ?? 0,
    stop: () => ended(child, () => child.stdin.end()),
  };
}

function firstLine(child: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end >= 0) resolve(text.slice(0, end));
    });
    child.once("error", (cause) => reject(new RelevoError("ledger_not_started", "The ledger could not be started.", { cause })));
    child.once("exit", (code) =>
      reject(new RelevoError("ledger_not_started", "The ledger ended before it served.", { found: `exit ${code}` })),
    );
  });
}

function ended(child: ChildProcess, ask: () => void): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", () => resolve());
    ask();
  });
}

/** Beside this file, as source or built. */
function siblingPath(name: string): string {
  return fileURLToPath(new URL(`./${name}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
}
