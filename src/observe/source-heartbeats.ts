/**
 * When each source of notices was last heard. A queue is heard when it answers, an agent when it reports; a webhook is heard only when it has something to
 * say, so its silence means nothing.
 *
 * Kept in memory, per replica: an agent may turn to another replica, so an alert takes the least silence over all of them.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import type { SenderState } from "../model/sender.ts";

/** What metrics, `relevo get sources` and doctor ask. */
export interface SourceHeartbeats {
  senders(): readonly SenderState[];
  /** By source: of the sender that was heard last. */
  summary(): readonly SourceSummary[];
}

export interface SourceSummary {
  readonly source: string;
  readonly senders: number;
  readonly silent: number;
  readonly lastHeardAt: Instant | null;
  /** The first trouble that is told. */
  readonly trouble: string | null;
}

interface Sender {
  readonly source: string;
  readonly from: string;
  readonly expectedSince: number;
  heardAt: Instant | null;
  /** On the monotonic clock. */
  heard: number | null;
  everyMs: number;
  trouble: string | null;
}

const SILENT_AFTER = 3;
const MAX_SENDERS = 20_000;
/** A sender that was silent so long is forgotten unless it is configured: its node is gone, or it turned to another replica. */
const FORGET_AFTER_MS = 60 * 60_000;

export class HeartbeatRegistry implements SourceHeartbeats {
  readonly #clock: Clock;
  readonly #senders = new Map<string, Sender>();
  readonly #configured = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A sender that was configured: silent also before it was heard for the first time, and never forgotten. */
  expect(source: string, from: string, everyMs: number): void {
    this.#configured.add(keyOf(source, from));
    this.#sender(source, from, everyMs);
  }

  heard(source: string, from: string, everyMs: number, trouble: string | null = null): void {
    const sender = this.#sender(source, from, everyMs);
    sender.heardAt = this.#clock.now();
    sender.heard = this.#clock.monotonic();
    sender.everyMs = everyMs;
    sender.trouble = trouble;
    // To the end of the map: at its beginning is who was silent longest.
    const key = keyOf(source, from);
    this.#senders.delete(key);
    this.#senders.set(key, sender);
  }

  /** It has not been heard by this. */
  troubled(source: string, from: string, trouble: string): void {
    const sender = this.#senders.get(keyOf(source, from));
    if (sender) sender.trouble = trouble;
  }

  senders(): readonly SenderState[] {
    const now = this.#clock.monotonic();
    for (const [key, sender] of this.#senders)
      if (!this.#configured.has(key) && now - (sender.heard ?? sender.expectedSince) > FORGET_AFTER_MS) this.#senders.delete(key);
    return [...this.#senders.values()].map(({ source, from, heardAt, heard, expectedSince, everyMs, trouble }) => ({
      source,
      from,
      lastHeardAt: heardAt,
      everyMs,
      isSilent: now - (heard ?? expectedSince) > everyMs * SILENT_AFTER,
      trouble,
    }));
  }

  summary(): readonly SourceSummary[] {
    const all = this.senders();
    return [...new Set(all.map(({ source }) => source))].toSorted().map((source) => {
      const ofSource = all.filter((each) => each.source === source);
      const heard = ofSource.flatMap(({ lastHeardAt }) => lastHeardAt ?? []);
      return {
        source,
        senders: ofSource.length,
        silent: ofSource.filter(({ isSilent }) => isSilent).length,
        lastHeardAt: heard.length === 0 ? null : Math.max(...heard),
        trouble: ofSource.find(({ trouble }) => trouble !== null)?.trouble ?? null,
      };
    });
  }

  #sender(source: string, from: string, everyMs: number): Sender {
    const key = keyOf(source, from);
    const known = this.#senders.get(key);
    if (known) return known;
    const made: Sender = { source, from, expectedSince: this.#clock.monotonic(), heardAt: null, heard: null, everyMs, trouble: null };
    // Whoever was silent longest makes room.
    if (this.#senders.size >= MAX_SENDERS)
      for (const oldest of this.#senders.keys()) {
        if (this.#configured.has(oldest)) continue;
        this.#senders.delete(oldest);
        break;
      }
    this.#senders.set(key, made);
    return made;
  }
}

const keyOf = (source: string, from: string): string => `${source} ${from}`;
