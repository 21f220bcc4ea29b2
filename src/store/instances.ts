/** Instances and the blueprints that they were made from. */
import { sql, type Kysely, type Selectable } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import { epoch, epochParts, type Epoch } from "../kernel/epoch.ts";
import type { InstanceRecord, OwnedObject, Purpose } from "../model/instance.ts";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { KeptList, type StoreConnection } from "./kept-rows.ts";
import { storeConflict, type NewInstance } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { InstanceState, InstanceTable, Schema } from "./schema.ts";

/** How many failed candidates a pool's rows show. */
const MAX_FAILURES = 100;

export type InstanceRow = Selectable<InstanceTable>;

export interface CandidateFailure {
  readonly instance: string;
  readonly at: Instant;
  readonly failure: string;
  readonly replaces: string | null;
  readonly purpose: Purpose;
}

export class InstanceRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;
  readonly #living: KeptList<InstanceRow, InstanceRecord>;
  #failures = 0;

  constructor(db: StoreConnection) {
    this.#db = db;
    const queries = queriesOf(db);
    this.#queries = queries;
    this.#living = new KeptList({
      db,
      table: "instances",
      all: (pool) => queries.living.rows(db, { pool }),
      one: async (id) => (await queries.find.rows(db, { id }))[0],
      isListed: ({ phase }) => phase !== "deleted",
      toRecord: toInstanceRecord,
    });
  }

  /** Conflict when there is none of this id in this pool. */
  async get(pool: string, id: string): Promise<InstanceRecord> {
    const [row] = await this.#queries.find.rows(this.#db, { id });
    if (row === undefined || row.pool !== pool) throw storeConflict(`instance ${id} is not of pool ${pool}`, row?.pool ?? null, pool);
    return toInstanceRecord(row);
  }

  async find(pool: string, id: string): Promise<InstanceRecord | undefined> {
    const [row] = await this.#queries.find.rows(this.#db, { id });
    return row === undefined || row.pool !== pool ? undefined : toInstanceRecord(row);
  }

  async create(pool: string, draft: NewInstance, now: Instant): Promise<void> {
    const [known] = await this.#queries.find.rows(this.#db, { id: draft.id });
    if (known !== undefined) throw storeConflict(`instance ${draft.id} is there already`, known.pool, "an id that was never used");
    await this.#queries.saveBlueprint.run(this.#db, { hash: draft.blueprintHash, body: canonicalJson(draft.blueprint) });
    const { id, ordinal, purpose, replaces, blueprintHash } = draft;
    await this.#queries.insert.run(this.#db, { id, pool, ordinal, purpose, replaces, blueprint_hash: blueprintHash, now });
    this.#living.wrote(id);
  }

  /** Writes all that may change; the caller has read the record in this transaction. */
  async save(record: InstanceRecord): Promise<void> {
    await this.#queries.save.run(this.#db, { id: record.id, ...toInstanceState(record) });
    this.#living.wrote(record.id);
    if (record.failedAt !== null) this.#failures += 1;
  }

  /** What is fixed at an instance's creation changes here alone; the caller has read the record in this transaction. */
  async take(id: string, replaces: string, ordinal: number, now: Instant): Promise<void> {
    await this.#queries.take.run(this.#db, { id, replaces, ordinal, now });
    this.#living.wrote(id);
  }

  listLiving(pool: string): Promise<readonly InstanceRecord[]> {
    return this.#living.list(pool);
  }

  /** Nothing of the pool's list is kept. */
  forgetLiving(pool: string): void {
    this.#living.forget(pool);
  }

  /** Rises with each write that can change what `listFailures` returns. */
  get failureWrites(): number {
    return this.#failures + this.#living.untoldWrites;
  }

  async listFailures(pool: string): Promise<CandidateFailure[]> {
    const rows = await this.#queries.failures.rows(this.#db, { pool });
    return rows
      .map((row) => ({
        instance: row.id,
        at: row.failed_at ?? 0,
        failure: row.failure ?? "",
        replaces: row.replaces,
        purpose: row.purpose,
      }))
      .reverse();
  }

  async list(pool: string, limit: number): Promise<InstanceRecord[]> {
    return (await this.#queries.newest.rows(this.#db, { pool, limit })).map(toInstanceRecord);
  }

  async findBlueprint(hash: string): Promise<unknown> {
    const [row] = await this.#queries.blueprint.rows(this.#db, { hash });
    return row === undefined ? undefined : JSON.parse(row.body);
  }
}

