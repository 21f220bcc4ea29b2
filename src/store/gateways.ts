/** The gateway replicas that a seal must wait for. */
import type { Kysely } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import type { GatewayReplicaRecord } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { GatewayTable, Schema } from "./schema.ts";

export class GatewayRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  /** Registering again changes nothing. */
  async register(replica: string, now: Instant): Promise<void> {
    await this.#queries.insert.run(this.#db, { replica, registered_at: now });
  }

  async remove(replica: string): Promise<void> {
    await this.#queries.remove.run(this.#db, { replica });
  }

  async list(): Promise<GatewayReplicaRecord[]> {
    const rows = await this.#queries.list.rows(this.#db, {});
    return rows.map((row) => ({ id: row.replica, registeredAt: row.registered_at }));
  }
}

function queriesOf(db: Kysely<Schema>) {
  return {
    insert: prepare<GatewayTable>((p) =>
      db
        .insertInto("gateways")
        .values({ replica: p.replica, registered_at: p.registered_at })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    remove: prepare<{ replica: string }>((p) => db.deleteFrom("gateways").where("replica", "=", p.replica)),
    list: prepare<object, GatewayTable>(() => db.selectFrom("gateways").selectAll().orderBy("registered_at").orderBy("replica")),
  };
}
