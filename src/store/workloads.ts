/**
 * The rows that say who may write for a workload (I1, I2). A row is made by the first pass of the lease and is never deleted; its epochs never fall, also when
 * the pool is forgotten and made again.
 */
import type { Kysely } from "kysely";
import { compareEpochs, epoch, EPOCH_ZERO, epochParts, type Epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { isLeaving } from "../model/phase.ts";
import type { Workload, WriterHolder } from "../model/writer.ts";
import { type LeaseRenewal, storeConflict } from "./port.ts";
import { isShared, prepare } from "./prepared.ts";
import type { Schema, WorkloadTable } from "./schema.ts";

/** One pass of the lease to a process, or, with null, to nobody. */
export interface WriterPass {
  readonly pool: string;
  readonly ordinal: number;
  /** The workload's `writerEpoch` as the caller saw it; `EPOCH_ZERO` while the workload has had no writer. */
  readonly after: Epoch;
  readonly to: WriterHolder | null;
  /** Of the store. */
  readonly era: number;
}

export class WorkloadRepository {
  readonly #db: Kysely<Schema>;
  readonly #isShared: boolean;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#isShared = isShared(db);
    this.#queries = queriesOf(db);
  }

  async list(pool: string): Promise<Workload[]> {
    return (await this.#queries.list.rows(this.#db, { pool })).map(toWorkload);
  }

  async find(pool: string, ordinal: number): Promise<Workload | undefined> {
    const [row] = await this.#queries.find.rows(this.#db, { pool, ordinal });
    return row === undefined ? undefined : toWorkload(row);
  }

  /** False when nobody held the lease and nobody shall: nothing changed. Conflict when another epoch is stored than `after`. */
  async pass({ pool, ordinal, after, to, era }: WriterPass): Promise<boolean> {
    const known = await this.find(pool, ordinal);
    const writer = known?.writerEpoch ?? EPOCH_ZERO;
    if (compareEpochs(writer, after) !== 0) throw storeConflict(`workload ${pool}/${ordinal} has had another writer`, writer, after);
    const least = known?.minAcceptedEpoch ?? EPOCH_ZERO;
    if (to === null && (known === undefined || (known.holder === null && compareEpochs(least, writer) > 0))) return false;
    const next = following(writer, era);
    await this.#queries.save.run(
      this.#db,
      toRow({
        pool,
        ordinal,
        writerEpoch: to === null ? writer : next,
        minAcceptedEpoch: next,
        holder: to,
        renewals: 0,
        ttlMs: 0,
      }),
    );
    return true;
  }

  /**
   * A process that held another epoch before than the one that it was passed (after a recovery) never takes the new one on: that is answered, not thrown,
   * because it counts as a renewal: the judge sees that it asked, and nothing after that.
   *
   * Errors: `lease_not_held` (it may still get it), `lease_fenced` (this process never will), `store_rewound`. `findInstance` gives its record, where there
   * is one.
   */
  async renew(
    renewal: LeaseRenewal,
    ttlMs: number,
    findInstance: () => Promise<InstanceRecord | undefined>,
  ): Promise<Workload | RelevoError> {
    const { pool, bootId, epoch: believed } = renewal;
    if (this.#isShared) {
      // In one statement, which needs no lock of the pool: so it is with nearly all renewals.
      const held = believed === null ? undefined : await this.#renewHeld(renewal, believed, ttlMs);
      if (held !== undefined) return held;
      await this.#queries.lockPool.rows(this.#db, { pool });
    }
    const [row] = await this.#queries.ofHolder.rows(this.#db, { pool, instance: renewal.instance, bootId });
    if (row === undefined) {
      const instance = await findInstance();
      if (
        believed !== null &&
        !isFencedProcess(renewal, instance) &&
        (await this.#neverGave(pool, believed, renewal.ordinal ?? instance?.ordinal))
      )
        throw rewound(renewal);
      throw believed !== null || isOver(renewal, instance) ? fenced(renewal) : notHeld(renewal);
    }
    const workload = toWorkload(row);
    const order = believed === null ? 0 : compareEpochs(believed, workload.writerEpoch);
    if (order < 0) {
      // Once: who asks on in spite of the answer does not keep the place for ever.
      if (workload.renewals === 0) await this.#queries.renew.run(this.#db, { pool, ordinal: workload.ordinal, ttl_ms: 0 });
      return fenced(renewal);
    }
    if (order > 0) throw rewound(renewal);
    await this.#queries.renew.run(this.#db, { pool, ordinal: workload.ordinal, ttl_ms: ttlMs });
    return { ...workload, renewals: workload.renewals + 1, ttlMs };
  }

  async #renewHeld({ pool, instance, bootId }: LeaseRenewal, believed: Epoch, ttlMs: number): Promise<Workload | undefined> {
    const { era, counter } = epochParts(believed);
    const [row] = await this.#queries.renewHeld.rows(this.#db, { pool, instance, bootId, era, counter, ttl_ms: ttlMs });
    return row === undefined ? undefined : toWorkload(row);
  }

  /**
   * Whether this store did not give that epoch to the caller, who holds no lease in it: it is above what was given at its place, or somebody else has it. A
   * tombstone says nothing here: the epoch of the next writer is the tombstone, before and after it was given. Where the place is not known: at no place.
   */
  async #neverGave(pool: string, believed: Epoch, place: number | undefined): Promise<boolean> {
    const places = (await this.list(pool)).filter(({ ordinal }) => place === undefined || ordinal === place);
    return places.every(({ writerEpoch, holder }) => {
      const order = compareEpochs(believed, writerEpoch);
      return order > 0 || (order === 0 && holder !== null);
    });
  }

  /** Nobody holds a lease of the pool any more. */
  async fenceAll(pool: string, era: number): Promise<void> {
    for (const { ordinal, writerEpoch } of await this.list(pool)) await this.pass({ pool, ordinal, after: writerEpoch, to: null, era });
  }
}

