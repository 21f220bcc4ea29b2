/**
 * A store that was rewound is behind what others have seen of it. Its recovery raises the era above all that was seen, so that no epoch of the lost time is
 * given a second time: whatever is compared with a number from then loses, and whatever was confirmed then must be confirmed anew.
 */
import type { Kysely } from "kysely";
import { MAX_EPOCH_PART } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { RecoverCommand, StoreEra, StoreRecovery } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { Schema } from "./schema.ts";

const RECOVERY = "recovery";

export class RecoveryRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  async read(): Promise<StoreEra> {
    const [era] = await this.#queries.find.rows(this.#db, { name: "era" });
    const [recovery] = await this.#queries.find.rows(this.#db, { name: RECOVERY });
    return { era: Number(era?.value), recovered: recovery === undefined ? null : (JSON.parse(recovery.value) as StoreRecovery) };
  }

  /** One transaction: either all epochs are of the new era or none is. */
  async recover({ above, at, why, by }: RecoverCommand): Promise<StoreEra> {
    // Beyond that nobody could read an epoch any more, and an era never falls: one witness that lies must not do that to the store.
    if (!Number.isSafeInteger(above) || above < 0 || above >= MAX_EPOCH_PART)
      throw new RelevoError("era_invalid", "An era is a whole number that has a next one.", {
        class: "conflict",
        found: above,
        allowed: `0 to ${MAX_EPOCH_PART - 1}`,
        todo: "end the witness that has seen such an era: see relevo store check",
      });
    const { era: from } = await this.read();
    const era = Math.max(from, above) + 1;
    const recovered: StoreRecovery = { at, from, why, by };
    await this.#queries.set.run(this.#db, { name: "era", value: String(era) });
    await this.#queries.set.run(this.#db, { name: RECOVERY, value: JSON.stringify(recovered) });
    await this.#queries.raisePools.run(this.#db, { era });
    await this.#queries.fenceHolders.run(this.#db, {});
    await this.#queries.fenceWorkloads.run(this.#db, { era });
    for (const pool of await this.#queries.generations.rows(this.#db, {})) {
      await this.#queries.askAgainAdmitted.run(this.#db, pool);
      await this.#queries.askAgainDrained.run(this.#db, pool);
    }
    return { era, recovered };
  }
}

interface Generation {
  readonly pool: string;
  readonly generation_era: number;
  readonly generation_counter: number;
}

function queriesOf(db: Kysely<Schema>) {
  return {
    find: prepare<{ name: string }, { value: string }>((p) => db.selectFrom("meta").select("value").where("name", "=", p.name)),
    set: prepare<{ name: string; value: string }>((p) =>
      db
        .insertInto("meta")
        .values({ name: p.name, value: p.value })
        .onConflict((conflict) => conflict.column("name").doUpdateSet((row) => ({ value: row.ref("excluded.value") }))),
    ),
    /** Whoever acted before is stale, this controller too. */
    raisePools: prepare<{ era: number }>((p) =>
      db.updateTable("pools").set((row) => ({
        epoch_era: p.era,
        epoch_counter: row("epoch_counter", "+", 1),
        generation_era: p.era,
        generation_counter: row("generation_counter", "+", 1),
      })),
    ),
    /** What they have in memory may be older than what another wrote in the lost time: they never write again. */
    fenceHolders: prepare<object>(() =>
      db
        .updateTable("instances")
        .set({ trust: "fenced" })
        .where("phase", "in", ["admitted", "serving", "draining"])
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom("workloads")
              .select("workloads.holder")
              .whereRef("workloads.pool", "=", "instances.pool")
              .whereRef("workloads.holder", "=", "instances.id")
              .whereRef("workloads.incarnation", "=", "instances.incarnation"),
          ),
        ),
    ),
    /** Who wrote last is not known: nobody may go on, and nothing from before lands. */
    fenceWorkloads: prepare<{ era: number }>((p) =>
      db.updateTable("workloads").set((row) => ({
        writer_era: p.era,
        writer_counter: row("writer_counter", "+", 1),
        min_era: p.era,
        min_counter: row("writer_counter", "+", 2),
        holder: null,
        incarnation: null,
        boot_id: null,
        renewals: 0,
        ttl_ms: 0,
      })),
    ),
    generations: prepare<object, Generation>(() => db.selectFrom("pools").select(["pool", "generation_era", "generation_counter"])),
    /** What a gateway has applied of the lost time says nothing about these rows. */
    askAgainAdmitted: prepare<Generation>((p) =>
      db
        .updateTable("instances")
        .set({ admitted_era: p.generation_era, admitted_counter: p.generation_counter })
        .where("pool", "=", p.pool)
        .where("phase", "!=", "deleted")
        .where("admitted_era", "is not", null),
    ),
    askAgainDrained: prepare<Generation>((p) =>
      db
        .updateTable("instances")
        .set({ drain_era: p.generation_era, drain_counter: p.generation_counter })
        .where("pool", "=", p.pool)
        .where("phase", "!=", "deleted")
        .where("drain_era", "is not", null),
    ),
  };
}
