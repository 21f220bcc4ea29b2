/**
 * One job's child process, bounded from the parent's side (K5).
 *
 *   running → [reaping: SIGTERM to the tree, after `killAfterMs` SIGKILL] → ended
 *
 * 1. Progress is work that was done: bytes on the progress pipe (file descriptor 3), or what `onOutput` says. That a child lives, answers, or writes to its
 *    standard output is none.
 * 2. No progress for `noProgressMs`, a wait for longer than `waitMs`, or more memory than `memoryMb`: the whole process tree is ended.
 * 3. However the child ended, nothing of its tree and no file of its folder is left, and `ended` settles: each step of the end has a bound of its own.
 * 4. Its output is read always and kept in part, so a child that fills its pipe waits for nobody.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import type { Clock, Timer } from "../kernel/clock.ts";
import { systemClock } from "../kernel/system.ts";
import { carries, CHILD_VARIABLE, defaultRoot, newChildFolder, removeChildFolder, tokenFor } from "./child-home.ts";
import { ChildProgress, Tail } from "./child-progress.ts";
import { ProcessTree } from "./process-tree.ts";

/** Where a child finds the number of its progress pipe. */
export const PROGRESS_VARIABLE = "RELEVO_PROGRESS_FD";
const PROGRESS_FD = 3;

export const DEFAULT_NO_PROGRESS_MS = 60_000;
export const DEFAULT_WAIT_MS = 30_000;
export const DEFAULT_KILL_AFTER_MS = 2_000;
export const DEFAULT_OUTPUT_BYTES = 16 * 1024;

const MEMORY_EVERY_MS = 500;
const POLL_MS = 25;
/** SIGKILL is repeated so often: what forks meanwhile is found in the next round. A process that the kernel does not let go is told as a survivor. */
const KILL_ROUNDS = 100;
/** For the pipes to be read to their end, once nobody of the tree can write any more. */
const DRAIN_LIMIT_MS = 1_000;

export interface ChildOptions {
  /** Without progress for so long it is reaped; null: never. */
  readonly noProgressMs?: number | null;
  /** So long it may wait for one thing that may never come; null: as long as it likes. */
  readonly waitMs?: number | null;
  /** From SIGTERM to SIGKILL. */
  readonly killAfterMs?: number;
  /** Resident memory of the tree above which it is reaped, looked at twice a second; absent: no limit. Only where there is /proc. */
  readonly memoryMb?: number;
  readonly cwd?: string;
  /** On top of the parent's own; undefined takes one away. `TMPDIR` is the child's own folder. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Looks at what the child writes; returns how much progress that was. */
  readonly onOutput?: (chunk: Buffer, stream: "stdout" | "stderr") => number | undefined;
  readonly onProgress?: (amount: number) => void;
  /** Ends the child when it aborts. */
  readonly signal?: AbortSignal;
  /** Of each stream so many bytes are kept: the last ones. */
  readonly outputBytes?: number;
  /** Folders of children lie beneath it. */
  readonly root?: string;
  readonly clock?: Clock;
}

export type ReapReason = "no_progress" | "wait_too_long" | "memory";

export interface ChildEnd {
  /** `exited`: with 0. `failed`: with another code, by a signal that we did not send, or it never started. `cancelled`: the caller ended it. */
  readonly kind: "exited" | "failed" | "reaped" | "cancelled";
  /** `exit_0`, `exit_7`, `signal_SIGKILL`, `not_started`, `cancelled`, or why it was reaped. */
  readonly reason: string;
  /** One sentence. */
  readonly sentence: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly progress: number;
  readonly durationMs: number;
  /** Processes of the tree that had to be ended. */
  readonly killed: number;
  /** Processes that could not be ended. */
  readonly survivors: number;
  readonly stdout: string;
  readonly stderr: string;
  /** All that it wrote, kept or not. */
  readonly outputBytes: number;
  /** The most memory of the tree that was seen, in MB; null: nobody looked. */
  readonly peakMb: number | null;
}

/** Starts it. What it is started with must not be taken from a stranger: it is no shell, but a command all the same. */
export function runChild(command: string, args: readonly string[] = [], options: ChildOptions = {}): RunningChild {
  return new RunningChild(command, args, options);
}

interface Verdict {
  readonly kind: "reaped" | "cancelled";
  readonly reason: string;
  readonly sentence: string;
}

export class RunningChild {
  /** Never rejects. */
  readonly ended: Promise<ChildEnd>;
  /** Undefined when it did not start. */
  readonly pid: number | undefined;
  /** Its folder for temporary files, removed at its end. */
  readonly folder: string;

  readonly #options: ChildOptions;
  readonly #clock: Clock;
  readonly #root: string;
  readonly #process: ChildProcess;
  readonly #tree: ProcessTree | null;
  readonly #progress: ChildProgress;
  readonly #tails: { readonly stdout: Tail; readonly stderr: Tail };
  readonly #startedAt: number;
  readonly #killed = new Set<number>();
  readonly #exited = Promise.withResolvers<void>();
  #verdict: Verdict | null = null;
  #reaping: Promise<void> | null = null;
  #survivors = 0;
  #timer: Timer | null = null;
  #peakMb: number | null = null;
  #startError: Error | null = null;

