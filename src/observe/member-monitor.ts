/**
 * What members of instances say of themselves, of those about which there is evidence: whether one still takes work. An adapter: it owns the timers and the
 * calls. Read from the member itself, for what its lead says of it lags.
 */
import type { InstanceDriver, MemberTarget } from "../drivers/port.ts";
import type { Clock, Timer } from "../kernel/clock.ts";
import type { MemberStateSeen } from "../plan/snapshot.ts";

const EVERY_MS = 1_000;
/** One that was told is soon in another state. */
const FIRST_AGAIN_MS = 250;

export interface WatchedMember {
  readonly podUid: string;
  readonly target: MemberTarget;
}

interface Entry {
  watched: WatchedMember;
  readonly pool: string;
  seen: MemberStateSeen | undefined;
  timer: Timer | undefined;
}

export interface MemberMonitorParts {
  readonly driver: Pick<InstanceDriver, "memberState">;
  readonly clock: Clock;
  /** One is in another state. */
  readonly onChange: (pool: string) => void;
}

export class MemberMonitor {
  readonly #parts: MemberMonitorParts;
  readonly #entries = new Map<string, Entry>();

  constructor(parts: MemberMonitorParts) {
    this.#parts = parts;
  }

  /** Follows exactly these members of the pool from now on. */
  follow(pool: string, watched: readonly WatchedMember[]): void {
    const wanted = new Set(watched.map(({ podUid }) => podUid));
    for (const [uid, entry] of this.#entries) if (entry.pool === pool && !wanted.has(uid)) this.#drop(uid);
    for (const each of watched) this.#keep(pool, each);
  }

  forget(pool: string): void {
    this.follow(pool, []);
  }

  /** Undefined: nobody has asked it yet. */
  stateOf(podUid: string): MemberStateSeen | undefined {
    return this.#entries.get(podUid)?.seen;
  }

  stop(): void {
    for (const uid of [...this.#entries.keys()]) this.#drop(uid);
  }

  #keep(pool: string, watched: WatchedMember): void {
    const known = this.#entries.get(watched.podUid);
    if (known !== undefined) {
      known.watched = watched;
      return;
    }
    const entry: Entry = { watched, pool, seen: undefined, timer: undefined };
    this.#entries.set(watched.podUid, entry);
    this.#schedule(entry, 0);
  }

  #drop(uid: string): void {
    this.#entries.get(uid)?.timer?.cancel();
    this.#entries.delete(uid);
  }

  #schedule(entry: Entry, delayMs: number): void {
    entry.timer = this.#parts.clock.after(delayMs, () => void this.#look(entry));
  }

  async #look(entry: Entry): Promise<void> {
    const { driver, clock, onChange } = this.#parts;
    const { podUid, target } = entry.watched;
    // Why one gives no answer says the step that calls it.
    const answer = await driver.memberState?.(target).catch(() => undefined);
    if (this.#entries.get(podUid) !== entry) return;
    const state = answer ?? "silent";
    const isNews = entry.seen?.state !== state;
    if (isNews) entry.seen = { state, since: clock.now() };
    this.#schedule(entry, isNews ? FIRST_AGAIN_MS : EVERY_MS);
    if (isNews) onChange(entry.pool);
  }
}
