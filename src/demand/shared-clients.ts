/**
 * One client for all signals of a connection: a thousand pools hold no thousand sockets to one server. It is opened by the first look that needs it, one that
 * could not be opened is tried anew by the next look, and it is closed with the last signal.
 */
import { demandError } from "./errors.ts";

interface Shared<T> {
  users: number;
  client: Promise<T> | undefined;
}

export interface ClientLease<T> {
  /** Rejects with what opening threw. */
  client(): Promise<T>;
  /** Settles when the client is closed, if this was its last user. Harmless twice. */
  release(): Promise<void>;
}

/** `P`: what opening needs besides; of the first who asks. */
export class SharedClients<C extends object, T, P = void> {
  readonly #open: (connection: C, ports: P) => Promise<T>;
  readonly #close: (client: T) => unknown;
  readonly #shared = new WeakMap<C, Shared<T>>();

  constructor(open: (connection: C, ports: P) => Promise<T>, close: (client: T) => unknown) {
    this.#open = open;
    this.#close = close;
  }

  lease(connection: C, ports: P): ClientLease<T> {
    const shared = this.#shared.get(connection) ?? { users: 0, client: undefined };
    this.#shared.set(connection, shared);
    shared.users++;
    let isHeld = true;
    return {
      client: async () => {
        // Nobody would close it.
        if (!isHeld) throw demandError("unreachable", "the signal is closed");
        return (shared.client ??= this.#opened(connection, ports, shared));
      },
      release: async () => {
        if (!isHeld) return;
        isHeld = false;
        if (--shared.users > 0) return;
        const { client } = shared;
        shared.client = undefined;
        if (client === undefined) return;
        const opened = await client.catch(() => undefined); // whoever asked for it was told
        if (opened !== undefined) await this.#close(opened);
      },
    };
  }

  async #opened(connection: C, ports: P, shared: Shared<T>): Promise<T> {
    try {
      return await this.#open(connection, ports);
    } catch (error) {
      shared.client = undefined;
      throw error;
    }
  }
}
