/** What was promoted before its gate (K10). A row stays as long as its pool: one whose follow-ups are done is history. */
import type { Kysely } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import type { FollowUp, PromotionException } from "../model/promotion.ts";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { storeConflict } from "./port.ts";
import { isShared, prepare } from "./prepared.ts";
import type { PromotionExceptionTable, Schema } from "./schema.ts";

export class PromotionRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  /** The same id again changes nothing. */
  async record({ id, pool, what, gate, why, by, at, followUps }: PromotionException): Promise<void> {
    const row = { id, pool, what, gate, why, by_whom: by, at, follow_ups: canonicalJson(followUps) };
    await this.#queries.insert.run(this.#db, row);
  }

  /** The follow-up with this number, from 0. Done once: a later call changes nothing. Error: `store_conflict` when there is none. */
  async finish(id: string, index: number, at: Instant): Promise<PromotionException> {
    const [row] = await this.#queries.lock.rows(this.#db, { id });
    const exception = row === undefined ? undefined : toException(row);
    const followUp = exception?.followUps[index];
    if (exception === undefined || followUp === undefined)
      throw storeConflict(`there is no follow-up ${index} of exception ${id}`, index, "one that relevo get exceptions shows");
    if (followUp.doneAt !== null) return exception;
    const followUps = exception.followUps.map((each, place) => (place === index ? { ...each, doneAt: at } : each));
    await this.#queries.setFollowUps.run(this.#db, { id, follow_ups: canonicalJson(followUps) });
    return { ...exception, followUps };
  }

  /** Newest first; null: of all pools. */
  async list(pool: string | null, limit: number): Promise<readonly PromotionException[]> {
    const rows =
      pool === null ? await this.#queries.all.rows(this.#db, { limit }) : await this.#queries.list.rows(this.#db, { pool, limit });
    return rows.map(toException);
  }
}

function queriesOf(db: Kysely<Schema>) {
  const newest = () => db.selectFrom("promotion_exceptions").selectAll().orderBy("at", "desc").orderBy("id");
  const one = (p: { id: string }) => db.selectFrom("promotion_exceptions").selectAll().where("id", "=", p.id);
  return {
    insert: prepare<PromotionExceptionTable>((p) =>
      db
        .insertInto("promotion_exceptions")
        .values({
          id: p.id,
          pool: p.pool,
          what: p.what,
          gate: p.gate,
          why: p.why,
          by_whom: p.by_whom,
          at: p.at,
          follow_ups: p.follow_ups,
        })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    lock: prepare<{ id: string }, PromotionExceptionTable>((p) => (isShared(db) ? one(p).forUpdate() : one(p))),
    setFollowUps: prepare<{ id: string; follow_ups: string }>((p) =>
      db.updateTable("promotion_exceptions").set({ follow_ups: p.follow_ups }).where("id", "=", p.id),
    ),
    list: prepare<{ pool: string; limit: number }, PromotionExceptionTable>((p) => newest().where("pool", "=", p.pool).limit(p.limit)),
    all: prepare<{ limit: number }, PromotionExceptionTable>((p) => newest().limit(p.limit)),
  };
}

function toException({ id, pool, what, gate, why, by_whom: by, at, follow_ups: followUps }: PromotionExceptionTable): PromotionException {
  return { id, pool, what, gate, why, by, at, followUps: JSON.parse(followUps) as readonly FollowUp[] };
}
