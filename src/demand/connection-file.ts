/** The connections as their file says them now: it is read again and again, so that a secret that is exchanged, in it or in a file that it names, counts soon. */
import type { Clock, Timer } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";
import type { Connections } from "./availability.ts";
import { type Connection, isAt } from "./connections.ts";

const LOOK_EVERY_MS = 5_000;

export interface ConnectionFileParts {
  /** Throws `connections_invalid`. */
  readonly read: () => readonly Connection[];
  readonly clock: Clock;
  readonly log: (level: "info" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

export class ConnectionFile implements Connections {
  readonly #parts: ConnectionFileParts;
  readonly #listeners = new Set<() => void>();
  #known: ReadonlyMap<string, Connection>;
  #trouble: string | undefined;
  #timer: Timer | undefined;

  /** Throws `connections_invalid`: what is wrong at the start is told to whoever starts it. */
  constructor(parts: ConnectionFileParts) {
    this.#parts = parts;
    this.#known = byName(parts.read());
    this.#schedule();
  }

  find(name: string, site?: string): Connection | undefined {
    const named = this.#known
      .values()
      .filter((each) => each.name === name)
      .toArray();
    return named.find((each) => site === undefined || isAt(each, site)) ?? named[0];
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Why the file that is there now is not used; undefined: it is. */
  trouble(): string | undefined {
    return this.#trouble;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#listeners.clear();
  }

  #schedule(): void {
    this.#timer = this.#parts.clock.after(LOOK_EVERY_MS, () => {
      this.#look();
      this.#schedule();
    });
  }

  /** A change that is wrong leaves what was: a slip of the pen must not blind all pools. */
  #look(): void {
    const { read, log } = this.#parts;
    try {
      const next = byName(read());
      this.#trouble = undefined;
      const names = [...new Set([...this.#known.keys(), ...next.keys()])];
      const changed = names.filter((name) => JSON.stringify(this.#known.get(name)) !== JSON.stringify(next.get(name)));
      if (changed.length === 0) return;
      // Whose connection is the same goes on with it.
      this.#known = new Map(
        [...next].map(([name, connection]) => [name, changed.includes(name) ? connection : (this.#known.get(name) ?? connection)]),
      );
      log("info", "connections were read again", { changed: changed.map((key) => key.trimEnd()) });
      for (const listener of this.#listeners) listener();
    } catch (error) {
      const trouble = describeError(error);
      if (trouble !== this.#trouble) log("error", "the connections from before stay", { trouble });
      this.#trouble = trouble;
    }
  }
}

function byName(connections: readonly Connection[]): ReadonlyMap<string, Connection> {
  return new Map(connections.map((each) => [`${each.name} ${each.sites?.join(",") ?? ""}`, each]));
}
