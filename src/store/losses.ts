/** What was lost, by class of loss (D18): each instance counts once per class, its obligations add up. The totals outlive the instances. */
import type { Kysely } from "kysely";
import type { Loss, Seal } from "../model/phase.ts";
import type { LossCounts } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { LossTable, LossTotalTable, Schema } from "./schema.ts";

export class LossRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  async count(pool: string, instance: string, loss: Loss, obligations: number, seal: Seal): Promise<void> {
    const [known] = await this.#queries.find.rows(this.#db, { instance, loss });
    const isNewlyAssumed = seal === "assumed" && known?.assumed !== 1;
    if (known === undefined || isNewlyAssumed)
      await this.#queries.mark.run(this.#db, { instance, loss, assumed: seal === "assumed" ? 1 : 0 });
    await this.#queries.add.run(this.#db, {
      pool,
      loss,
      instances: known === undefined ? 1 : 0,
      obligations,
      assumed_seals: isNewlyAssumed ? 1 : 0,
    });
  }

  async list(pool: string): Promise<LossCounts[]> {
    const rows = await this.#queries.list.rows(this.#db, { pool });
    return rows.map((row) => ({ loss: row.loss, instances: row.instances, obligations: row.obligations, assumedSeals: row.assumed_seals }));
  }
}

function queriesOf(db: Kysely<Schema>) {
  return {
    find: prepare<{ instance: string; loss: Loss }, LossTable>((p) =>
      db.selectFrom("losses").selectAll().where("instance", "=", p.instance).where("loss", "=", p.loss),
    ),
    mark: prepare<LossTable>((p) =>
      db
        .insertInto("losses")
        .values({ instance: p.instance, loss: p.loss, assumed: p.assumed })
        .onConflict((conflict) => conflict.columns(["instance", "loss"]).doUpdateSet((row) => ({ assumed: row.ref("excluded.assumed") }))),
    ),
    add: prepare<LossTotalTable>((p) =>
      db
        .insertInto("loss_totals")
        .values({ pool: p.pool, loss: p.loss, instances: p.instances, obligations: p.obligations, assumed_seals: p.assumed_seals })
        .onConflict((conflict) =>
          conflict.columns(["pool", "loss"]).doUpdateSet((row) => ({
            instances: row("loss_totals.instances", "+", row.ref("excluded.instances")),
            obligations: row("loss_totals.obligations", "+", row.ref("excluded.obligations")),
            assumed_seals: row("loss_totals.assumed_seals", "+", row.ref("excluded.assumed_seals")),
          })),
        ),
    ),
    list: prepare<{ pool: string }, LossTotalTable>((p) =>
      db.selectFrom("loss_totals").selectAll().where("pool", "=", p.pool).orderBy("loss"),
    ),
  };
}
