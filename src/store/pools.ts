/** The rows that say who owns a pool, which generation its route has, and whether it is frozen. */
import type { Kysely } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import { epoch, type Epoch } from "../kernel/epoch.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { ScaleState } from "../model/scale.ts";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { staleEpoch, type Authority, type Freeze, type StandingReason } from "./port.ts";
import { isShared, prepare } from "./prepared.ts";
import type { PoolTable, Schema } from "./schema.ts";

export interface PoolRow {
  readonly pool: string;
  readonly claimed: boolean;
  readonly owner: string | null;
  readonly epoch: Epoch;
  readonly generation: Epoch;
  readonly freeze: Freeze | null;
  /** Canonical JSON of the standing reasons. */
  readonly reasons: string;
  readonly scale: ScaleState | null;
  readonly proven: ProvenCapacity | null;
}

const NO_REASONS = canonicalJson([]);

export class PoolRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  /** Forgotten ones and ones that were only frozen too: see `claimed`. */
  async find(pool: string): Promise<PoolRow | undefined> {
    const [row] = await this.#queries.find.rows(this.#db, { pool });
    return row === undefined ? undefined : toPoolRow(row);
  }

  /**
   * The pool's row, which nobody else changes until the transaction ends; undefined as for `find`. Whatever writes a pool's rows begins with it, so that
   * what it has read stays true until it commits.
   */
  async lock(pool: string): Promise<PoolRow | undefined> {
    const [row] = await this.#queries.lock.rows(this.#db, { pool });
    return row === undefined ? undefined : toPoolRow(row);
  }

  /** The pool's row, locked; stale unless the epoch is the current one (I4). */
  async authorise({ pool, epoch: used }: Authority): Promise<PoolRow> {
    const row = await this.lock(pool);
    if (row === undefined || !row.claimed) throw staleEpoch(pool, null, used);
    if (row.epoch !== used) throw staleEpoch(pool, row.epoch, used);
    return row;
  }

  async claim(pool: string, owner: string, now: Instant): Promise<Epoch> {
    const era = await this.era();
    await this.#queries.insert.run(this.#db, { pool, era });
    await this.#queries.claim.run(this.#db, { pool, owner, now, era });
    const [row] = await this.#queries.find.rows(this.#db, { pool });
    if (row === undefined) throw new Error(`pool ${pool} is gone in the transaction that made it`);
    return toPoolRow(row).epoch;
  }

  async letGo(pool: string): Promise<void> {
    await this.#queries.letGo.run(this.#db, { pool, era: await this.era() });
  }

  /** Keeps the counters: the next claim goes on from them, so whoever acted for the pool before is stale for ever. */
  async forget(pool: string): Promise<void> {
    await this.#queries.forget.run(this.#db, { pool, reasons: NO_REASONS });
  }

  async freeze(pool: string, freeze: Freeze | null): Promise<void> {
    await this.#queries.insert.run(this.#db, { pool, era: await this.era() });
    await this.#queries.freeze.run(this.#db, { pool, until: freeze?.until ?? null, why: freeze?.why ?? null, by: freeze?.by ?? null });
  }

  /** The generation after this one, in the store's era. */
  async nextGeneration(pool: string): Promise<Epoch> {
    const [row] = await this.#queries.raiseGeneration.rows(this.#db, { pool, era: await this.era() });
    if (row === undefined) throw new Error(`pool ${pool} is gone in the transaction that read it`);
    return epoch(row.generation_era, row.generation_counter);
  }

  /** Writes only when they differ; returns the row as it is then. */
  async setReasons(row: PoolRow, reasons: readonly StandingReason[]): Promise<PoolRow> {
    const text = canonicalJson(reasons);
    if (text !== row.reasons) await this.#queries.setReasons.run(this.#db, { pool: row.pool, reasons: text });
    return { ...row, reasons: text };
  }

  /** Of all that are claimed. */
  async epochs(): Promise<ReadonlyMap<string, Epoch>> {
    const rows = await this.#queries.epochs.rows(this.#db, {});
    return new Map(rows.map((row) => [row.pool, epoch(row.epoch_era, row.epoch_counter)]));
  }

  /** Of those that are claimed and that somebody has. */
  async owners(): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#queries.owners.rows(this.#db, {});
    return new Map(rows.map((row) => [row.pool, row.owner]));
  }

  async list(): Promise<string[]> {
    return (await this.#queries.list.rows(this.#db, {})).map((row) => row.pool);
  }

  /** Of the store; rises only when a store that was rewound is recovered. */
  async era(): Promise<number> {
    const [row] = await this.#queries.era.rows(this.#db, {});
    return Number(row?.value);
  }
}

