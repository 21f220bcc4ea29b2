/**
 * The controller's own look at each instance's process: is it well, and, while it drains, what does it say is unfinished. An adapter: it owns the timers and
 * the calls; what follows from the answers is the planner's.
 *
 * 1. One failed answer may be a hiccup: only the second in a row means failing, since the first was asked for: a process that hangs lets every question
 *    wait for its whole limit, and that is part of the time that it is gone. One passed answer means passing.
 * 2. An answer counts for the process that was asked: a new incarnation begins at unknown.
 */
import type { InstanceDriver, InstanceHealth, InstanceTarget } from "../drivers/port.ts";
import { LEASE_LAPSED } from "../model/protocol.ts";
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { UNHEALTHY } from "../plan/lost-after.ts";
import type { HealthState } from "../plan/snapshot.ts";

/** Before the first pass, and while failing: soon. */
const EAGER_MS = 150;
const DRAINING_MS = 250;

export interface Watched {
  readonly instance: string;
  readonly incarnation: number;
  readonly target: InstanceTarget;
  /** How often, once it passes. */
  readonly everyMs: number;
  /** Also ask for its obligations. */
  readonly isDraining: boolean;
}

interface Entry {
  watched: Watched;
  health: HealthState;
  failures: number;
  /** When the first of them was asked for, on the clock that nobody sets: an hour that was only put forward makes nobody unreachable. */
  failedFrom: number;
  obligations: number | null;
  timer: Timer | undefined;
}

export class HealthMonitor {
  readonly #driver: InstanceDriver;
  readonly #clock: Clock;
  readonly #onChange: (instance: string) => void;
  readonly #entries = new Map<string, Entry>();

  constructor(driver: InstanceDriver, clock: Clock, onChange: (instance: string) => void) {
    this.#driver = driver;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  /** Follows exactly these instances of the pool from now on. */
  follow(pool: ReadonlySet<string>, watched: readonly Watched[]): void {
    const wanted = new Map(watched.map((each) => [each.instance, each]));
    for (const instance of pool) if (!wanted.has(instance)) this.#drop(instance);
    for (const each of watched) this.#keep(each);
  }

  healthOf(instance: string, incarnation: number): HealthState {
    const entry = this.#entries.get(instance);
    if (entry?.watched.incarnation !== incarnation) return { state: "unknown" };
    return entry.health.state === "failing" ? { ...entry.health, since: this.#failingSince(entry) } : entry.health;
  }

  /** It fails, and nobody knows whether it would have answered: from now on it counts. */
  beginAnew(instance: string): void {
    const entry = this.#entries.get(instance);
    if (entry !== undefined) entry.failedFrom = this.#clock.monotonic();
  }

  /** Null when the instance does not say, or was not asked yet. */
  obligationsOf(instance: string, incarnation: number): number | null {
    const entry = this.#entries.get(instance);
    return entry && entry.watched.incarnation === incarnation ? entry.obligations : null;
  }

  stop(): void {
    for (const instance of [...this.#entries.keys()]) this.#drop(instance);
  }

  #keep(watched: Watched): void {
    const entry = this.#entries.get(watched.instance);
    if (entry && entry.watched.incarnation === watched.incarnation) {
      const beganToDrain = watched.isDraining && !entry.watched.isDraining;
      entry.watched = watched;
      if (beganToDrain) this.#schedule(entry, 0);
      return;
    }
    if (entry) this.#drop(watched.instance);
    const fresh: Entry = { watched, health: { state: "unknown" }, failures: 0, failedFrom: 0, obligations: null, timer: undefined };
    this.#entries.set(watched.instance, fresh);
    this.#schedule(fresh, 0);
  }

  #drop(instance: string): void {
    this.#entries.get(instance)?.timer?.cancel();
    this.#entries.delete(instance);
  }

  #schedule(entry: Entry, delayMs: number): void {
    entry.timer?.cancel();
    entry.timer = this.#clock.after(delayMs, () => void this.#look(entry));
  }

  async #look(entry: Entry): Promise<void> {
    const { watched } = entry;
    const askedAt = this.#clock.monotonic();
    const [health, obligations] = await Promise.all([this.#askHealth(watched), watched.isDraining ? this.#askObligations(watched) : null]);
    if (this.#entries.get(watched.instance) !== entry) return;
    const before = { health: entry.health, obligations: entry.obligations };
    this.#take(entry, health, askedAt);
    entry.obligations = obligations;
    if (isNews(before.health, entry.health) || entry.obligations !== before.obligations) this.#onChange(watched.instance);
    this.#schedule(
      entry,
      entry.watched.isDraining
        ? DRAINING_MS
        : entry.health.state === "passing" && entry.failures === 0
          ? Math.max(entry.watched.everyMs, EAGER_MS)
          : EAGER_MS,
    );
  }

  #take(entry: Entry, answer: { readonly ok: boolean; readonly bootId: string | null; readonly code: string }, askedAt: number): void {
    if (answer.ok) {
      entry.failures = 0;
      if (entry.health.state !== "passing" || entry.health.bootId !== answer.bootId)
        entry.health = { state: "passing", since: this.#clock.now(), bootId: answer.bootId };
      return;
    }
    // One that answered that it only lacks its lease was there: its silence begins now.
    const beginsNow = entry.failures === 0 || (codeOfState(entry.health) === LEASE_LAPSED && answer.code !== LEASE_LAPSED);
    if (beginsNow) entry.failedFrom = askedAt;
    entry.failures += 1;
    if (entry.failures >= 2 && codeOfState(entry.health) !== answer.code)
      entry.health = { state: "failing", since: this.#failingSince(entry), code: answer.code };
  }

  #failingSince(entry: Entry): Instant {
    return this.#clock.now() - Math.round(this.#clock.monotonic() - entry.failedFrom);
  }

  async #askHealth({ target }: Watched): Promise<{ readonly ok: boolean; readonly bootId: string | null; readonly code: string }> {
    try {
      const health = await this.#driver.health(target);
      return { ok: health.ok, bootId: health.bootId, code: codeOf(health) };
    } catch (error) {
      return { ok: false, bootId: null, code: error instanceof RelevoError ? error.code : "check_failed" };
    }
  }

  async #askObligations({ target }: Watched): Promise<number | null> {
    try {
      const obligations = await this.#driver.obligations(target);
      return obligations === null ? null : obligations.requests + obligations.upgraded + obligations.transactions;
    } catch {
      // No answer is no proof of idleness: the gateway's counts decide, and a lost process is noticed by its health.
      return null;
    }
  }
}

/** Another process at the same address is news too. */
function isNews(before: HealthState, after: HealthState): boolean {
  return before.state !== after.state || codeOfState(before) !== codeOfState(after) || bootOf(before) !== bootOf(after);
}

function bootOf(health: HealthState): string | null {
  return health.state === "passing" ? health.bootId : null;
}

/** Undefined while it is not failing. */
function codeOfState(health: HealthState): string | undefined {
  return health.state === "failing" ? health.code : undefined;
}

/** One that only lacks its writer lease is there and answers: whether it is to be given up is for the judge of the leases. */
function codeOf({ ok, reason }: InstanceHealth): string {
  if (ok) return "ok";
  return reason?.startsWith(LEASE_LAPSED) ? LEASE_LAPSED : UNHEALTHY;
}
