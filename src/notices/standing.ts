/**
 * From what metadata says at each look to what is worth telling: a pure state machine, the same for all clouds.
 *
 * 1. What stands is told once, however often it is seen: also when its time slides with each look. It is told again when it says something else, or a time
 *    that is nearer than any that was told.
 * 2. A look that failed says nothing, neither that something is there nor that it is gone.
 * 3. What is missing in several looks one after the other is gone, and that is told too: cancelled, or over.
 * 4. What stands is bounded; what is more is named as trouble.
 */
import type { Instant } from "../kernel/clock.ts";

/** One thing that metadata says now. */
export interface Said {
  /** The path that says it. */
  readonly kind: string;
  /** Which of several of this kind. */
  readonly part?: string;
  /** What it says, apart from the time: another text is another notice. */
  readonly meaning: string;
  /** The sender's own time of it, where it has one. */
  readonly time: Instant | null;
  readonly document: unknown;
  /** The machine goes because of it: whoever works on it is told at once. */
  readonly isGoing: boolean;
}

/** A look at one path: all that it says, or why it could not be read. */
export type Look = { readonly kind: string; readonly said: readonly Said[] } | { readonly kind: string; readonly failed: string };

/** Something to be told. */
export interface Telling {
  readonly kind: string;
  readonly part: string | undefined;
  readonly state: "present" | "gone";
  readonly document: unknown;
  readonly isGoing: boolean;
  /** When it was seen first, on the node's clock and on the monotonic one. */
  readonly seenAt: Instant;
  readonly seen: number;
}

interface Standing {
  said: Said;
  seenAt: Instant;
  seen: number;
  missed: number;
}

export interface StandingOptions {
  /** In how many looks one after the other a thing must be missing to be gone. */
  readonly goneAfter?: number;
}

const GONE_AFTER = 3;
/** A time that is nearer by less is the same one, written with less care. */
const NEARER_BY_MS = 2_000;
const MAX_STANDING = 64;

export class StandingNotices {
  readonly #goneAfter: number;
  readonly #standing = new Map<string, Standing>();
  #isFull = false;

  constructor({ goneAfter = GONE_AFTER }: StandingOptions = {}) {
    this.#goneAfter = goneAfter;
  }

  /** More was said than is kept. */
  get isFull(): boolean {
    return this.#isFull;
  }

  get standing(): readonly Said[] {
    return [...this.#standing.values()].map(({ said }) => said);
  }

  step(look: Look, now: Instant, monotonic: number): readonly Telling[] {
    if ("failed" in look) return [];
    const tellings: Telling[] = [];
    const seen = new Set<string>();
    for (const said of look.said) {
      const key = keyOf(said);
      seen.add(key);
      const known = this.#standing.get(key);
      if (known !== undefined) known.missed = 0;
      if (known !== undefined && isSame(known.said, said)) continue;
      if (known === undefined && this.#standing.size >= MAX_STANDING) {
        this.#isFull = true;
        continue;
      }
      const made = { said, seenAt: now, seen: monotonic, missed: 0 };
      this.#standing.set(key, made);
      tellings.push(tellingOf(made, "present"));
    }
    tellings.push(...this.#miss(look.kind, seen));
    if (this.#standing.size < MAX_STANDING) this.#isFull = false;
    return tellings;
  }

  #miss(kind: string, seen: ReadonlySet<string>): readonly Telling[] {
    return [...this.#standing].flatMap(([key, standing]) => {
      if (standing.said.kind !== kind || seen.has(key)) return [];
      standing.missed++;
      if (standing.missed < this.#goneAfter) return [];
      this.#standing.delete(key);
      return [tellingOf(standing, "gone")];
    });
  }
}

/** `known` holds the nearest time that was told. */
function isSame(known: Said, said: Said): boolean {
  if (known.meaning !== said.meaning) return false;
  if (said.time === null) return true;
  return known.time !== null && said.time > known.time - NEARER_BY_MS;
}

function tellingOf({ said: { kind, part, document, isGoing }, seenAt, seen }: Standing, state: Telling["state"]): Telling {
  return { kind, part, state, document, isGoing, seenAt, seen };
}

function keyOf({ kind, part }: Pick<Said, "kind" | "part">): string {
  return `${kind} ${part ?? ""}`;
}
