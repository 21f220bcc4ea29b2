/** All rows of a pool, as the controller reads them at each pass: what was not written since the last read is not read again. */
import type { Evidence } from "../model/evidence.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { Workload } from "../model/writer.ts";
import type { CandidateFailure } from "./instances.ts";
import { KeptValue, type StoreConnection } from "./kept-rows.ts";
import type { PoolRows, StandingReason } from "./port.ts";
import type { Repositories } from "./pool-transaction.ts";
import type { PoolRow } from "./pools.ts";

type ReadPool = Pick<PoolRow, "epoch" | "owner" | "generation" | "freeze" | "scale" | "proven"> & {
  readonly reasons: readonly StandingReason[];
};

interface LivingEvidence {
  readonly of: readonly InstanceRecord[];
  readonly recorded: readonly Evidence[];
  readonly living: readonly Evidence[];
}

export class PoolReader {
  readonly #db: StoreConnection;
  readonly #repositories: Repositories;
  readonly #pool: KeptValue<ReadPool | undefined>;
  readonly #evidence: KeptValue<readonly Evidence[]>;
  readonly #failures: KeptValue<readonly CandidateFailure[]>;
  readonly #workloads: KeptValue<readonly Workload[]>;
  readonly #rows = new Map<string, { readonly text: string; readonly value: ReadPool }>();
  readonly #living = new Map<string, LivingEvidence>();

  constructor(db: StoreConnection, repositories: Repositories) {
    const { pools, instances, evidence, workloads } = repositories;
    this.#db = db;
    this.#repositories = repositories;
    this.#pool = new KeptValue(
      db,
      () => db.writesTo("pools"),
      async (pool) => {
        const row = await pools.find(pool);
        if (row?.claimed !== true) return undefined;
        // A write to another pool's row is no news of this one.
        const text = JSON.stringify(row);
        const known = this.#rows.get(pool);
        if (known?.text === text) return known.value;
        const value = { ...row, reasons: JSON.parse(row.reasons) as StandingReason[] };
        if (!db.isInTransaction) this.#rows.set(pool, { text, value });
        return value;
      },
    );
    // Evidence is of instances that are there, so all that a new instance has is written after it.
    this.#evidence = new KeptValue(
      db,
      () => db.writesTo("evidence") + db.writesTo("member_evidence"),
      (pool) => evidence.listLiving(pool),
    );
    this.#failures = new KeptValue(
      db,
      () => instances.failureWrites,
      (pool) => instances.listFailures(pool),
    );
    this.#workloads = new KeptValue(
      db,
      () => db.writesTo("workloads"),
      (pool) => workloads.list(pool),
    );
  }

  /** To be called outside of transactions; undefined when the pool is not claimed. */
  async read(pool: string): Promise<PoolRows | undefined> {
    const row = await this.#pool.get(pool);
    if (row === undefined) {
      this.#forget(pool);
      return undefined;
    }
    const instances = await this.#repositories.instances.listLiving(pool);
    return {
      pool,
      authorityEpoch: row.epoch,
      owner: row.owner,
      generation: row.generation,
      freeze: row.freeze,
      instances,
      evidence: this.#livingOf(pool, instances, await this.#evidence.get(pool)),
      openSteps: await this.#repositories.steps.listOpen(pool),
      failures: await this.#failures.get(pool),
      reasons: row.reasons,
      workloads: await this.#workloads.get(pool),
      scale: row.scale,
      proven: row.proven,
    };
  }

  #forget(pool: string): void {
    for (const kept of [this.#pool, this.#evidence, this.#failures, this.#workloads]) kept.forget(pool);
    this.#repositories.instances.forgetLiving(pool);
    this.#repositories.steps.forgetOpen(pool);
    this.#living.delete(pool);
    this.#rows.delete(pool);
  }

  /** Without that of instances which were deleted since it was read. */
  #livingOf(pool: string, instances: readonly InstanceRecord[], recorded: readonly Evidence[]): readonly Evidence[] {
    const known = this.#living.get(pool);
    if (known?.of === instances && known.recorded === recorded) return known.living;
    const ids = new Set(instances.map(({ id }) => id));
    const living = recorded.filter(({ instance }) => ids.has(instance));
    if (!this.#db.isInTransaction) this.#living.set(pool, { of: instances, recorded, living });
    return living;
  }
}
