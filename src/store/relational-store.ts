/** The store over tables, whatever database holds them: each port call is one turn, and what it does in its turn is in the repositories. */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Evidence } from "../model/evidence.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { PromotionException } from "../model/promotion.ts";
import type { ProvenCapacity } from "../model/proven.ts";
import type { ScaleChange } from "../model/scale.ts";
import type { StepRecord } from "../model/step.ts";
import type { Workload } from "../model/writer.ts";
import { applyChanges } from "./pool-transaction.ts";
import type {
  Authority,
  Change,
  CommitResult,
  Freeze,
  GatewayReplicaRecord,
  LeaseRenewal,
  LossCounts,
  NoticeRecord,
  OpenNoticeRows,
  PoolRows,
  RecoverCommand,
  Store,
  StoreDescription,
  StoreEra,
} from "./port.ts";
import type { Tables } from "./tables.ts";

/** No list is longer, whatever the caller asks for. */
const MAX_LIST = 10_000;

/** Of whom a turn is: the calls of one pool take place in the order in which this process made them. Null: of no pool. */
export type TurnOf = string | null;

export interface Turns {
  /** One transaction: settles after it is durable, or rejects and nothing of it was applied, or with what `storeOutcomeUnknown` says. */
  write<T>(of: TurnOf, work: (tables: Tables) => Promise<T>): Promise<T>;
  /** Like `write`, while nobody else writes any row whose epochs an era changes. */
  writeAlone<T>(work: (tables: Tables) => Promise<T>): Promise<T>;
  /** Like `write`, for what looks at rows of all pools and holds none of them: it sees one moment, and is done anew when others changed what it saw. */
  writeAcross<T>(work: (tables: Tables) => Promise<T>): Promise<T>;
  /** Sees committed rows only, all of one moment. */
  read<T>(work: (tables: Tables) => Promise<T>): Promise<T>;
  describe(): Promise<StoreDescription>;
  /** Takes no more work and settles when the last turn is over. Twice is harmless. */
  close(): Promise<void>;
}

