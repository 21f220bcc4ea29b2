/**
 * Starts the processes of `relevo up` and keeps them: each may die and start again alone, on the address that it had. The supervisor decides nothing else.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../kernel/clock.ts";
import { describeError, RelevoError } from "../../kernel/errors.ts";
import { type ArgumentsMessage, isReadyMessage } from "./child.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
/** A process that lived this long starts anew with the first pause. */
const STEADY_AFTER_MS = 10_000;
const END_WITHIN_MS = 10_000;

export interface ChildSpec {
  readonly name: string;
  /** Of the Node process itself. */
  readonly nodeFlags?: readonly string[];
  /**
   * The command's arguments; `known` are the addresses that it had before, so that it gets them again. Where they hang on another process that is not
   * ready yet, this one loads its code meanwhile; when they reject, so does its start.
   */
  readonly args: (known: Readonly<Record<string, string>>) => readonly string[] | Promise<readonly string[]>;
  /** On top of ours; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface SupervisorOptions {
  readonly clock: Clock;
  /** Holds a log file a process. */
  readonly logDir: string;
  /** Told each time that a process is ready, after its restarts too. */
  readonly onReady?: (name: string, facts: Readonly<Record<string, string>>) => void;
  /** Told when a process ended that was not asked to. */
  readonly onDeath?: (name: string, how: string) => void;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #children: Child[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    mkdirSync(options.logDir, { recursive: true });
  }

  /** Settles with its addresses once it is ready; rejects when its first start fails. */
  start(spec: ChildSpec): Promise<Readonly<Record<string, string>>> {
    const child = new Child(spec, this.#options);
    this.#children.push(child);
    return child.start();
  }

  pidOf(name: string): number | undefined {
    return this.#children.find((child) => child.spec.name === name)?.pid;
  }

  /** Settles when the process, after it died, is ready again. */
  whenRestarted(name: string): Promise<void> {
    const child = this.#children.find((each) => each.spec.name === name);
    if (!child)
      throw new RelevoError("process_unknown", `there is no process ${name}`, {
        found: name,
        allowed: this.#children.map(({ spec }) => spec.name).join(", "),
      });
    return child.whenRestarted();
  }

  /** In the order opposite to their start; what does not end in time is killed. */
  async stop(): Promise<void> {
    for (const child of this.#children.toReversed()) await child.stop();
  }
}

class Child {
  readonly spec: ChildSpec;
  readonly #options: SupervisorOptions;
  #process: ChildProcess | undefined;
  #facts: Readonly<Record<string, string>> = {};
  #pauseMs = FIRST_PAUSE_MS;
  #isStopping = false;
  #waiters: (() => void)[] = [];

  constructor(spec: ChildSpec, options: SupervisorOptions) {
    this.spec = spec;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  start(): Promise<Readonly<Record<string, string>>> {
    return new Promise((resolve, reject) => {
      this.#process = undefined;
      const logFile = join(this.#options.logDir, `${this.spec.name}.log`);
      const args = this.spec.args(this.#facts);
      const child = this.#spawn(logFile, args instanceof Promise ? [PRELOADED, this.spec.name] : [MAIN, ...args]);
      this.#process = child;
      if (args instanceof Promise) sendArguments(child, args, reject);
      const startedAt = this.#options.clock.monotonic();
      let isReady = false;
      child.on("message", (message) => {
        if (!isReadyMessage(message)) return;
        isReady = true;
        this.#facts = message.facts;
        this.#options.onReady?.(this.spec.name, message.facts);
        resolve(message.facts);
        for (const waiter of this.#waiters.splice(0)) waiter();
      });
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        const how = signal ?? `exit code ${code}`;
        if (!isReady && Object.keys(this.#facts).length === 0) {
          reject(
            new RelevoError("process_did_not_start", `the process ${this.spec.name} ended before it was ready`, {
              found: [how, lastWords(logFile)].filter(Boolean).join(": "),
              todo: `see ${logFile}`,
            }),
          );
        } else {
          this.#restart(how, this.#options.clock.monotonic() - startedAt);
        }
      });
    });
  }

  #spawn(logFile: string, program: readonly string[]): ChildProcess {
    const log = openSync(logFile, "a");
    try {
      return spawn(process.execPath, [...process.execArgv, ...(this.spec.nodeFlags ?? []), ...program], {
        stdio: ["ignore", log, log, "ipc"],
        env: { ...process.env, ...this.spec.env },
      });
    } finally {
      closeSync(log);
    }
  }

  whenRestarted(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const child = this.#process;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGTERM");
    const timer = this.#options.clock.after(END_WITHIN_MS, () => child.kill("SIGKILL"));
    await ended;
    timer.cancel();
  }

  #restart(how: string, livedMs: number): void {
    if (this.#isStopping) return;
    this.#options.onDeath?.(this.spec.name, how);
    if (livedMs > STEADY_AFTER_MS) this.#pauseMs = FIRST_PAUSE_MS;
    const pause = this.#pauseMs;
    this.#pauseMs = Math.min(pause * 2, LONGEST_PAUSE_MS);
    this.#options.clock.after(pause, () => {
      if (this.#isStopping) return;
      this.start().catch((error: unknown) => {
        // What was started ends in `exit`, and so in the next pause. What could not even be started, for want of memory or descriptors, does not.
        if (this.#process?.pid === undefined) this.#restart(describeError(error), 0);
      });
    });
  }
}

function sendArguments(child: ChildProcess, args: Promise<readonly string[]>, failed: (error: unknown) => void): void {
  args.then(
    (known) => {
      const message: ArgumentsMessage = { type: "arguments", args: known };
      // A child that cannot be told has ended, and its exit says so.
      if (child.connected) child.send(message, () => undefined);
    },
    (error: unknown) => {
      failed(error);
      child.kill("SIGKILL");
    },
  );
}

const LAST_WORDS_BYTES = 8_000;

/** `Error: …`, `TypeError [CODE]: …` at the beginning of a line: of what nobody caught, with its stack and Node's version below it. */
const UNCAUGHT = /^(?:\w*Error)(?: \[\w+\])?: /;

/** What a process said last: mostly why it ended. */
function lastWords(logFile: string): string {
  try {
    const lines = readFileSync(logFile).subarray(-LAST_WORDS_BYTES).toString("utf8").trim().split("\n");
    const last = lines.at(-1) ?? "";
    const uncaught = last.startsWith("Node.js v") ? lines.findLast((line) => UNCAUGHT.test(line)) : undefined;
    return (uncaught ?? last).replace(/^relevo: /, "");
  } catch {
    return ""; // the error that this is for must not be lost to it
  }
}

/** The program itself, in the form in which it runs now; and the one that waits for its arguments. */
const MAIN = fileURLToPath(new URL(`../../main${extname(import.meta.url)}`, import.meta.url));
const PRELOADED = fileURLToPath(new URL(`./preloaded-main${extname(import.meta.url)}`, import.meta.url));