function following(writer: Epoch, era: number): Epoch {
  const { era: own, counter } = epochParts(writer);
  return epoch(Math.max(own, era), counter + 1);
}

/** Whatever it believes, it was given nothing since. */
function isFencedProcess({ bootId }: LeaseRenewal, instance: InstanceRecord | undefined): boolean {
  return instance?.trust === "fenced" && instance.incarnation.bootId === bootId;
}

/** Trust belongs to the incarnation and what is leaving never writes again, so this process never gets the lease (back). */
function isOver({ bootId }: LeaseRenewal, instance: InstanceRecord | undefined): boolean {
  if (instance === undefined || instance.trust === "fenced") return true;
  if (isLeaving(instance.phase) && instance.phase !== "draining") return true;
  return instance.incarnation.bootId !== null && instance.incarnation.bootId !== bootId;
}

function notHeld({ pool, instance }: LeaseRenewal): RelevoError {
  return new RelevoError("lease_not_held", `${instance} does not hold the writer lease of its workload in ${pool}`, {
    class: "conflict",
    allowed: "the process to which the lease was passed",
    todo: "write nothing, and ask again: the lease passes once its former holder is sealed or fenced",
  });
}

function fenced({ pool, instance, epoch: believed }: LeaseRenewal): RelevoError {
  return new RelevoError("lease_fenced", `this process of ${instance} in ${pool} is fenced`, {
    class: "terminal",
    found: believed ?? "no epoch",
    todo: "stop: nothing of it is accepted any more, and it never gets the lease back",
  });
}

/** The holder is not told that it is fenced: it may be the right one. It stops when its time runs out. */
function rewound({ pool, instance, epoch: believed }: LeaseRenewal): RelevoError {
  return new RelevoError("store_rewound", `${instance} was given an epoch in ${pool} that the store does not know: the store was rewound`, {
    class: "retryable",
    found: believed ?? "no epoch",
    todo: "relevo store check, then relevo store recover",
  });
}