function queriesOf(db: Kysely<Schema>) {
  const one = (p: { pool: string }) => db.selectFrom("pools").selectAll().where("pool", "=", p.pool);
  return {
    era: prepare<object, { value: string }>(() => db.selectFrom("meta").select("value").where("name", "=", "era")),
    find: prepare<{ pool: string }, PoolTable>(one),
    // SQLite has one writer at a time: there nobody else can change it.
    lock: prepare<{ pool: string }, PoolTable>((p) => (isShared(db) ? one(p).forUpdate() : one(p))),
    epochs: prepare<object, Pick<PoolTable, "pool" | "epoch_era" | "epoch_counter">>(() =>
      db.selectFrom("pools").select(["pool", "epoch_era", "epoch_counter"]).where("claimed", "=", 1).orderBy("pool"),
    ),
    owners: prepare<object, { pool: string; owner: string }>(() =>
      db
        .selectFrom("pools")
        .select("pool")
        .select("owner")
        .$narrowType<{ owner: string }>()
        .where("claimed", "=", 1)
        .where("owner", "is not", null)
        .orderBy("pool"),
    ),
    list: prepare<object, { pool: string }>(() => db.selectFrom("pools").select("pool").where("claimed", "=", 1).orderBy("pool")),
    insert: prepare<{ pool: string; era: number }>((p) =>
      db
        .insertInto("pools")
        .values({
          pool: p.pool,
          claimed: 0,
          epoch_era: p.era,
          epoch_counter: 0,
          generation_era: p.era,
          generation_counter: 0,
          reasons: NO_REASONS,
        })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    claim: prepare<{ pool: string; owner: string; now: number; era: number }>((p) =>
      db
        .updateTable("pools")
        .set((row) => ({ claimed: 1, owner: p.owner, claimed_at: p.now, epoch_era: p.era, epoch_counter: row("epoch_counter", "+", 1) }))
        .where("pool", "=", p.pool),
    ),
    letGo: prepare<{ pool: string; era: number }>((p) =>
      db
        .updateTable("pools")
        .set((row) => ({ owner: null, epoch_era: p.era, epoch_counter: row("epoch_counter", "+", 1) }))
        .where("pool", "=", p.pool),
    ),
    forget: prepare<{ pool: string; reasons: string }>((p) =>
      db
        .updateTable("pools")
        .set({
          claimed: 0,
          owner: null,
          claimed_at: null,
          freeze_until: null,
          freeze_why: null,
          freeze_by: null,
          reasons: p.reasons,
          scale: null,
          proven: null,
        })
        .where("pool", "=", p.pool),
    ),
    freeze: prepare<{ pool: string; until: number | null; why: string | null; by: string | null }>((p) =>
      db.updateTable("pools").set({ freeze_until: p.until, freeze_why: p.why, freeze_by: p.by }).where("pool", "=", p.pool),
    ),
    raiseGeneration: prepare<{ pool: string; era: number }, Pick<PoolTable, "generation_era" | "generation_counter">>((p) =>
      db
        .updateTable("pools")
        .set((row) => ({ generation_era: p.era, generation_counter: row("generation_counter", "+", 1) }))
        .where("pool", "=", p.pool)
        .returning(["generation_era", "generation_counter"]),
    ),
    setReasons: prepare<{ pool: string; reasons: string }>((p) =>
      db.updateTable("pools").set({ reasons: p.reasons }).where("pool", "=", p.pool),
    ),
  };
}

function toPoolRow(row: PoolTable): PoolRow {
  return {
    pool: row.pool,
    claimed: row.claimed === 1,
    owner: row.owner,
    epoch: epoch(row.epoch_era, row.epoch_counter),
    generation: epoch(row.generation_era, row.generation_counter),
    freeze: row.freeze_until === null ? null : { until: row.freeze_until, why: row.freeze_why ?? "", by: row.freeze_by ?? "" },
    reasons: row.reasons,
    scale: row.scale === null ? null : (JSON.parse(row.scale) as ScaleState),
    proven: row.proven === null ? null : (JSON.parse(row.proven) as ProvenCapacity),
  };
}
