/** One connection to Redis for all signals that are read there: made by the look that needs it, and made anew by the next one when it broke. */
import { readFile } from "node:fs/promises";
import type { RedisClientOptions } from "@redis/client";
import type { DemandTrouble } from "../../model/demand.ts";
import type { ConnectionOf } from "../connections.ts";
import { endedBy } from "../ended-by.ts";
import { demandError, unreachable } from "../errors.ts";
import { SharedClients } from "../shared-clients.ts";

const CONNECT_LIMIT_MS = 5_000;

/** What is used of the client. */
export interface RedisCommands {
  readonly isReady: boolean;
  /** Written at once, so that Redis does them one after the other; rejects with the first answer that is an error. */
  together(commands: readonly (readonly string[])[]): Promise<readonly unknown[]>;
  destroy(): void;
}

export type OpenRedis = (connection: ConnectionOf<"redis">) => Promise<RedisCommands>;

export class RedisLink {
  readonly #connection: ConnectionOf<"redis">;
  readonly #open: OpenRedis;
  #client: RedisCommands | undefined;
  #opening: Promise<RedisCommands> | undefined;
  #isClosed = false;

  constructor(connection: ConnectionOf<"redis">, open: OpenRedis) {
    this.#connection = connection;
    this.#open = open;
  }

  /** Errors: those of `DemandSource`. */
  async together(commands: readonly (readonly string[])[], signal: AbortSignal): Promise<readonly unknown[]> {
    try {
      const client = await endedBy(signal, this.#ready(), "Redis");
      return await endedBy(signal, client.together(commands), "Redis", () => this.#drop(client));
    } catch (error) {
      throw asTrouble(error, signal);
    }
  }

  close(): void {
    this.#isClosed = true;
    if (this.#client !== undefined) this.#drop(this.#client);
  }

  #ready(): Promise<RedisCommands> {
    if (this.#client?.isReady === true) return Promise.resolve(this.#client);
    if (this.#client !== undefined) this.#drop(this.#client);
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<RedisCommands> {
    const client = await this.#open(this.#connection);
    if (this.#isClosed) client.destroy();
    else this.#client = client;
    return client;
  }

  /** One that does not answer is not asked again: behind its answer all others would wait. */
  #drop(client: RedisCommands): void {
    client.destroy();
    if (this.#client === client) this.#client = undefined;
  }
}

export const redisLinks = new SharedClients<ConnectionOf<"redis">, RedisLink>(
  async (connection) => new RedisLink(connection, openRedis),
  (link) => link.close(),
);

/** Rejects with what the server or the socket said. */
export async function openRedis({ url, tls }: ConnectionOf<"redis">): Promise<RedisCommands> {
  const { createClient } = await import("@redis/client");
  const isEncrypted = tls !== undefined || url.startsWith("rediss:");
  const ca = tls?.caFile === undefined ? undefined : await readFile(tls.caFile, "utf8");
  const timing = { connectTimeout: CONNECT_LIMIT_MS, reconnectStrategy: false as const };
  const options: RedisClientOptions = {
    url: isEncrypted ? url.replace(/^redis:/, "rediss:") : url,
    disableOfflineQueue: true,
    socket: isEncrypted
      ? {
          ...timing,
          tls: true as const,
          ...(ca === undefined ? {} : { ca }),
          ...(tls?.serverName === undefined ? {} : { servername: tls.serverName }),
        }
      : timing,
  };
  const client = createClient(options);
  // Told by the call that is on its way, or by the next one.
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (error) {
    if (client.isOpen) client.destroy();
    throw error;
  }
  return {
    get isReady() {
      return client.isReady;
    },
    together: async (commands) => {
      const multi = client.multi();
      for (const command of commands) multi.addCommand([...command]);
      return multi.execAsPipeline();
    },
    destroy: () => {
      if (client.isOpen) client.destroy();
    },
  };
}

/** By the first word of the error: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors. */
const TROUBLES: Readonly<Record<string, readonly [DemandTrouble, string]>> = {
  NOAUTH: ["credentials_refused", "Redis demands credentials"],
  WRONGPASS: ["credentials_refused", "Redis refuses our credentials"],
  NOPERM: ["credentials_refused", "the user of Redis may not do this"],
  WRONGTYPE: ["type_changed", "the key holds another type"],
};

function asTrouble(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof Error && !signal.aborted) {
    const [first = ""] = error.message.split(" ", 1);
    const [trouble, sentence] = TROUBLES[first] ?? [];
    if (trouble !== undefined && sentence !== undefined) return demandError(trouble, sentence, { found: error.message, cause: error });
    if (/no such key/i.test(error.message)) return demandError("missing", "there is no such key", { found: error.message });
    // The words of Redis 5 and older, and of a server without a password that is given one.
    if (/invalid password|AUTH.*(without any password|called)/i.test(error.message))
      return demandError("credentials_refused", "Redis refuses our credentials", { found: error.message });
  }
  return unreachable("Redis", error, signal);
}
