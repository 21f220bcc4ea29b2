/**
 * The journal. A step is there as `unknown` before its effect and leaves `unknown` once. `held` is no end: an operator's release ends it, so it counts as
 * open until then.
 */
import { sql, type Kysely, type Selectable } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import { epoch, epochParts } from "../kernel/epoch.ts";
import type { Reason } from "../model/reasons.ts";
import type { StepDraft, StepRecord } from "../model/step.ts";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { KeptList, type StoreConnection } from "./kept-rows.ts";
import { storeConflict, type Authority, type Change } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { Schema, StepTable } from "./schema.ts";

type StepRow = Selectable<StepTable>;
type EndStep = Extract<Change, { kind: "end_step" }>;
type RetryStep = Extract<Change, { kind: "retry_step" }>;

export class StepRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;
  readonly #open: KeptList<StepRow, StepRecord>;

  constructor(db: StoreConnection) {
    this.#db = db;
    const queries = queriesOf(db);
    this.#queries = queries;
    this.#open = new KeptList({
      db,
      table: "steps",
      all: (pool) => queries.open.rows(db, { pool }),
      one: async (id) => (await queries.find.rows(db, { id }))[0],
      isListed: (row) => row.ended_at === null,
      toRecord: toStepRecord,
    });
  }

  async record(authority: Authority, step: StepDraft, now: Instant): Promise<void> {
    if (step.pool !== authority.pool) throw storeConflict(`step ${step.id} is of another pool`, step.pool, authority.pool);
    const payload = canonicalJson(step.payload);
    const [known] = await this.#queries.find.rows(this.#db, { id: step.id });
    if (known !== undefined) return requireSameStep(known, step, payload);
    const { era, counter } = epochParts(authority.epoch);
    await this.#queries.insert.run(this.#db, {
      id: step.id,
      operation: step.operation,
      pool: step.pool,
      instance: step.instance,
      kind: step.kind,
      payload,
      reason: canonicalJson(step.reason),
      now,
      epoch_era: era,
      epoch_counter: counter,
    });
    this.#open.wrote(step.id);
  }

  async end({ pool }: Authority, { step, state, outcome, result }: EndStep, now: Instant): Promise<void> {
    const parameters = {
      id: step,
      pool,
      state,
      outcome,
      result: result === undefined ? null : canonicalJson(result),
      ended_at: state === "held" ? null : now,
    };
    const changed = await (state === "held" ? this.#queries.hold : this.#queries.end).run(this.#db, parameters);
    this.#open.wrote(step);
    if (changed === 0) await this.#refuse(pool, step, state === "held" ? "unknown" : "unknown or held");
  }

  async retry({ pool }: Authority, { step, notBefore, error }: RetryStep): Promise<void> {
    const changed = await this.#queries.retry.run(this.#db, { id: step, pool, not_before: notBefore, outcome: error });
    this.#open.wrote(step);
    if (changed === 0) await this.#refuse(pool, step, "unknown");
  }

  listOpen(pool: string): Promise<readonly StepRecord[]> {
    return this.#open.list(pool);
  }

  /** Nothing of the pool's list is kept. */
  forgetOpen(pool: string): void {
    this.#open.forget(pool);
  }

  async list(pool: string, limit: number): Promise<StepRecord[]> {
    return (await this.#queries.newest.rows(this.#db, { pool, limit })).map(toStepRecord);
  }

  /** The step of this id and its further attempts, `base#2` and so on, newest first. */
  async listAttempts(pool: string, limit: number, base: string): Promise<StepRecord[]> {
    const rows = await this.#queries.attempts.rows(this.#db, { base, after: `${base}#`, before: `${base}$`, limit }); // `$` follows `#`
    return rows.filter((row) => row.pool === pool).map(toStepRecord);
  }

  async #refuse(pool: string, id: string, allowed: string): Promise<never> {
    const [row] = await this.#queries.find.rows(this.#db, { id });
    if (row === undefined || row.pool !== pool) throw storeConflict(`step ${id} is not of pool ${pool}`, row?.pool ?? null, pool);
    throw storeConflict(`step ${id} has ended`, row.state, allowed);
  }
}

