/**
 * The store on SQLite. Every port call is one turn of `GroupCommit`; what it does in its turn is in the repositories.
 */
import type { Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Evidence } from "../model/evidence.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { StepRecord } from "../model/step.ts";
import type { Workload } from "../model/writer.ts";
import { Collection } from "./collection.ts";
import { EvidenceRepository } from "./evidence.ts";
import { GatewayRepository } from "./gateways.ts";
import { GroupCommit } from "./group-commit.ts";
import { InstanceRepository } from "./instances.ts";
import { LossRepository } from "./losses.ts";
import { NoticeRepository } from "./notices.ts";
import { PoolReader } from "./pool-reader.ts";
import { applyChanges, type Repositories } from "./pool-transaction.ts";
import { PoolRepository } from "./pools.ts";
import { RecoveryRepository } from "./recovery.ts";
import type {
  Authority,
  Change,
  CommitResult,
  Freeze,
  GatewayReplicaRecord,
  LeaseRenewal,
  LossCounts,
  NoticeRecord,
  PoolRows,
  RecoverCommand,
  Store,
  StoreEra,
} from "./port.ts";
import type { Schema } from "./schema.ts";
import { SqliteKysely } from "./sqlite-dialect.ts";
import { IN_MEMORY, openSqliteFile, type SqliteFile, type SqliteFileOptions } from "./sqlite-file.ts";
import { StepRepository } from "./steps.ts";
import { WorkloadRepository } from "./workloads.ts";

/** Taken at import: a simulator may forbid the global later. */
const nextTurn = setImmediate;

/** No list is longer, whatever the caller asks for. */
const MAX_LIST = 10_000;

/** Opens the file, or a new store in memory for `:memory:`, which settles by microtasks alone. Errors: see `openSqliteFile`. */
export async function openStore(options: SqliteFileOptions): Promise<Store> {
  return new SqliteStore(openSqliteFile(options), options.path !== IN_MEMORY);
}

class SqliteStore implements Store {
  readonly #file: SqliteFile;
  readonly #db: SqliteKysely<Schema>;
  readonly #turns: GroupCommit;
  readonly #repositories: Repositories;
  readonly #notices: NoticeRepository;
  readonly #gateways: GatewayRepository;
  readonly #reader: PoolReader;
  readonly #collection: Collection;
  readonly #recovery: RecoveryRepository;
  #closing: Promise<void> | undefined;

  constructor(file: SqliteFile, isOnDisk: boolean) {
    const db = new SqliteKysely<Schema>(file.database);
    this.#file = file;
    this.#db = db;
    this.#turns = new GroupCommit({
      db,
      inTransaction: () => file.database.isTransaction,
      // On disk a turn of the event loop costs less than the fsync it saves; in memory there is nothing to save, and the simulator drains microtasks only.
      gather: isOnDisk ? () => new Promise((resolve) => nextTurn(resolve)) : () => Promise.resolve(),
    });
    this.#repositories = {
      pools: new PoolRepository(db),
      instances: new InstanceRepository(db),
      evidence: new EvidenceRepository(db),
      steps: new StepRepository(db),
      losses: new LossRepository(db),
      workloads: new WorkloadRepository(db),
    };
    this.#notices = new NoticeRepository(db);
    this.#reader = new PoolReader(db, this.#repositories);
    this.#gateways = new GatewayRepository(db);
    this.#collection = new Collection(db);
    this.#recovery = new RecoveryRepository(db);
  }

  claim(pool: string, owner: string, now: Instant): Promise<Authority> {
    return this.#turns.write(async () => ({ pool, epoch: await this.#repositories.pools.claim(pool, owner, now) }));
  }

  release(authority: Authority): Promise<void> {
    return this.#turns.write(async () => {
      await this.#repositories.pools.authorise(authority);
      await this.#collection.forget(authority.pool);
      await this.#repositories.workloads.fenceAll(authority.pool, await this.#repositories.pools.era());
      await this.#repositories.pools.forget(authority.pool);
    });
  }

  commit(authority: Authority, changes: readonly Change[], now: Instant): Promise<CommitResult> {
    return this.#turns.write(() => applyChanges(this.#repositories, authority, changes, now));
  }

  readPool(pool: string): Promise<PoolRows | undefined> {
    return this.#turns.read(() => this.#reader.read(pool));
  }

  listPools(): Promise<readonly string[]> {
    return this.#turns.read(() => this.#repositories.pools.list());
  }

  async renewLease(renewal: LeaseRenewal, ttlMs: number): Promise<Workload> {
    const { instances, workloads } = this.#repositories;
    const answer = await this.#turns.write(async () =>
      workloads.renew(renewal, ttlMs, await instances.find(renewal.pool, renewal.instance)),
    );
    if (answer instanceof RelevoError) throw answer;
    return answer;
  }

  readEra(): Promise<StoreEra> {
    return this.#turns.read(() => this.#recovery.read());
  }

  recover(command: RecoverCommand): Promise<StoreEra> {
    return this.#turns.write(() => this.#recovery.recover(command));
  }

  setFreeze(pool: string, freeze: Freeze | null): Promise<void> {
    return this.#turns.write(() => this.#repositories.pools.freeze(pool, freeze));
  }

  saveNotice(notice: NoticeRecord): Promise<boolean> {
    return this.#turns.write(() => this.#notices.save(notice));
  }

  settleNotice(id: string, outcome: string): Promise<void> {
    return this.#turns.write(() => this.#notices.settle(id, outcome));
  }

  listNotices(limit: number): Promise<readonly NoticeRecord[]> {
    return this.#turns.read(() => this.#notices.list(bounded(limit)));
  }

  openNotices(since: Instant): Promise<readonly NoticeRecord[]> {
    return this.#turns.read(() => this.#notices.listOpen(since));
  }

  registerGateway(replica: string, now: Instant): Promise<void> {
    return this.#turns.write(() => this.#gateways.register(replica, now));
  }

  removeGateway(replica: string): Promise<void> {
    return this.#turns.write(() => this.#gateways.remove(replica));
  }

  listGateways(): Promise<readonly GatewayReplicaRecord[]> {
    return this.#turns.read(() => this.#gateways.list());
  }

  listSteps(pool: string, limit: number, base?: string): Promise<readonly StepRecord[]> {
    const { steps } = this.#repositories;
    return this.#turns.read(() => (base === undefined ? steps.list(pool, bounded(limit)) : steps.listAttempts(pool, bounded(limit), base)));
  }

  listEvidence(pool: string, limit: number): Promise<readonly Evidence[]> {
    return this.#turns.read(() => this.#repositories.evidence.list(pool, bounded(limit)));
  }

  listInstances(pool: string, limit: number): Promise<readonly InstanceRecord[]> {
    return this.#turns.read(() => this.#repositories.instances.list(pool, bounded(limit)));
  }

  findInstance(pool: string, id: string): Promise<InstanceRecord | undefined> {
    return this.#turns.read(() => this.#repositories.instances.find(pool, id));
  }

  getBlueprint(hash: string): Promise<unknown> {
    return this.#turns.read(() => this.#repositories.instances.findBlueprint(hash));
  }

  countLosses(pool: string): Promise<readonly LossCounts[]> {
    return this.#turns.read(() => this.#repositories.losses.list(pool));
  }

  collect(now: Instant): Promise<number> {
    return this.#turns.write(() => this.#collection.collect(now));
  }

  /** Closing twice is harmless. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#turns.close();
    await this.#db.destroy();
    this.#file.close();
  }
}

function bounded(limit: number): number {
  return Math.max(0, Math.min(Math.trunc(limit), MAX_LIST));
}