  constructor(command: string, args: readonly string[], options: ChildOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#root = options.root ?? defaultRoot();
    this.folder = newChildFolder(this.#root);
    this.#startedAt = this.#clock.monotonic();
    this.#progress = new ChildProgress(this.#clock, (amount) => options.onProgress?.(amount));
    const bytes = options.outputBytes ?? DEFAULT_OUTPUT_BYTES;
    this.#tails = { stdout: new Tail(bytes), stderr: new Tail(bytes) };
    this.#process = this.#spawn(command, args);
    this.pid = this.#process.pid;
    this.#tree = this.pid === undefined ? null : new ProcessTree(this.#rootOf(this.pid));
    this.#read();
    this.ended = this.#live();
  }

  /** How much work it did, in the bytes of its progress pipe and what `onOutput` said. */
  get progress(): number {
    return this.#progress.total;
  }

  /** Since it last did work. */
  quietMs(): number {
    return this.#progress.quietMs();
  }

  /** For what it waits; null: it does not. */
  waitingFor(): string | null {
    return this.#progress.waiting()?.what ?? null;
  }

  /** Resident memory of the whole tree in MB; null where there is no /proc. */
  memoryMb(): number | null {
    if (this.#tree === null || process.platform !== "linux") return null;
    const now = this.#tree.rssMb();
    this.#peakMb = Math.max(this.#peakMb ?? 0, now);
    return now;
  }

  /** Work was done that the child itself does not tell. */
  advance(amount = 1): void {
    this.#progress.advance(amount);
  }

  /** It waits from now on for something that may never come, until its next progress. */
  wait(what: string): void {
    this.#progress.wait(what);
    this.#watch();
  }

  /** Ends the tree; settles when it is gone. Harmless when it has ended. */
  async end(sentence = "It was ended by its parent."): Promise<ChildEnd> {
    this.#reap({ kind: "cancelled", reason: "cancelled", sentence });
    return await this.ended;
  }

  /** Without a word, for a process that exits at this moment. */
  killNow(): void {
    this.#tree?.signal("SIGKILL");
  }

  #rootOf(pid: number): ConstructorParameters<typeof ProcessTree>[0] {
    return { pid, variable: CHILD_VARIABLE, isToken: (value) => carries(value, this.folder) };
  }

  #spawn(command: string, args: readonly string[]): ChildProcess {
    const { env, cwd } = this.#options;
    return spawn(command, [...args], {
      ...(cwd === undefined ? {} : { cwd }),
      env: {
        ...process.env,
        TMPDIR: this.folder,
        [PROGRESS_VARIABLE]: String(PROGRESS_FD),
        ...env,
        [CHILD_VARIABLE]: tokenFor(this.folder, process.env[CHILD_VARIABLE]),
      },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      // A session and a group of its own, by which all that it starts is found.
      detached: true,
    });
  }

