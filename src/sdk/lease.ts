/**
 * The holder's side of a writer lease.
 *
 *   none → waiting (admitted with a lease) → held ⇄ lapsed → lost
 *
 * 1. A renewal counts from before its request was sent, on the monotonic clock: the judge cannot have begun to count earlier.
 * 2. The epoch is looked up anew at each use. A process that was stopped and goes on finds its lease lapsed before it does anything under it; no timer needs
 *    to have fired.
 * 3. `lapsed` may be held again, under the same epoch: then nobody else has had it. `lost` is for the rest of the process: somebody decided it, or nobody
 *    renewed it for the grace.
 * 4. Another epoch than the one that was held is never taken on: what is in memory was made under the former.
 * 5. All this serves availability. Safety lies where results land, which compare the epoch (docs/fencing.md): between the look-up and the landing a process
 *    can stand still for any time.
 */
import type { Clock, Timer } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { HeldLease, LeaseAccess, LeaseAnswer, LeaseCall } from "./lease-call.ts";

export type LeaseState = "none" | "waiting" | "held" | "lapsed" | "lost";

/** Without a renewal for so long after it lapsed the instance closes. Longer than a controller's restart: within it the lease can be held again. */
export const DEFAULT_LEASE_GRACE_MS = 60_000;
/** An instance that waits for its turn asks again soon at first, since the lease follows an admission within milliseconds, and then this often. */
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 1_000;
/** After a failure it is tried again this often within a TTL. */
const TRIES_PER_TTL = 10;
const SHORTEST_RETRY_MS = 20;

/** What the holder of a new lease is told, before anything can be written under it. */
export interface NewLease {
  /** `namespace/name#ordinal`. */
  readonly workload: string;
  readonly epoch: Epoch;
}

export interface LeaseOptions {
  readonly bootId: string;
  readonly clock: Clock;
  readonly call: LeaseCall;
  readonly graceMs: number;
  /** Awaited before the epoch can be used: the place to tell a landing of it. When it fails it is tried again with the next renewal. */
  readonly onLease?: ((lease: NewLease) => Promise<void> | void) | undefined;
  /** Called once, when it is lost. */
  readonly onLost: () => void;
  readonly report: (sentence: string) => void;
}