export class RelationalStore implements Store {
  readonly #turns: Turns;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  claim(pool: string, owner: string, now: Instant): Promise<Authority> {
    return this.#turns.write(pool, async ({ pools }) => ({ pool, epoch: await pools.claim(pool, owner, now) }));
  }

  letGo(authority: Authority): Promise<void> {
    return this.#turns.write(authority.pool, async ({ pools }) => {
      await pools.authorise(authority);
      await pools.letGo(authority.pool);
    });
  }

  release(authority: Authority): Promise<void> {
    return this.#turns.write(authority.pool, async ({ pools, workloads, collection }) => {
      await pools.authorise(authority);
      await collection.forget(authority.pool);
      await workloads.fenceAll(authority.pool, await pools.era());
      await pools.forget(authority.pool);
    });
  }

  commit(authority: Authority, changes: readonly Change[], now: Instant): Promise<CommitResult> {
    return this.#turns.write(authority.pool, (tables) => applyChanges(tables, authority, changes, now));
  }

  readPool(pool: string): Promise<PoolRows | undefined> {
    return this.#turns.read(({ reader }) => reader.read(pool));
  }

  listPools(): Promise<readonly string[]> {
    return this.#turns.read(({ pools }) => pools.list());
  }

  poolEpochs(): Promise<ReadonlyMap<string, Epoch>> {
    return this.#turns.read(({ pools }) => pools.epochs());
  }

  poolOwners(): Promise<ReadonlyMap<string, string>> {
    return this.#turns.read(({ pools }) => pools.owners());
  }

  async renewLease(renewal: LeaseRenewal, ttlMs: number): Promise<Workload> {
    const answer = await this.#turns.write(renewal.pool, ({ workloads, instances }) =>
      workloads.renew(renewal, ttlMs, () => instances.find(renewal.pool, renewal.instance)),
    );
    if (answer instanceof RelevoError) throw answer;
    return answer;
  }

  readEra(): Promise<StoreEra> {
    return this.#turns.read(({ recovery }) => recovery.read());
  }

  recover(command: RecoverCommand): Promise<StoreEra> {
    return this.#turns.writeAlone(({ recovery }) => recovery.recover(command));
  }

  setFreeze(pool: string, freeze: Freeze | null): Promise<void> {
    return this.#turns.write(pool, ({ pools }) => pools.freeze(pool, freeze));
  }

  saveNotice(notice: NoticeRecord): Promise<boolean> {
    return this.#turns.write(null, ({ notices }) => notices.save(notice));
  }

  settleNotice(id: string, outcome: string): Promise<void> {
    return this.#turns.write(null, ({ notices }) => notices.settle(id, outcome));
  }

  listNotices(limit: number): Promise<readonly NoticeRecord[]> {
    return this.#turns.read(({ notices }) => notices.list(bounded(limit)));
  }

  openNotices(since: Instant): Promise<readonly NoticeRecord[]> {
    return this.#turns.read(({ notices }) => notices.listOpen(since));
  }

  openNoticesBeside(since: Instant, known: ReadonlySet<string>): Promise<OpenNoticeRows> {
    return this.#turns.read(({ notices }) => notices.listOpenBeside(since, known));
  }

  registerGateway(replica: string, now: Instant): Promise<void> {
    return this.#turns.write(null, ({ gateways }) => gateways.register(replica, now));
  }

  removeGateway(replica: string): Promise<void> {
    return this.#turns.write(null, ({ gateways }) => gateways.remove(replica));
  }

  listGateways(): Promise<readonly GatewayReplicaRecord[]> {
    return this.#turns.read(({ gateways }) => gateways.list());
  }

  listSteps(pool: string, limit: number, base?: string): Promise<readonly StepRecord[]> {
    return this.#turns.read(({ steps }) =>
      base === undefined ? steps.list(pool, bounded(limit)) : steps.listAttempts(pool, bounded(limit), base),
    );
  }

  listEvidence(pool: string, limit: number): Promise<readonly Evidence[]> {
    return this.#turns.read(({ evidence }) => evidence.list(pool, bounded(limit)));
  }

  listInstances(pool: string, limit: number): Promise<readonly InstanceRecord[]> {
    return this.#turns.read(({ instances }) => instances.list(pool, bounded(limit)));
  }

  findInstance(pool: string, id: string): Promise<InstanceRecord | undefined> {
    return this.#turns.read(({ instances }) => instances.find(pool, id));
  }

  getBlueprint(hash: string): Promise<unknown> {
    return this.#turns.read(({ instances }) => instances.findBlueprint(hash));
  }

  countLosses(pool: string): Promise<readonly LossCounts[]> {
    return this.#turns.read(({ losses }) => losses.list(pool));
  }

  listScaleChanges(pool: string, limit: number): Promise<readonly ScaleChange[]> {
    return this.#turns.read(({ scale }) => scale.list(pool, bounded(limit)));
  }

  recordProven(pool: string, proof: ProvenCapacity): Promise<void> {
    return this.#turns.write(pool, ({ scale }) => scale.prove(pool, proof));
  }

  recordException(exception: PromotionException): Promise<void> {
    return this.#turns.write(exception.pool, ({ promotions }) => promotions.record(exception));
  }

  finishFollowUp(id: string, index: number, at: Instant): Promise<PromotionException> {
    return this.#turns.write(null, ({ promotions }) => promotions.finish(id, index, at));
  }

  listExceptions(pool: string | null, limit: number): Promise<readonly PromotionException[]> {
    return this.#turns.read(({ promotions }) => promotions.list(pool, bounded(limit)));
  }

  collect(now: Instant): Promise<number> {
    return this.#turns.writeAcross(({ collection }) => collection.collect(now));
  }

  sharedSecret(name: string, offered: string): Promise<string> {
    return this.#turns.write(null, ({ secrets }) => secrets.keep(name, offered));
  }

  describeStore(): Promise<StoreDescription> {
    return this.#turns.describe();
  }

  close(): Promise<void> {
    return this.#turns.close();
  }
}

function bounded(limit: number): number {
  return Math.max(0, Math.min(Math.trunc(limit), MAX_LIST));
}