  #read(): void {
    const { onOutput } = this.#options;
    const read = (stream: Readable | null, take: (chunk: Buffer) => void): void => {
      stream?.on("data", take);
      stream?.on("error", () => undefined); // it ends with its process
    };
    for (const name of ["stdout", "stderr"] as const)
      read(this.#process[name], (chunk) => {
        this.#tails[name].take(chunk);
        this.#progress.advance(onOutput?.(chunk, name) ?? 0);
      });
    read(this.#process.stdio[PROGRESS_FD] as Readable | null, (chunk) => {
      this.#progress.take(chunk);
      if (this.#progress.waiting() !== null) this.#watch();
    });
  }

  async #live(): Promise<ChildEnd> {
    const closed = new Promise<void>((resolve) => this.#process.once("close", () => resolve()));
    this.#process.once("exit", () => this.#exited.resolve());
    this.#process.once("error", (error) => {
      this.#startError = error;
      if (this.pid === undefined) this.#exited.resolve();
    });
    const { signal } = this.#options;
    const cancel = (): void => this.#reap({ kind: "cancelled", reason: "cancelled", sentence: "Its caller ended it." });
    signal?.addEventListener("abort", cancel, { once: true });
    if (signal?.aborted) cancel();
    this.#watch();
    await this.#exited.promise;
    this.#timer?.cancel();
    signal?.removeEventListener("abort", cancel);
    // By itself or not: what it leaves behind goes with it.
    await (this.#reaping ?? this.#killRest());
    await this.#drain(closed);
    removeChildFolder(this.#root, this.folder);
    return this.#end();
  }

  /** Looks again when the next bound can be reached, at the earliest. */
  #watch(): void {
    this.#timer?.cancel();
    if (this.#verdict !== null || this.pid === undefined) return;
    this.#timer = this.#clock.after(Math.max(1, this.#nextLookMs()), () => {
      const verdict = this.#judge();
      if (verdict === null) this.#watch();
      else this.#reap(verdict);
    });
  }

  #nextLookMs(): number {
    const waiting = this.#progress.waiting();
    const bounds = [MAX_LOOK_MS];
    if (this.#noProgressMs !== null) bounds.push(this.#noProgressMs - this.#progress.quietMs());
    if (waiting !== null && this.#waitMs !== null) bounds.push(this.#waitMs - waiting.ms);
    if (this.#options.memoryMb !== undefined) bounds.push(MEMORY_EVERY_MS);
    return Math.min(...bounds);
  }

  #judge(): Verdict | null {
    const waiting = this.#progress.waiting();
    if (waiting !== null && this.#waitMs !== null && waiting.ms >= this.#waitMs)
      return reaped("wait_too_long", `It waited ${Math.round(waiting.ms)} ms for ${waiting.what}, longer than ${this.#waitMs} ms.`);
    const quietMs = this.#progress.quietMs();
    if (this.#noProgressMs !== null && quietMs >= this.#noProgressMs)
      return reaped("no_progress", `It did no work for ${Math.round(quietMs)} ms; ${this.#noProgressMs} ms are allowed.`);
    const { memoryMb } = this.#options;
    const usedMb = memoryMb === undefined ? null : this.memoryMb();
    if (memoryMb !== undefined && usedMb !== null && usedMb > memoryMb)
      return reaped("memory", `Its processes held ${Math.round(usedMb)} MB; ${memoryMb} MB are allowed.`);
    return null;
  }

  get #noProgressMs(): number | null {
    return this.#options.noProgressMs === undefined ? DEFAULT_NO_PROGRESS_MS : this.#options.noProgressMs;
  }

  get #waitMs(): number | null {
    return this.#options.waitMs === undefined ? DEFAULT_WAIT_MS : this.#options.waitMs;
  }

  /** The first verdict stands; after the child's own end there is none any more. */
  #reap(verdict: Verdict): void {
    if (this.#verdict !== null || this.#tree === null || this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#verdict = verdict;
    this.#timer?.cancel();
    this.#reaping = this.#endTree(this.#tree);
  }

  async #endTree(tree: ProcessTree): Promise<void> {
    for (const pid of tree.signal("SIGTERM")) this.#killed.add(pid);
    const until = this.#clock.monotonic() + (this.#options.killAfterMs ?? DEFAULT_KILL_AFTER_MS);
    while (this.#clock.monotonic() < until && tree.members().length > 0) await this.#clock.sleep(POLL_MS);
    await this.#killAll(tree);
  }

  async #killRest(): Promise<void> {
    if (this.#tree !== null) await this.#killAll(this.#tree);
  }

  async #killAll(tree: ProcessTree): Promise<void> {
    for (let round = 0; round < KILL_ROUNDS; round++) {
      const alive = tree.signal("SIGKILL");
      if (alive.length === 0) return;
      for (const pid of alive) this.#killed.add(pid);
      await this.#clock.sleep(round < 3 ? 1 : POLL_MS);
    }
    this.#survivors = tree.members().length;
    // A child that even the kernel keeps must not keep its slot.
    this.#exited.resolve();
  }

  async #drain(closed: Promise<void>): Promise<void> {
    const limit = new AbortController();
    const late = this.#clock.sleep(DRAIN_LIMIT_MS, limit.signal).catch(() => undefined);
    await Promise.race([closed, late]);
    limit.abort();
    for (const stream of this.#process.stdio) stream?.destroy();
  }

  #end(): ChildEnd {
    const { exitCode, signalCode } = this.#process;
    return {
      ...this.#outcome(exitCode, signalCode),
      code: exitCode,
      signal: signalCode,
      progress: this.#progress.total,
      durationMs: Math.round(this.#clock.monotonic() - this.#startedAt),
      killed: this.#killed.size,
      survivors: this.#survivors,
      stdout: this.#tails.stdout.text(),
      stderr: this.#tails.stderr.text(),
      outputBytes: this.#tails.stdout.bytes + this.#tails.stderr.bytes,
      peakMb: this.#peakMb,
    };
  }

  #outcome(code: number | null, signal: NodeJS.Signals | null): Pick<ChildEnd, "kind" | "reason" | "sentence"> {
    if (this.#verdict !== null) return this.#verdict;
    if (this.pid === undefined)
      return { kind: "failed", reason: "not_started", sentence: `It did not start: ${this.#startError?.message ?? "unknown"}.` };
    if (signal !== null) return { kind: "failed", reason: `signal_${signal}`, sentence: `It was ended from outside by ${signal}.` };
    const kind = code === 0 ? "exited" : "failed";
    return { kind, reason: `exit_${code}`, sentence: `It exited with ${code}.` };
  }
}

/** Nothing is due: it looks again all the same, for a clock that was set does not matter then. */
const MAX_LOOK_MS = 60_000;

function reaped(reason: ReapReason, sentence: string): Verdict {
  return { kind: "reaped", reason, sentence };
}