export class WriterLease {
  readonly #options: LeaseOptions;
  readonly #clock: Clock;
  #access: LeaseAccess | null = null;
  #state: LeaseState = "none";
  #workload: string | null = null;
  /** That is or was. */
  #held: HeldLease | null = null;
  /** Monotonic ms; up to it what is held may be used. */
  #until = 0;
  /** How often it was told that it is not its turn. */
  #waits = 0;
  #reason: string | null = null;
  #failure: string | null = null;
  #timer: Timer | null = null;
  #stopped = false;
  #waiters: (() => void)[] = [];

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** Looks at the time, so that it is true at this moment. */
  get state(): LeaseState {
    if (this.#state === "held" && this.#clock.monotonic() >= this.#until) this.#lapse();
    return this.#state;
  }

  /** Under which results may be written at this moment; null: nothing may be written. */
  epoch(): Epoch | null {
    return this.state === "held" && this.#held !== null ? this.#held.epoch : null;
  }

  /** `namespace/name#ordinal`, once it is known. */
  get workload(): string | null {
    return this.#workload;
  }

  /** Why nothing may be written, as a code and a sentence; null while it may, and without a lease. */
  get reason(): string | null {
    const { state } = this;
    return state === "lapsed" || state === "lost" ? this.#reason : null;
  }

  /** True when the instance must not work: it had the lease, or was to have it, and cannot any more. */
  get refuses(): boolean {
    const { state } = this;
    return state === "lapsed" || state === "lost";
  }

  /** Resolves when it is held, and at once when it is or when there is none to wait for; false after `limitMs`, or when it is lost. */
  whenHeld(limitMs: number): Promise<boolean> {
    if (this.state === "held") return Promise.resolve(true);
    if (this.#state === "none" || this.#state === "lost") return Promise.resolve(false);
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.#waiters = this.#waiters.filter((each) => each !== done);
        resolve(this.state === "held");
      };
      const timer = this.#clock.after(limitMs, done);
      this.#waiters.push(done);
    });
  }

  /** The instance was admitted with this. */
  take(access: LeaseAccess): void {
    this.#access = access;
    if (this.#state !== "none") return;
    this.#state = "waiting";
    this.#ask(0);
  }

  /** Somebody who knows says that this writer is stale: a landing. */
  declareLost(code: string): void {
    this.#lose(code, "a landing says that there is a newer writer");
  }

  /** Ends the renewals. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#wake();
  }

  #ask(delayMs: number): void {
    this.#timer?.cancel();
    if (!this.#stopped && this.#state !== "lost") this.#timer = this.#clock.after(delayMs, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const access = this.#access;
    if (access === null || this.#isOverdue()) return;
    const limitMs = Math.max(SHORTEST_RETRY_MS, access.ttlMs / 3);
    const sentAt = this.#clock.monotonic();
    const answer = await this.#options.call(access, this.#options.bootId, this.#held, limitMs);
    if (this.#stopped || this.#state === "lost") return;
    const delayMs = await this.#take(answer, access, sentAt);
    if (delayMs !== null) this.#ask(delayMs);
  }

  /** How long until the next call; null: there is none. */
  async #take(answer: LeaseAnswer, access: LeaseAccess, sentAt: number): Promise<number | null> {
    switch (answer.kind) {
      case "renewed":
        return this.#renewed(answer, access, sentAt);
      case "refused":
        // Until the former holder is sealed or fenced there is none to be had: that is no loss.
        if (answer.code === "lease_not_held" && this.#held === null)
          return Math.min(access.ttlMs / 3, LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#waits++);
        this.#lose(answer.code, "the controller says that this instance may not write");
        return null;
      case "failed":
        return this.#failed(answer.why, access);
      default:
        return answer satisfies never;
    }
  }

  async #renewed(answer: Extract<LeaseAnswer, { kind: "renewed" }>, access: LeaseAccess, sentAt: number): Promise<number | null> {
    if (this.#held !== null && this.#held.epoch !== answer.epoch) {
      this.#lose("lease_fenced", "the lease has passed on and come back under another epoch");
      return null;
    }
    const workload = `${access.pool}#${answer.ordinal}`;
    if (this.#held === null) {
      try {
        await this.#options.onLease?.({ workload, epoch: answer.epoch });
      } catch (error) {
        return this.#failed(`onLease: ${error instanceof Error ? error.message : String(error)}`, access);
      }
      if (this.#stopped || this.#state === "lost") return null;
    }
    this.#workload = workload;
    const { ordinal, epoch, proof } = answer;
    this.#held = { ordinal, epoch, ...(proof === undefined ? {} : { proof }) };
    // A time that became shorter holds from now on, a longer one from the next admission.
    const ttlMs = Math.min(answer.ttlMs, access.ttlMs);
    this.#until = sentAt + ttlMs;
    this.#failure = null;
    this.#state = "held";
    this.#reason = null;
    if (this.state === "held") this.#wake();
    return Math.max(0, sentAt + ttlMs / 3 - this.#clock.monotonic());
  }

  #failed(why: string, access: LeaseAccess): number {
    if (this.#failure !== why)
      this.#options.report(`The writer lease could not be ${this.#held === null ? "acquired" : "renewed"}: ${why}.`);
    this.#failure = why;
    return Math.max(SHORTEST_RETRY_MS, access.ttlMs / TRIES_PER_TTL);
  }

  #lapse(): void {
    this.#state = "lapsed";
    this.#reason = `lease_lapsed: the writer lease was not renewed in time${this.#failure === null ? "" : ` (${this.#failure})`}`;
    this.#options.report(`Stopped writing: ${this.#reason}.`);
    this.#ask(0);
  }

  /** Closes what was not renewed for the grace. */
  #isOverdue(): boolean {
    if (this.state !== "lapsed" || this.#clock.monotonic() < this.#until + this.#options.graceMs) return false;
    // A process that stood still for longer than the grace has not been refused by anybody yet: the controller is asked once.
    if (this.#failure === null) return false;
    this.#lose("lease_given_up", `the writer lease was not renewed for ${this.#options.graceMs} ms after it lapsed`);
    return true;
  }

  #lose(code: string, sentence: string): void {
    if (this.#state === "lost" || this.#state === "none") return;
    this.#state = "lost";
    this.#reason = `${code}: ${sentence}`;
    this.#timer?.cancel();
    this.#options.report(`Stopped for good: ${this.#reason}.`);
    this.#wake();
    this.#options.onLost();
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
  }
}
