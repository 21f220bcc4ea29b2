/** What the store forgets: rows past their time, in small batches, and pools that are gone. `unknown` and `held` steps are never touched by time. */
import { sql, type Kysely } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import { storeConflict } from "./port.ts";
import { prepare, type Prepared } from "./prepared.ts";
import type { Schema } from "./schema.ts";

const DAY_MS = 86_400_000;
/** Counted from when it was received. */
export const NOTICE_DAYS = 7;
/** Counted from the end of a step, or from the deletion of the instance. */
export const HISTORY_DAYS = 30;
/** Rows of one call: it must not hold up the commits that wait. */
export const COLLECT_BATCH = 500;

type Before = { before: number; limit: number };
type OfPool = { pool: string };

export class Collection {
  readonly #db: Kysely<Schema>;
  readonly #expired: ReturnType<typeof expiredOf>;
  readonly #forgotten: ReturnType<typeof forgottenOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#expired = expiredOf(db);
    this.#forgotten = forgottenOf(db);
  }

  /** Deletes at most one batch; returns how many rows went. */
  async collect(now: Instant): Promise<number> {
    const noticesBefore = now - NOTICE_DAYS * DAY_MS;
    const historyBefore = now - HISTORY_DAYS * DAY_MS;
    // Instances come after what refers to them, blueprints after the instances.
    const order: readonly (readonly [Prepared<Before, unknown>, Instant])[] = [
      [this.#expired.notices, noticesBefore],
      [this.#expired.steps, historyBefore],
      [this.#expired.evidence, historyBefore],
      [this.#expired.memberEvidence, historyBefore],
      [this.#expired.losses, historyBefore],
      [this.#expired.scaleChanges, historyBefore],
      [this.#expired.instances, historyBefore],
      [this.#expired.blueprints, now],
    ];
    let deleted = 0;
    for (const [query, before] of order) {
      if (deleted >= COLLECT_BATCH) break;
      deleted += await query.run(this.#db, { before, limit: COLLECT_BATCH - deleted });
    }
    return deleted;
  }

  /** Deletes all rows of a pool but its own; conflict while an instance lives or a step is open. */
  async forget(pool: string): Promise<void> {
    const [left] = await this.#forgotten.left.rows(this.#db, { pool });
    if (left !== undefined)
      throw storeConflict(`pool ${pool} is not empty: ${left.what} is left`, left.what, "deleted instances and ended steps only");
    for (const query of this.#forgotten.deletions) await query.run(this.#db, { pool });
  }
}

function expiredOf(db: Kysely<Schema>) {
  // Literals instead of parameters where a partial index must be recognised.
  const isDeleted = sql<boolean>`instances.phase = 'deleted'`;
  return {
    notices: prepare<Before>((p) =>
      db
        .deleteFrom("notices")
        .where(
          "seq",
          "in",
          db.selectFrom("notices").select("seq").where("received_at", "<", p.before).orderBy("received_at").limit(p.limit),
        ),
    ),
    steps: prepare<Before>((p) =>
      db
        .deleteFrom("steps")
        .where("seq", "in", db.selectFrom("steps").select("seq").where("ended_at", "<", p.before).orderBy("ended_at").limit(p.limit)),
    ),
    evidence: prepare<Before>((p) =>
      db
        .deleteFrom("evidence")
        .where(
          "seq",
          "in",
          db
            .selectFrom("evidence")
            .innerJoin("instances", "instances.id", "evidence.instance")
            .select("evidence.seq")
            .where(isDeleted)
            .where("instances.phase_since", "<", p.before)
            .limit(p.limit),
        ),
    ),
    memberEvidence: prepare<Before>((p) =>
      db
        .deleteFrom("member_evidence")
        .where(
          "seq",
          "in",
          db
            .selectFrom("member_evidence")
            .innerJoin("instances", "instances.id", "member_evidence.instance")
            .select("member_evidence.seq")
            .where(isDeleted)
            .where("instances.phase_since", "<", p.before)
            .limit(p.limit),
        ),
    ),
    losses: prepare<Before>((p) =>
      db
        .deleteFrom("losses")
        .where(({ refTuple, eb }) =>
          eb(
            refTuple("losses.instance", "losses.loss"),
            "in",
            db
              .selectFrom("losses")
              .innerJoin("instances", "instances.id", "losses.instance")
              .select(["losses.instance", "losses.loss"])
              .where(isDeleted)
              .where("instances.phase_since", "<", p.before)
              .limit(p.limit)
              .$asTuple("instance", "loss"),
          ),
        ),
    ),
    scaleChanges: prepare<Before>((p) =>
      db
        .deleteFrom("scale_changes")
        .where("seq", "in", db.selectFrom("scale_changes").select("seq").where("at", "<", p.before).orderBy("at").limit(p.limit)),
    ),
    instances: prepare<Before>((p) =>
      db
        .deleteFrom("instances")
        .where(
          "seq",
          "in",
          db
            .selectFrom("instances")
            .select("seq")
            .where(isDeleted)
            .where("phase_since", "<", p.before)
            .where(sql<boolean>`not exists (select 1 from evidence where evidence.instance = instances.id)`)
            .where(sql<boolean>`not exists (select 1 from member_evidence where member_evidence.instance = instances.id)`)
            .where(sql<boolean>`not exists (select 1 from losses where losses.instance = instances.id)`)
            .limit(p.limit),
        ),
    ),
    blueprints: prepare<Before>((p) =>
      db
        .deleteFrom("blueprints")
        .where(
          "hash",
          "in",
          db
            .selectFrom("blueprints")
            .select("hash")
            .where(sql<boolean>`not exists (select 1 from instances where instances.blueprint_hash = blueprints.hash)`)
            .limit(p.limit),
        ),
    ),
  };
}

function forgottenOf(db: Kysely<Schema>) {
  const instancesOf = (pool: string) => db.selectFrom("instances").select("id").where("pool", "=", pool);
  return {
    left: prepare<OfPool, { what: string }>((p) =>
      db
        .selectFrom("instances")
        .select(sql<string>`'instance ' || id || ' (' || phase || ')'`.as("what"))
        .where("pool", "=", p.pool)
        .where(sql<boolean>`phase <> 'deleted'`)
        .unionAll(
          db
            .selectFrom("steps")
            .select(sql<string>`'step ' || id || ' (' || state || ')'`.as("what"))
            .where("pool", "=", p.pool)
            .where(sql<boolean>`ended_at is null`),
        )
        .limit(1),
    ),
    deletions: [
      prepare<OfPool>((p) => db.deleteFrom("steps").where("pool", "=", p.pool)),
      prepare<OfPool>((p) => db.deleteFrom("evidence").where("pool", "=", p.pool)),
      prepare<OfPool>((p) => db.deleteFrom("member_evidence").where("pool", "=", p.pool)),
      prepare<OfPool>((p) => db.deleteFrom("losses").where("instance", "in", instancesOf(p.pool))),
      prepare<OfPool>((p) => db.deleteFrom("loss_totals").where("pool", "=", p.pool)),
      prepare<OfPool>((p) => db.deleteFrom("instances").where("pool", "=", p.pool)),
      prepare<OfPool>((p) => db.deleteFrom("scale_changes").where("pool", "=", p.pool)),
      prepare<OfPool>((p) => db.deleteFrom("promotion_exceptions").where("pool", "=", p.pool)),
    ],
  };
}