/** The reason and the operation are words about a step, not what it does: they may differ. */
function requireSameStep(known: StepRow, step: StepDraft, payload: string): void {
  if (known.pool === step.pool && known.instance === step.instance && known.kind === step.kind && known.payload === payload) return;
  throw storeConflict(
    `step ${step.id} is there with another payload`,
    { pool: known.pool, instance: known.instance, kind: known.kind, payload: JSON.parse(known.payload) },
    canonicalJson({ pool: step.pool, instance: step.instance, kind: step.kind, payload: step.payload }),
  );
}

function queriesOf(db: Kysely<Schema>) {
  const all = db.selectFrom("steps").selectAll();
  // A literal, so that SQLite sees that the partial index answers it.
  const isOpen = sql<boolean>`ended_at is null`;
  type End = { id: string; pool: string; state: StepTable["state"]; outcome: string; result: string | null; ended_at: number | null };
  const ending = (p: End) =>
    db
      .updateTable("steps")
      .set({ state: p.state, outcome: p.outcome, result: p.result, ended_at: p.ended_at })
      .where("id", "=", p.id)
      .where("pool", "=", p.pool);
  return {
    find: prepare<{ id: string }, StepRow>((p) => all.where("id", "=", p.id)),
    open: prepare<{ pool: string }, StepRow>((p) => all.where("pool", "=", p.pool).where(isOpen).orderBy("seq")),
    newest: prepare<{ pool: string; limit: number }, StepRow>((p) =>
      all.where("pool", "=", p.pool).orderBy("recorded_at", "desc").orderBy("seq", "desc").limit(p.limit),
    ),
    // Without the pool, which would lead SQLite to the index of the pool's whole history; ids are unique over all pools.
    attempts: prepare<{ base: string; after: string; before: string; limit: number }, StepRow>((p) =>
      all
        .where("id", ">=", p.base)
        .where("id", "<", p.before)
        .where((row) => row.or([row("id", "=", p.base), row("id", ">=", p.after)]))
        .orderBy("seq", "desc")
        .limit(p.limit),
    ),
    insert: prepare<
      Omit<StepRow, "seq" | "state" | "attempts" | "not_before" | "recorded_at" | "ended_at" | "outcome" | "result"> & { now: number }
    >((p) =>
      db.insertInto("steps").values({
        id: p.id,
        operation: p.operation,
        pool: p.pool,
        instance: p.instance,
        kind: p.kind,
        payload: p.payload,
        reason: p.reason,
        state: "unknown",
        attempts: 0,
        not_before: p.now,
        recorded_at: p.now,
        epoch_era: p.epoch_era,
        epoch_counter: p.epoch_counter,
      }),
    ),
    end: prepare<End>((p) => ending(p).where("state", "in", ["unknown", "held"])),
    hold: prepare<End>((p) => ending(p).where("state", "=", "unknown")),
    retry: prepare<{ id: string; pool: string; not_before: number; outcome: string }>((p) =>
      db
        .updateTable("steps")
        .set((row) => ({ attempts: row("attempts", "+", 1), not_before: p.not_before, outcome: p.outcome }))
        .where("id", "=", p.id)
        .where("pool", "=", p.pool)
        .where("state", "=", "unknown"),
    ),
  };
}

function toStepRecord(row: StepRow): StepRecord {
  return {
    id: row.id,
    operation: row.operation,
    pool: row.pool,
    instance: row.instance,
    kind: row.kind,
    payload: JSON.parse(row.payload),
    reason: JSON.parse(row.reason) as Reason,
    state: row.state,
    attempts: row.attempts,
    notBefore: row.not_before,
    recordedAt: row.recorded_at,
    endedAt: row.ended_at,
    outcome: row.outcome,
    result: row.result === null ? null : JSON.parse(row.result),
    authorityEpoch: epoch(row.epoch_era, row.epoch_counter),
  };
}
