/** The near end of one helper: its process, its requests and their answers. */
import { spawn, type ChildProcess } from "node:child_process";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { RelevoError } from "../../kernel/errors.ts";
import { endProcessesOf } from "./leftovers.ts";
import type { FromHelper, StartContainer, ToHelper } from "./helper-protocol.ts";

const HELPER = fileURLToPath(new URL(`./helper-process${extname(import.meta.url)}`, import.meta.url));

export type Exited = (code: number | null, signal: string | null, isOutOfMemory: boolean) => void;

interface Pending {
  readonly resolve: (message: FromHelper) => void;
  readonly reject: (error: Error) => void;
}

export class MachineProcess {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #ready = Promise.withResolvers<void>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #starts = new Map<string, Pending>();
  readonly #requests = new Map<number, Pending>();
  readonly #exits = new Map<string, Exited>();
  #nextRequest = 1;
  #isGone = false;
  readonly #lost: () => void;

  /** `lost` is called once when the helper ended or can no longer be talked to, before anything that waits for it is told. */
  constructor(name: string, env: Record<string, string>, lost: () => void) {
    this.#name = name;
    this.#lost = lost;
    this.#child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", HELPER], {
      detached: true,
      env,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#child.on("message", (message) => this.#receive(message as FromHelper));
    this.#child.once("error", (error) => this.#end(error));
    this.#child.once("disconnect", () => this.#end(undefined));
    this.#child.once("exit", () => {
      this.#end(undefined);
      this.#gone.resolve();
    });
    this.#ready.promise.catch(() => undefined);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Settles when the helper itself has ended. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  async start(start: Omit<StartContainer, "kind">, exited: Exited): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<FromHelper>();
    this.#starts.set(start.id, { resolve, reject });
    this.#exits.set(start.id, exited);
    this.#send({ kind: "start", ...start }, reject);
    const answer = await promise.finally(() => this.#starts.delete(start.id));
    if (answer.kind === "started") return answer.pid;
    this.#exits.delete(start.id);
    throw new RelevoError(
      "container_not_started",
      `The container cannot start: ${answer.kind === "failed" ? answer.message : answer.kind}`,
      { found: [start.file, ...start.args] },
    );
  }

  signal(id: string, signal: "SIGTERM" | "SIGKILL"): void {
    this.#send({ kind: "signal", id, signal }, () => undefined);
  }

  async run(command: {
    readonly file: string;
    readonly args: readonly string[];
    readonly cwd: string;
    readonly env: Record<string, string>;
    readonly timeoutMs: number;
  }): Promise<{ readonly code: number; readonly output: string }> {
    const answer = await this.#request((request) => ({ kind: "run", request, ...command }));
    return answer.kind === "ran" ? answer : { code: -1, output: answer.kind };
  }

  async ping(): Promise<void> {
    await this.#request((request) => ({ kind: "ping", request }));
  }

  /** SIGKILL to the whole group: the helper and every container; then to what of the containers had left it. */
  kill(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
    endProcessesOf(new Set(this.#exits.keys()));
  }

  async #request(make: (request: number) => ToHelper): Promise<FromHelper> {
    const request = this.#nextRequest++;
    const { promise, resolve, reject } = Promise.withResolvers<FromHelper>();
    this.#requests.set(request, { resolve, reject });
    this.#send(make(request), reject);
    return await promise.finally(() => this.#requests.delete(request));
  }

  #send(message: ToHelper, failed: (error: Error) => void): void {
    if (this.#isGone || !this.#child.connected) return failed(this.#goneError());
    this.#child.send(message, (error) => {
      if (error !== null) failed(this.#goneError(error));
    });
  }

  #receive(message: FromHelper): void {
    switch (message.kind) {
      case "ready":
        return this.#ready.resolve();
      case "started":
      case "failed":
        return this.#starts.get(message.id)?.resolve(message);
      case "exited": {
        const exited = this.#exits.get(message.id);
        this.#exits.delete(message.id);
        return exited?.(message.code, message.signal, message.isOutOfMemory);
      }
      case "ran":
      case "pong":
        return this.#requests.get(message.request)?.resolve(message);
      default:
        return message satisfies never;
    }
  }

  #end(cause: Error | undefined): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#lost();
    const error = this.#goneError(cause);
    this.#ready.reject(error);
    for (const pending of [...this.#starts.values(), ...this.#requests.values()]) pending.reject(error);
    this.#exits.clear();
    if (this.#child.pid === undefined) this.#gone.resolve(); // it never started
  }

  #goneError(cause?: Error): RelevoError {
    return new RelevoError("machine_gone", `The machine of node ${this.#name} is gone.`, {
      class: "terminal",
      ...(cause === undefined ? {} : { cause }),
    });
  }
}