function queriesOf(db: Kysely<Schema>) {
  const all = db.selectFrom("workloads").selectAll();
  return {
    list: prepare<{ pool: string }, WorkloadTable>((p) => all.where("pool", "=", p.pool).orderBy("ordinal")),
    find: prepare<{ pool: string; ordinal: number }, WorkloadTable>((p) => all.where("pool", "=", p.pool).where("ordinal", "=", p.ordinal)),
    ofHolder: prepare<{ pool: string; instance: string; bootId: string }, WorkloadTable>((p) => {
      const held = all.where("pool", "=", p.pool).where("holder", "=", p.instance).where("boot_id", "=", p.bootId);
      return isShared(db) ? held.forUpdate() : held;
    }),
    save: prepare<WorkloadTable>((p) =>
      db
        .insertInto("workloads")
        .values({
          pool: p.pool,
          ordinal: p.ordinal,
          writer_era: p.writer_era,
          writer_counter: p.writer_counter,
          min_era: p.min_era,
          min_counter: p.min_counter,
          holder: p.holder,
          incarnation: p.incarnation,
          boot_id: p.boot_id,
          renewals: p.renewals,
          ttl_ms: p.ttl_ms,
        })
        .onConflict((conflict) =>
          conflict.columns(["pool", "ordinal"]).doUpdateSet((row) => ({
            writer_era: row.ref("excluded.writer_era"),
            writer_counter: row.ref("excluded.writer_counter"),
            min_era: row.ref("excluded.min_era"),
            min_counter: row.ref("excluded.min_counter"),
            holder: row.ref("excluded.holder"),
            incarnation: row.ref("excluded.incarnation"),
            boot_id: row.ref("excluded.boot_id"),
            renewals: row.ref("excluded.renewals"),
            ttl_ms: row.ref("excluded.ttl_ms"),
          })),
        ),
    ),
    lockPool: prepare<{ pool: string }, { pool: string }>((p) =>
      db.selectFrom("pools").select("pool").where("pool", "=", p.pool).forUpdate(),
    ),
    renewHeld: prepare<{ pool: string; instance: string; bootId: string; era: number; counter: number; ttl_ms: number }, WorkloadTable>(
      (p) =>
        db
          .updateTable("workloads")
          .set((row) => ({ renewals: row("renewals", "+", 1), ttl_ms: p.ttl_ms }))
          .where("pool", "=", p.pool)
          .where("holder", "=", p.instance)
          .where("boot_id", "=", p.bootId)
          .where("writer_era", "=", p.era)
          .where("writer_counter", "=", p.counter)
          .returningAll(),
    ),
    renew: prepare<{ pool: string; ordinal: number; ttl_ms: number }>((p) =>
      db
        .updateTable("workloads")
        .set((row) => ({ renewals: row("renewals", "+", 1), ttl_ms: p.ttl_ms }))
        .where("pool", "=", p.pool)
        .where("ordinal", "=", p.ordinal),
    ),
  };
}

function toWorkload(row: WorkloadTable): Workload {
  const { holder: instance, incarnation, boot_id: bootId } = row;
  return {
    pool: row.pool,
    ordinal: row.ordinal,
    writerEpoch: epoch(row.writer_era, row.writer_counter),
    minAcceptedEpoch: epoch(row.min_era, row.min_counter),
    holder: instance === null || incarnation === null || bootId === null ? null : { instance, incarnation, bootId },
    renewals: row.renewals,
    ttlMs: row.ttl_ms,
  };
}

function toRow({ pool, ordinal, writerEpoch, minAcceptedEpoch, holder, renewals, ttlMs }: Workload): WorkloadTable {
  const writer = epochParts(writerEpoch);
  const least = epochParts(minAcceptedEpoch);
  return {
    pool,
    ordinal,
    writer_era: writer.era,
    writer_counter: writer.counter,
    min_era: least.era,
    min_counter: least.counter,
    holder: holder?.instance ?? null,
    incarnation: holder?.incarnation ?? null,
    boot_id: holder?.bootId ?? null,
    renewals,
    ttl_ms: ttlMs,
  };
}
