/**
 * What the controllers did, from the store itself: triggers write down every change, with the connection that made it and the pool's authority at that moment.
 * Changes of one pool are serialised by its row, so their numbers are in the order of the commits.
 */
import pg from "pg";
import { mayMove, type Phase } from "../../src/model/phase.ts";

export interface HistoryChange {
  readonly seq: number;
  /** ms since the epoch, on the database's clock. */
  readonly at: number;
  readonly transaction: string;
  /** Which replica: its `application_name`. */
  readonly by: string;
  readonly table: string;
  readonly op: "INSERT" | "UPDATE" | "DELETE";
  readonly pool: string;
  readonly was: Readonly<Record<string, unknown>> | null;
  readonly is: Readonly<Record<string, unknown>> | null;
  readonly epoch: readonly [era: number, counter: number];
  readonly owner: string | null;
}

/** Of the controllers' schema. Those that say something of a pool; the writer leases are renewed by any replica. */
const WATCHED = ["pools", "instances", "evidence", "steps"];

export class History {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async install(url: string, schema = "relevo"): Promise<History> {
    const { hostname, port, username, pathname } = new URL(url);
    const client = new pg.Client({ host: hostname, port: Number(port), user: username, database: pathname.slice(1) });
    await client.connect();
    await client.query(`
      create schema history;
      create table history.changes (
        seq bigserial primary key, at timestamptz not null default clock_timestamp(), xid text not null, by text not null, tbl text not null, op text not null,
        pool text not null, was jsonb, is_now jsonb, era bigint, counter bigint, owner text);
      create function history.note() returns trigger language plpgsql as $$
        declare
          was jsonb := case when tg_op = 'INSERT' then null else to_jsonb(old) end;
          is_now jsonb := case when tg_op = 'DELETE' then null else to_jsonb(new) end;
          of_pool text := coalesce(is_now, was) ->> 'pool';
        begin
          insert into history.changes (xid, by, tbl, op, pool, was, is_now, era, counter, owner)
            select pg_current_xact_id()::text, current_setting('application_name'), tg_table_name, tg_op, of_pool, was, is_now, epoch_era, epoch_counter, owner
            from "${schema}".pools where pool = of_pool;
          return null;
        end $$;
      ${WATCHED.map((table) => `create trigger history after insert or update or delete on "${schema}"."${table}" for each row execute function history.note();`).join("\n")}
    `);
    return new History(client);
  }

  async read(): Promise<readonly HistoryChange[]> {
    const { rows } = await this.#client.query<Record<string, unknown>>("select * from history.changes order by seq");
    return rows.map((row) => ({
      seq: Number(row["seq"]),
      at: (row["at"] as Date).getTime(),
      transaction: String(row["xid"]),
      by: String(row["by"]),
      table: String(row["tbl"]),
      op: row["op"] as HistoryChange["op"],
      pool: String(row["pool"]),
      was: row["was"] as HistoryChange["was"],
      is: row["is_now"] as HistoryChange["is"],
      epoch: [Number(row["era"]), Number(row["counter"])],
      owner: row["owner"] as string | null,
    }));
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}

/** What of the history contradicts the promises; empty when nothing does. */
export function violationsOf(history: readonly HistoryChange[]): readonly string[] {
  const found: string[] = [];
  const epochs = new Map<string, readonly [number, number]>();
  const ended = new Map<string, string>();
  for (const change of history) {
    const { seq, by, table, op, pool, was, is, epoch, owner } = change;
    const where = `#${seq} ${by} ${op} ${table} of ${pool}`;
    const before = epochs.get(pool) ?? [0, 0];
    if (epoch[0] < before[0] || (epoch[0] === before[0] && epoch[1] < before[1]))
      found.push(`${where}: the epoch fell from ${before} to ${epoch} (I4)`);
    epochs.set(pool, epoch);
    if (table === "pools") {
      if (was !== null && is !== null && fell(was, is, "generation")) found.push(`${where}: the generation fell`);
      if (was !== null && is !== null && is["owner"] !== null && is["owner"] !== was["owner"] && is["owner"] !== by)
        found.push(`${where}: claimed for ${is["owner"]}`);
      continue;
    }
    // What is past its time is collected by anybody.
    if (op !== "DELETE" && owner !== by) found.push(`${where}: a commit of ${by} while ${owner} had it under ${epoch} (I4)`);
    if (table === "steps" && is !== null) {
      const id = `${pool} ${is["id"]}`;
      const state = String(is["state"]);
      if (ended.has(id) && (state === "unknown" || was?.["state"] !== state))
        found.push(`${where}: ${id} ended ${ended.get(id)} and is ${state} (I5)`);
      if (state !== "unknown" && state !== "held") ended.set(id, state);
    }
    if (
      table === "instances" &&
      was !== null &&
      is !== null &&
      was["phase"] !== is["phase"] &&
      !mayMove(was["phase"] as Phase, is["phase"] as Phase)
    )
      found.push(`${where}: ${is["id"]} moved from ${was["phase"]} to ${is["phase"]}`);
  }
  return found;
}

function fell(was: Readonly<Record<string, unknown>>, is: Readonly<Record<string, unknown>>, name: string): boolean {
  const [era, counter] = [`${name}_era`, `${name}_counter`];
  if (Number(is[era]) !== Number(was[era])) return Number(is[era]) < Number(was[era]);
  return Number(is[counter]) < Number(was[counter]);
}
