/** Asks a running server what it has: by SQL, by what the engine says of a query of ours, and by a call that changes nothing. */
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { engineAt } from "../../drivers/trino/engine.ts";
import { TrinoHttp } from "../../drivers/trino/http.ts";
import { workerAt } from "../../drivers/trino/worker.ts";
import { exchangeFolder } from "../gate/exchange-folder.ts";
import type { ExchangeListing } from "../gate/ports.ts";
import { trinoEngine } from "../gate/trino-engine.ts";
import { RETRY_POLICIES, type RetryPolicy } from "../../model/trino.ts";
import type { ProcessSays } from "./judge.ts";
import type { ServerProbe, ServerProbes, SessionProperty } from "./ports.ts";

/** Its rows go from one stage to another, so that a policy which needs an exchange fails without one. */
const SHUFFLE = "SELECT x % 7, count(*) FROM TABLE(sequence(1, 2000000)) AS t(x) GROUP BY x % 7";
const SHUFFLE_ROWS = 7;
const LIST_EVERY_MS = 50;
const PROBE_LIMIT_MS = 120_000;

const sessionRows = z.array(z.tuple([z.string(), z.string(), z.string()]).rest(z.unknown()));

export interface ProbeOptions {
  readonly clock: Clock;
  /** Undefined: such a location cannot be listed from here. */
  readonly listingAt?: (location: string) => ExchangeListing | undefined;
}

export function serverProbes({ clock, listingAt = folderAt }: ProbeOptions): ServerProbes {
  return (base, user) => probeAt(base, user, clock, listingAt);
}

export interface AskedProcess {
  readonly host: string;
  readonly port: number;
  readonly user: string;
}

/** What this coordinator retries, as it took it for a query that shuffled between workers; null: it does not tell. */
export async function askRetryPolicy(probes: ServerProbes, { host, port, user }: AskedProcess): Promise<RetryPolicy | null> {
  const probe = probes(`http://${host.includes(":") ? `[${host}]` : host}:${port}`, user);
  try {
    const told = await probe.retryPolicy();
    return RETRY_POLICIES.find((each) => each === told) ?? null;
  } finally {
    await probe.close();
  }
}

/** A folder, as it is seen from here. */
export function folderAt(location: string): ExchangeListing | undefined {
  if (location.startsWith("file://")) return exchangeFolder(new URL(location).pathname);
  return location.startsWith("/") ? exchangeFolder(location) : undefined;
}

function probeAt(base: string, user: string, clock: Clock, listingAt: (location: string) => ExchangeListing | undefined): ServerProbe {
  const http = new TrinoHttp(clock);
  const engine = trinoEngine({ base, user, clock });

  /** Settles when the query has ended well. Throws `effect_probe_failed`. */
  async function shuffle(meanwhile?: (queryId: string) => Promise<void>): Promise<string> {
    const statement = await engine.start(SHUFFLE, {});
    const until = clock.monotonic() + PROBE_LIMIT_MS;
    let rows = 0;
    for (let page = await statement.next(); page !== undefined; page = await statement.next()) {
      if (page.error !== null) throw failed(base, `${page.error.name}: ${page.error.message}`);
      rows += page.rows.length;
      await meanwhile?.(statement.queryId);
      if (clock.monotonic() < until) continue;
      await statement.cancel();
      throw failed(base, `no end within ${PROBE_LIMIT_MS / 1_000} s`);
    }
    if (rows !== SHUFFLE_ROWS) throw failed(base, `${rows} rows instead of ${SHUFFLE_ROWS}`);
    return statement.queryId;
  }

  return {
    async session() {
      const { rows } = await engineAt({ base, user, clock, http }).read("SHOW SESSION");
      const parsed = sessionRows.safeParse(rows);
      if (!parsed.success) throw new RelevoError("instance_answer_invalid", `SHOW SESSION at ${base} is not that of Trino.`);
      return new Map<string, SessionProperty>(parsed.data.map(([name, value, byDefault]) => [name, { value, byDefault }]));
    },

    async retryPolicy() {
      return (await engine.query(await shuffle())).retryPolicy;
    },

    async exchange(location): Promise<ProcessSays> {
      const listing = listingAt(location);
      if (listing === undefined) return { says: "nothing", where: `${location} cannot be listed from here` };
      let most = 0;
      let isOver = false;
      let queryOf: string | undefined;
      const watch = async (): Promise<void> => {
        while (!isOver) {
          if (queryOf !== undefined) most = Math.max(most, (await listing.list(queryOf)).length);
          await clock.sleep(LIST_EVERY_MS);
        }
      };
      const ended = shuffle(async (id) => void (queryOf = id)).finally(() => (isOver = true));
      const [queryId] = await Promise.all([ended, watch()]);
      return most > 0
        ? { says: "happened", where: `${most} files were listed at ${location} during query ${queryId}` }
        : { says: "not", where: `no file was listed at ${location} during query ${queryId}` };
    },

    mayManage: () => workerAt({ base, user, clock, http }).maySetState(),

    async close() {
      await engine.close();
      await http.destroy();
    },
  };
}

function failed(base: string, found: string): RelevoError {
  return new RelevoError("effect_probe_failed", `The query by which the server at ${base} is proven did not end well.`, {
    found,
    todo: "run a statement there by yourself, and see the server's log",
  });
}
