/** What was decided of a pool's size, and what was proven of it. */
import type { Kysely } from "kysely";
import type { ProvenCapacity } from "../model/proven.ts";
import type { ScaleChange, ScaleState } from "../model/scale.ts";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { storeConflict } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { ScaleChangeTable, Schema } from "./schema.ts";

/** Of one pool: more changes than this are no information, whatever their age. */
export const MAX_SCALE_CHANGES = 2_000;

export class ScaleRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  /**
   * Compare-and-set on the size that was decided last, where there is one, and on whose target it is: with the size alone, what was decided before a target was given
   * away would take it back. `handsOver`: it is what this change is about.
   */
  async set(pool: string, known: ScaleState | null, from: number, state: ScaleState, handsOver: boolean): Promise<void> {
    if (known !== null && known.desired !== from) throw storeConflict(`the size of pool ${pool} is another`, known.desired, String(from));
    if (!handsOver && adoptionOf(known) !== adoptionOf(state))
      throw storeConflict(`the target of pool ${pool} was handed over meanwhile`, adoptionOf(known), adoptionOf(state));
    await this.#queries.setState.run(this.#db, { pool, scale: canonicalJson(state) });
  }

  async note(pool: string, { at, from, to, reason, message }: ScaleChange): Promise<void> {
    await this.#queries.insert.run(this.#db, { pool, at, size_from: from, size_to: to, reason, message });
    await this.#queries.bound.run(this.#db, { pool });
  }

  /** Newest first. */
  async list(pool: string, limit: number): Promise<readonly ScaleChange[]> {
    const rows = await this.#queries.list.rows(this.#db, { pool, limit });
    return rows.map(({ at, size_from: from, size_to: to, reason, message }) => ({ at, from, to, reason, message }));
  }

  async prove(pool: string, proof: ProvenCapacity): Promise<void> {
    const changed = await this.#queries.setProven.run(this.#db, { pool, proven: canonicalJson(proof) });
    if (changed === 0) throw storeConflict(`pool ${pool} is not known`, pool, "a pool that a controller has claimed");
  }
}

function adoptionOf(state: ScaleState | null): string {
  return state?.adopted === undefined ? "not adopted" : canonicalJson(state.adopted);
}

type NewChange = Omit<ScaleChangeTable, "seq">;

function queriesOf(db: Kysely<Schema>) {
  return {
    setState: prepare<{ pool: string; scale: string }>((p) => db.updateTable("pools").set({ scale: p.scale }).where("pool", "=", p.pool)),
    setProven: prepare<{ pool: string; proven: string }>((p) =>
      db.updateTable("pools").set({ proven: p.proven }).where("pool", "=", p.pool).where("claimed", "=", 1),
    ),
    insert: prepare<NewChange>((p) =>
      db.insertInto("scale_changes").values({
        pool: p.pool,
        at: p.at,
        size_from: p.size_from,
        size_to: p.size_to,
        reason: p.reason,
        message: p.message,
      }),
    ),
    bound: prepare<{ pool: string }>((p) =>
      db
        .deleteFrom("scale_changes")
        .where("pool", "=", p.pool)
        .where(
          "seq",
          "<=",
          db.selectFrom("scale_changes").select("seq").where("pool", "=", p.pool).orderBy("seq", "desc").limit(1).offset(MAX_SCALE_CHANGES),
        ),
    ),
    list: prepare<{ pool: string; limit: number }, ScaleChangeTable & { seq: number }>((p) =>
      db.selectFrom("scale_changes").selectAll().where("pool", "=", p.pool).orderBy("seq", "desc").limit(p.limit),
    ),
  };
}