function queriesOf(db: Kysely<Schema>) {
  const all = db.selectFrom("instances").selectAll();
  // A literal: with a parameter SQLite could not know that the partial index holds all rows that are asked for.
  const isLiving = sql<boolean>`phase <> 'deleted'`;
  return {
    find: prepare<{ id: string }, InstanceRow>((p) => all.where("id", "=", p.id)),
    living: prepare<{ pool: string }, InstanceRow>((p) => all.where("pool", "=", p.pool).where(isLiving).orderBy("seq")),
    failures: prepare<{ pool: string }, InstanceRow>((p) =>
      all
        .where("pool", "=", p.pool)
        .where("failed_at", "is not", null)
        .orderBy("failed_at", "desc")
        .orderBy("seq", "desc")
        .limit(MAX_FAILURES),
    ),
    newest: prepare<{ pool: string; limit: number }, InstanceRow>((p) =>
      all.where("pool", "=", p.pool).orderBy("created_at", "desc").orderBy("seq", "desc").limit(p.limit),
    ),
    blueprint: prepare<{ hash: string }, { body: string }>((p) => db.selectFrom("blueprints").select("body").where("hash", "=", p.hash)),
    saveBlueprint: prepare<{ hash: string; body: string }>((p) =>
      db
        .insertInto("blueprints")
        .values({ hash: p.hash, body: p.body })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    insert: prepare<Pick<InstanceTable, "id" | "pool" | "ordinal" | "purpose" | "replaces" | "blueprint_hash"> & { now: number }>((p) =>
      db.insertInto("instances").values({
        id: p.id,
        pool: p.pool,
        ordinal: p.ordinal,
        purpose: p.purpose,
        replaces: p.replaces,
        created_at: p.now,
        blueprint_hash: p.blueprint_hash,
        phase: "pending",
        phase_since: p.now,
        trust: "ok",
        incarnation: 0,
        objects: "[]",
      }),
    ),
    take: prepare<Pick<InstanceTable, "id" | "ordinal"> & { replaces: string; now: number }>((p) =>
      db
        .updateTable("instances")
        .set({ purpose: "replace", replaces: p.replaces, ordinal: p.ordinal, phase_since: p.now })
        .where("id", "=", p.id),
    ),
    save: prepare<InstanceState & { id: string }>((p) =>
      db
        .updateTable("instances")
        .set({
          phase: p.phase,
          phase_since: p.phase_since,
          trust: p.trust,
          incarnation: p.incarnation,
          pod_name: p.pod_name,
          pod_uid: p.pod_uid,
          container_id: p.container_id,
          boot_id: p.boot_id,
          node_name: p.node_name,
          node_uid: p.node_uid,
          host: p.host,
          port: p.port,
          objects: p.objects,
          admitted_era: p.admitted_era,
          admitted_counter: p.admitted_counter,
          drain_era: p.drain_era,
          drain_counter: p.drain_counter,
          drain_loss: p.drain_loss,
          drain_since: p.drain_since,
          drain_deadline: p.drain_deadline,
          seal: p.seal,
          failure: p.failure,
          failed_at: p.failed_at,
        })
        .where("id", "=", p.id),
    ),
  };
}

function toInstanceRecord(row: InstanceRow): InstanceRecord {
  return {
    id: row.id,
    pool: row.pool,
    ordinal: row.ordinal,
    purpose: row.purpose,
    replaces: row.replaces,
    phase: row.phase,
    phaseSince: row.phase_since,
    createdAt: row.created_at,
    trust: row.trust,
    incarnation: {
      number: row.incarnation,
      podName: row.pod_name,
      podUid: row.pod_uid,
      containerId: row.container_id,
      bootId: row.boot_id,
      nodeName: row.node_name,
      nodeUid: row.node_uid,
      host: row.host,
      port: row.port,
    },
    blueprintHash: row.blueprint_hash,
    objects: JSON.parse(row.objects) as OwnedObject[],
    admittedGeneration: toEpoch(row.admitted_era, row.admitted_counter),
    drainGeneration: toEpoch(row.drain_era, row.drain_counter),
    drainLoss: row.drain_loss,
    drainSince: row.drain_since,
    drainDeadline: row.drain_deadline,
    seal: row.seal,
    failure: row.failure,
    failedAt: row.failed_at,
  };
}

function toInstanceState(record: InstanceRecord): InstanceState {
  const { incarnation } = record;
  const admitted = fromEpoch(record.admittedGeneration);
  const drained = fromEpoch(record.drainGeneration);
  return {
    phase: record.phase,
    phase_since: record.phaseSince,
    trust: record.trust,
    incarnation: incarnation.number,
    pod_name: incarnation.podName,
    pod_uid: incarnation.podUid,
    container_id: incarnation.containerId,
    boot_id: incarnation.bootId,
    node_name: incarnation.nodeName,
    node_uid: incarnation.nodeUid,
    host: incarnation.host,
    port: incarnation.port,
    objects: canonicalJson(record.objects),
    admitted_era: admitted.era,
    admitted_counter: admitted.counter,
    drain_era: drained.era,
    drain_counter: drained.counter,
    drain_loss: record.drainLoss,
    drain_since: record.drainSince,
    drain_deadline: record.drainDeadline,
    seal: record.seal,
    failure: record.failure,
    failed_at: record.failedAt,
  };
}

function toEpoch(era: number | null, counter: number | null): Epoch | null {
  return era === null || counter === null ? null : epoch(era, counter);
}

function fromEpoch(value: Epoch | null): { era: number | null; counter: number | null } {
  return value === null ? { era: null, counter: null } : epochParts(value);
}
