/**
 * Keys that want to be looked at: each at most once at a time, coalesced while it waits, again at a time that it names. A run that throws is tried again
 * after a pause that doubles, so that one bad key never stops the others. A run that costs much may ask for a gap after it: what calls meanwhile waits for
 * its end and is looked at in one go.
 */
import type { Clock, Instant, Timer } from "../kernel/clock.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

interface Entry {
  running: boolean;
  /** Since the last run began, and not only its own time came. */
  called: boolean;
  again: boolean;
  failures: number;
  timer: Timer | undefined;
  timerAt: Instant;
  /** On the monotonic clock: not run before. */
  restsUntil: number;
}

const NO_GAP = (): number => 0;

export class WorkQueue {
  readonly #clock: Clock;
  readonly #run: (key: string, isCalled: boolean) => Promise<Instant | null>;
  readonly #onError: (key: string, error: unknown) => void;
  readonly #gapMs: (key: string) => number;
  readonly #entries = new Map<string, Entry>();
  #stopped = false;

  /**
   * `run` returns when it wants to look again at the latest; null when only a wake-up matters. It hears whether somebody called since it was begun last, or it
   * failed; else it runs because its time has come. `gapMs`: from the end of a run to the next.
   */
  constructor(
    clock: Clock,
    run: (key: string, isCalled: boolean) => Promise<Instant | null>,
    onError: (key: string, error: unknown) => void,
    gapMs: (key: string) => number = NO_GAP,
  ) {
    this.#clock = clock;
    this.#run = run;
    this.#onError = onError;
    this.#gapMs = gapMs;
  }

  wake(key: string): void {
    if (this.#stopped) return;
    const entry = this.#entryOf(key);
    entry.called = true;
    this.#runSoon(key, entry);
  }

  forget(key: string): void {
    this.#entries.get(key)?.timer?.cancel();
    this.#entries.delete(key);
  }

  stop(): void {
    this.#stopped = true;
    for (const key of [...this.#entries.keys()]) this.forget(key);
  }

  #entryOf(key: string): Entry {
    const known = this.#entries.get(key);
    if (known) return known;
    const fresh: Entry = {
      running: false,
      called: false,
      again: false,
      failures: 0,
      timer: undefined,
      timerAt: Number.POSITIVE_INFINITY,
      restsUntil: 0,
    };
    this.#entries.set(key, fresh);
    return fresh;
  }

  #runSoon(key: string, entry: Entry): void {
    if (entry.running) entry.again = true;
    else this.#startWhenRested(key, entry);
  }

  #startWhenRested(key: string, entry: Entry): void {
    const restMs = Math.ceil(entry.restsUntil - this.#clock.monotonic());
    if (restMs > 0) this.#wakeAt(key, entry, this.#clock.now() + restMs);
    else void this.#start(key, entry);
  }

  async #start(key: string, entry: Entry): Promise<void> {
    entry.running = true;
    entry.timer?.cancel();
    entry.timerAt = Number.POSITIVE_INFINITY;
    let gapMs: number;
    do {
      entry.again = false;
      await this.#look(key, entry);
      gapMs = this.#gapMs(key);
    } while (entry.again && entry.failures === 0 && gapMs === 0 && !this.#stopped);
    entry.running = false;
    entry.restsUntil = this.#clock.monotonic() + gapMs;
    if (entry.again) this.#wakeAt(key, entry, this.#clock.now() + (entry.failures === 0 ? gapMs : FIRST_PAUSE_MS));
  }

  async #look(key: string, entry: Entry): Promise<void> {
    const isCalled = entry.called;
    entry.called = false;
    try {
      const lookAgainAt = await this.#run(key, isCalled);
      entry.failures = 0;
      if (lookAgainAt !== null) this.#wakeAt(key, entry, lookAgainAt);
    } catch (error) {
      entry.failures += 1;
      entry.called = true;
      this.#onError(key, error);
      this.#wakeAt(key, entry, this.#clock.now() + Math.min(FIRST_PAUSE_MS * 2 ** (entry.failures - 1), LONGEST_PAUSE_MS));
    }
  }

  #wakeAt(key: string, entry: Entry, at: Instant): void {
    if (this.#stopped || at >= entry.timerAt || this.#entries.get(key) !== entry) return;
    entry.timer?.cancel();
    entry.timerAt = at;
    entry.timer = this.#clock.after(Math.max(0, at - this.#clock.now()), () => {
      entry.timerAt = Number.POSITIVE_INFINITY;
      if (!this.#stopped) this.#runSoon(key, entry);
    });
  }
}
