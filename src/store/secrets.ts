/** Secrets that all replicas must have in common, kept beside what they guard: who restores the one has the other. */
import type { Kysely } from "kysely";
import { prepare } from "./prepared.ts";
import type { MetaTable, Schema } from "./schema.ts";

/** Rows of `meta` with such a name are secrets. */
export const SECRET_PREFIX = "secret:";

export class SecretRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  /** The first that was offered under the name. */
  async keep(name: string, offered: string): Promise<string> {
    await this.#queries.insert.run(this.#db, { name: SECRET_PREFIX + name, value: offered });
    const [row] = await this.#queries.find.rows(this.#db, { name: SECRET_PREFIX + name });
    if (row === undefined) throw new Error(`the secret ${name} is gone in the transaction that kept it`);
    return row.value;
  }
}

function queriesOf(db: Kysely<Schema>) {
  return {
    insert: prepare<MetaTable>((p) =>
      db
        .insertInto("meta")
        .values({ name: p.name, value: p.value })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    find: prepare<{ name: string }, { value: string }>((p) => db.selectFrom("meta").select("value").where("name", "=", p.name)),
  };
}
