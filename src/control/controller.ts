/**
 * The reconcile loop: a pool's key in, one pass over its current state, and the executor does the rest.
 *
 *   snapshot → plan → moves are committed, effects are journaled and begun → membership is published → reasons and status are written
 *
 * 1. Level-based: a pass starts from what is now, never from what an event said.
 * 2. One pass of a pool at a time; a pass never waits for an effect.
 * 3. A pass whose store cannot be written changes nothing and is tried again.
 * 4. With several replicas a pass is made of the pools that are this one's (`claims.ts`); of the others the document is known, and nothing else.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import { describeError, RelevoError } from "../kernel/errors.ts";
import { hasRoute, routeOf } from "../model/pool.ts";
import { NamedReads } from "../observe/named-reads.ts";
import type { Rewound } from "../plan/snapshot.ts";
import { type Authority, isStoreUnavailable, type PoolRows, staleEpoch, type StoreEra } from "../store/port.ts";
import { Claims, LOOK_AGAIN_MS } from "./claims.ts";
import { Collector } from "./collector.ts";
import { type DeletionCause, DeletionCauses, heldWhileUnknown, isOrphaned } from "./deletion-cause.ts";
import { FixedServices } from "./fixed-service.ts";
import { type PoolEntry, POOL_FINALIZER } from "./pool-informer.ts";
import { Rest } from "./rest.ts";
import { RoutePublisher } from "./route-publisher.ts";
import { StoreTrust } from "./store-trust.ts";
import { Leftovers } from "./leftovers.ts";
import type { Member } from "./members.ts";
import { WorkQueue } from "./work-queue.ts";
import type { Pass } from "./pass.ts";
import { PassActs } from "./pass-acts.ts";
import { PassMaker } from "./pass-maker.ts";
import {
  fixed,
  gapAfterPass,
  invalid,
  membersOf,
  newestStampOf,
  nextRetry,
  problemOf,
  unkept,
  watchedOf,
  withHolds,
} from "./pass-notes.ts";
import type { ControllerParts } from "./controller-parts.ts";

/** The safety net: a pool is looked at this often even when nothing calls. */
const PERIODIC_PASS_MS = 5_000;
/** While the other replicas cannot see that this one lives. */
const UNHELD_LOOK_MS = 500;
/** While the gateways are waited for: their first report may be no news. */
const WITNESS_LOOK_MS = 250;

export class Controller {
  readonly #parts: ControllerParts;
  readonly #queue: WorkQueue;
  readonly #collector: Collector;
  readonly #claims: Claims;
  /** The epoch under which the stamps of a pool were looked at: its former owner may have had another clock. */
  readonly #datedBy = new Map<string, Epoch>();
  readonly #passes = new Map<string, Pass>();
  readonly #troubles = new Map<string, string>();
  readonly #instances = new Map<string, ReadonlySet<string>>();
  readonly #routes: RoutePublisher;
  /** As they were last valid. */
  readonly #entries = new Map<string, PoolEntry>();
  readonly #services: FixedServices;
  readonly #deletions: DeletionCauses;
  readonly #look: PassMaker;
  readonly #acts: PassActs;
  readonly #leftovers: Leftovers;
  readonly #rest = new Rest();
  readonly #trust: StoreTrust;
  #settledAt: Instant = Number.POSITIVE_INFINITY;
  #isStarted = false;

  constructor(parts: ControllerParts) {
    this.#parts = parts;
    this.#queue = new WorkQueue(
      parts.clock,
      (key, isCalled) => this.#reconcile(key, isCalled),
      (key, error) => this.#failed(key, error),
      (key) => gapAfterPass(this.#instances.get(key)?.size ?? 0),
    );
    this.#collector = new Collector(parts);
    this.#claims = new Claims(parts);
    this.#routes = new RoutePublisher({ ...parts, isMine: (pool) => this.#claims.isMine(pool) });
    this.#services = new FixedServices(parts.store);
    this.#deletions = new DeletionCauses({ ...parts, onChange: (pool) => this.wake(pool) });
    this.#trust = new StoreTrust(parts);
    this.#leftovers = new Leftovers(parts);
    this.#acts = new PassActs(parts);
    this.#look = new PassMaker({
      ...parts,
      routes: this.#routes,
      trust: this.#trust,
      leftovers: this.#leftovers,
      services: this.#services,
      namedReads: new NamedReads({ ...parts, onChange: (pool) => this.wake(pool) }),
      passes: this.#passes,
      settledAt: () => this.#settledAt,
    });
  }

  async start(): Promise<void> {
    const { world, pools, gateways, notices, members, freezes, clock } = this.#parts;
    world.onChange((instance) => this.#wakeForInstance(instance));
    world.pods.onChange(({ before, after }) => {
      if (before !== undefined && after === undefined) this.#look.forgetPod(before.metadata.uid);
    });
    pools.onChange(({ after, before }) => {
      const key = (after ?? before)?.key;
      if (key !== undefined) this.wake(key);
    });
    world.start();
    pools.start();
    this.#parts.targets?.start();
    await notices.start();
    freezes?.onChange(() => this.wakeAll());
    freezes?.start();
    await Promise.all([world.whenSynced(), pools.whenSynced(), freezes?.whenAnswered()]);
    this.#settledAt = await gateways.start();
    this.#trust.begin();
    // The last thing: whoever is seen to live is given pools, and must be able to act for them. Until the gateways have spoken it could only look.
    if (members.isShared) {
      while (this.#trust.isAnyAwaited) await clock.sleep(WITNESS_LOOK_MS);
      await members.start();
    }
    members.onChange(() => this.wakeAll());
    this.#isStarted = true;
    this.#collector.start();
    for (const { key } of pools.list()) this.wake(key);
  }

  stop(): void {
    const { world, pools, gateways, health, leases, freezes, demand, slots, targets, memberStates } = this.#parts;
    const asking = [memberStates, leases, demand, slots, targets, health];
    for (const part of [...asking, this.#queue, this.#collector, world, pools, freezes, gateways]) part?.stop();
  }

  /** Nothing more is decided here, and what can be handed over is: the others take it at once. Before `stop`; alone it does nothing. */
  async handOver(): Promise<void> {
    const { members, executor } = this.#parts;
    if (!members.isShared) return;
    this.#isStarted = false;
    this.#queue.stop();
    await Promise.all(
      this.#claims.pools().map(async (pool) => {
        const authority = this.#claims.of(pool);
        if (authority !== undefined) await executor.leave(authority);
        await this.#claims.letGo(pool);
      }),
    );
    await members.stop();
  }

  /** Nothing is looked at before all that is registered is known: without its gateway replicas a draining instance would look as if nobody held it. */
  wake(pool: string): void {
    if (this.#isStarted) this.#queue.wake(pool);
  }

  /** Those whose traffic goes by this route, also under a former name of it; null: all. */
  wakeRoute(route: string | null): void {
    if (route === null) return this.wakeAll();
    for (const pool of this.#routes.poolsOn(route)) this.wake(pool);
  }

  wakeAll(): void {
    for (const { key } of this.#parts.pools.list()) this.wake(key);
  }

  /** The last pass over a pool; undefined before the first. */
  lastPass(pool: string): Pass | undefined {
    return this.#passes.get(pool);
  }

  /** Why the newest pass over a pool could not be done; undefined when it was done. */
  troubleOf(pool: string): string | undefined {
    return this.#troubles.get(pool);
  }

  authorityOf(pool: string): Authority | undefined {
    return this.#claims.of(pool);
  }

  isMine(pool: string): boolean {
    return this.#claims.isMine(pool);
  }

  /** Whose the pool is, when that is another replica that lives. */
  otherOwnerOf(pool: string): Member | undefined {
    return this.#claims.otherOf(pool);
  }

  /**
   * What the store says of all pools, read after a gateway replica was registered: what somebody else has claimed since is not ours any more, and nothing of it is
   * said to that replica.
   */
  learnEpochs(epochs: ReadonlyMap<string, Epoch>): void {
    for (const pool of this.#claims.lostTo(epochs)) this.#lose(pool);
  }

  /** How long a writer lease of this pool lasts, as its document was last valid; null when it has none, or is not known. */
  leaseTtlOf(pool: string): number | null {
    return this.#entries.get(pool)?.document.spec.state.lease?.ttl ?? null;
  }

  /** What the planner would decide right now, without acting. */
  async planNow(pool: string): Promise<Pass | undefined> {
    const entry = this.#isStarted ? (this.#entryOf(pool) ?? this.#entries.get(pool)) : undefined;
    const rows = entry && (await this.#parts.store.readPool(pool));
    if (!entry || !rows) return undefined;
    const rewound = await this.#rewoundBy(entry, rows);
    const pass = this.#look.make(await this.#services.holdOn(entry, rows), rows, { rewound, isPass: false });
    // Another one judges its writers.
    if (this.#claims.of(pool) === undefined && this.#parts.members.isShared) this.#parts.leases.forget(pool);
    return pass;
  }

  /** Why nothing is done for the pool: the store is behind what somebody has seen. As of the last pass. */
  rewoundBy(pool: string): Rewound | null {
    return this.#passes.get(pool)?.snapshot.rewound ?? null;
  }

  /** The era was raised: whatever was owned must be claimed anew. */
  recovered(era: StoreEra): void {
    this.#trust.recovered(era);
    this.#claims.clear();
    this.wakeAll();
  }

  /** The pool whose instance this is, as of the last passes. */
  poolOf(instance: string): string | undefined {
    for (const [pool, instances] of this.#instances) if (instances.has(instance)) return pool;
    return undefined;
  }

  #entryOf(pool: string): PoolEntry | undefined {
    const [namespace, name = ""] = pool.split("/");
    return this.#parts.pools.get(namespace, name);
  }

  /** One that no pool has is of an orphaned pool, or a stranger under our label. */
  #wakeForInstance(instance: string): void {
    const pool = this.poolOf(instance);
    if (pool !== undefined) this.wake(pool);
  }

  /** The store may have kept us long: what was decided from a document that is another one by now is not begun, least of all after a flag went off (I26). */
  #isPast({ key, uid, generation }: PoolEntry): boolean {
    const current = this.#entryOf(key);
    return current !== undefined && (current.uid !== uid || current.generation !== generation);
  }

  async #reconcile(key: string, isCalled: boolean): Promise<Instant | null> {
    if (isCalled) this.#rest.disturb(key);
    const problem = problemOf(this.#parts.pools, key);
    const found = problem === undefined ? this.#entryOf(key) : this.#entries.get(key);
    if (!found) return problem === undefined ? this.#forget(key) : null;
    this.#entries.set(key, found);
    if (!this.#claims.isMine(key)) return this.#leave(key);
    // Without our finalizer it is not ours to end.
    if (found.isDeleting && !found.finalizers.includes(POOL_FINALIZER)) return this.#forget(key);
    const cause = found.isDeleting ? await this.#deletions.of(found) : null;
    if (cause !== null && isOrphaned(found, cause)) return this.#orphan(found, cause);
    const isKept = found.isDeleting || found.finalizers.includes(POOL_FINALIZER);
    const refusal = isKept ? null : await this.#parts.writer.keep(found);

    const authority = await this.#claims.take(key);
    if (authority === undefined) return this.#parts.clock.now() + LOOK_AGAIN_MS;
    // What the passes before this one decided must be in the rows, or the same spare instance and the same place would be spent twice (I5).
    await this.#parts.executor.recorded(key);
    const rows = heldWhileUnknown(await this.#rows(key), cause, this.#parts.clock.now());
    const rewound = await this.#rewoundBy(found, rows);
    if (rewound !== null || this.#trust.witnessesAwaitedUntil(rows, hasRoute(found.document)) !== null)
      return this.#onlyLook(authority, found, rows, rewound);
    await this.#trust.noteEra(rows);
    // A pass that has nothing to commit would never hear of it, and the steps that it goes on with end without a word.
    if (rows.authorityEpoch !== authority.epoch) throw staleEpoch(key, rows.authorityEpoch, authority.epoch);
    const entry = await this.#services.holdOn(found, rows);
    const notes = [
      ...(problem === undefined ? [] : [invalid(problem)]),
      ...(entry === found ? [] : [fixed(entry)]),
      ...(refusal === null ? [] : [unkept(refusal)]),
    ];
    const held = this.#parts.executor.resume(authority, rows.openSteps);
    await this.#leftovers.look(rows);
    if (this.#isPast(found)) return this.#parts.clock.now();
    const restsUntil = notes.length + held.length > 0 ? null : this.#restsUntil(entry, rows);
    if (restsUntil !== null) return restsUntil;
    const pass = withHolds(this.#look.make(entry, rows, { cause }), [...held, ...notes]);
    this.#passes.set(key, pass);
    this.#parts.capacity.note(pass.snapshot);
    this.#assertOwned(authority);
    this.#follow(entry, rows);
    this.#routes.publish(entry, rows);

    if (pass.plan.recommendation !== null) this.#parts.demand.remember(key, pass.plan.recommendation, pass.at);
    this.#rest.note(entry, rows, pass);
    const moved = await this.#acts.commitMoves(authority, pass);
    if (!this.#isPast(found)) await this.#acts.begin(authority, pass);
    this.#parts.onPass?.(pass);
    this.#parts.writer.report(entry, pass);
    if (moved) this.wake(key);
    if (entry.isDeleting && rows.instances.length === 0) await this.#letGo(authority, entry);
    this.#troubles.delete(key);
    return Math.min(pass.plan.nextLookAt ?? Number.POSITIVE_INFINITY, nextRetry(rows, pass.at), pass.at + PERIODIC_PASS_MS);
  }

  /** What is written for people is tried again soon when it could not be; who cannot see the cluster has something to say. */
  #restsUntil(entry: PoolEntry, rows: PoolRows): Instant | null {
    const { world, writer, clock } = this.#parts;
    if (this.#leftovers.of(entry.key).size > 0 || writer.hasFailed(entry.key)) return null;
    if (world.trouble() !== undefined || world.ownersTrouble() !== undefined) return null;
    const now = clock.now();
    const until = this.#rest.until(entry, rows, now);
    return until === null ? null : Math.min(until, now + PERIODIC_PASS_MS);
  }

  #rewoundBy(entry: PoolEntry, rows: PoolRows): Promise<Rewound | null> {
    const isNone = !hasRoute(entry.document) || this.#routes.holderOf(entry) !== undefined;
    return this.#trust.rewoundBy(rows, isNone ? null : routeOf(entry.document), this.#claims.of(rows.pool));
  }

  /** While a pass waited for the store, a gateway replica may have come and shown that the pool is another's: what this one says of it is old. */
  #assertOwned({ pool, epoch }: Authority): void {
    const held = this.#claims.of(pool)?.epoch;
    if (this.#parts.members.isShared && held !== epoch) throw staleEpoch(pool, held ?? null, epoch);
  }

  /**
   * Nothing is done from these rows, not even what they say was begun: they are wrong, or nobody can tell yet. Traffic goes on with what the gateways have, and
   * checks go on.
   */
  #onlyLook(authority: Authority, entry: PoolEntry, rows: PoolRows, rewound: Rewound | null): Instant {
    this.#assertOwned(authority);
    const pass = this.#look.make(entry, rows, { rewound, isPass: false });
    const before = this.#passes.get(entry.key)?.snapshot.rewound ?? null;
    if (rewound !== null && before === null) this.#log("error", "the store was rewound", { pool: entry.key, ...rewound });
    this.#passes.set(entry.key, pass);
    this.#rest.disturb(entry.key);
    this.#follow(entry, rows);
    if (rewound === null) this.#routes.publish(entry, rows);
    this.#parts.onPass?.(pass);
    this.#parts.writer.report(entry, pass);
    this.#troubles.delete(entry.key);
    return pass.at + (rewound === null ? WITNESS_LOOK_MS : PERIODIC_PASS_MS);
  }

  async #rows(pool: string): Promise<PoolRows> {
    const rows = await this.#parts.store.readPool(pool);
    if (!rows) {
      this.#claims.drop(pool);
      throw new RelevoError("pool_row_missing", `pool ${pool} was claimed and is not in the store`);
    }
    this.#instances.set(pool, new Set(rows.instances.map(({ id }) => id)));
    if (this.#datedBy.get(pool) !== rows.authorityEpoch) this.#parts.clock.notBefore?.(newestStampOf(rows));
    this.#datedBy.set(pool, rows.authorityEpoch);
    return rows;
  }

  #follow(entry: PoolEntry, rows: PoolRows): void {
    const instances = new Set(rows.instances.map(({ id }) => id));
    const watched = watchedOf(entry, rows, (record) => this.#services.clusterOf(entry, record));
    const { spec } = entry.document;
    this.#parts.health.follow(instances, watched);
    const seen = this.#passes.get(entry.key)?.snapshot;
    if (seen !== undefined) this.#parts.memberStates.follow(entry.key, membersOf(seen));
    if (spec.driver === "worker") this.#parts.slots.follow(entry.key, watched, spec.worker.stuckAfter);
    if (entry.isDeleting) this.#parts.demand.forget(entry.key);
    else this.#parts.demand.follow(entry.key, entry.document);
    this.#parts.targets?.follow(entry.key, entry.document);
  }

  async #orphan(entry: PoolEntry, cause: DeletionCause): Promise<null> {
    this.#log("info", "the pool is deleted and its instances are left as they are", { pool: entry.key, cause });
    await this.#parts.writer.letGo(entry);
    return this.#forget(entry.key);
  }

  /** A pool whose document is gone without our finalizer is orphaned: nothing of it is touched, its traffic neither. */
  #forget(key: string): null {
    if ((this.#instances.get(key)?.size ?? 0) === 0) this.#routes.withdraw(key);
    this.#parts.witnesses.forget(key);
    this.#routes.forget(key);
    this.#forgetLooks(key);
    this.#entries.delete(key);
    this.#queue.forget(key);
    return null;
  }

  /** What the passes over it have left here. */
  #forgetLooks(key: string): void {
    this.#parts.health.follow(this.#instances.get(key) ?? new Set(), []);
    const { writer, leases, evacuation, demand, targets, slots, memberStates } = this.#parts;
    const ours = [this.#services, this.#deletions, this.#leftovers, this.#rest];
    for (const part of [writer, leases, evacuation, demand, targets, slots, memberStates, ...ours]) part?.forget(key);
    this.#claims.drop(key);
    for (const map of [this.#datedBy, this.#passes, this.#troubles, this.#instances]) map.delete(key);
  }

  /** It is assigned to another replica: what is under way here ends first, or stays `unknown` for that one to understand. */
  async #leave(key: string): Promise<Instant | null> {
    const { members, executor, clock } = this.#parts;
    const authority = this.#claims.of(key);
    if (authority !== undefined) await executor.leave(authority);
    await this.#claims.letGo(key);
    this.#lose(key);
    this.#routes.lookedAt();
    // Nobody tells when the others see this one again.
    return members.isHeld() ? null : clock.now() + UNHELD_LOOK_MS;
  }

  /** Somebody else has it, or is about to: what is remembered of it here is of the past. What was read of the store is remembered as a witness. */
  #lose(key: string): void {
    if (!this.#passes.has(key) && this.#claims.of(key) === undefined) return;
    this.#routes.lose(key);
    this.#forgetLooks(key);
    this.#parts.onLost?.(key);
  }

  async #letGo(authority: Authority, entry: PoolEntry): Promise<void> {
    this.#routes.withdraw(entry.key);
    await this.#parts.store.release(authority);
    // Should the next line fail, the next pass claims the empty pool anew and comes here again.
    this.#claims.drop(entry.key);
    await this.#parts.writer.letGo(entry);
  }

  #failed(key: string, error: unknown): void {
    const code = error instanceof RelevoError ? error.code : "unexpected";
    // Where there are several, that is how a replica hears that another one has claimed the pool.
    if (code === "stale_epoch" && this.#parts.members.isShared) this.#log("info", "the pool is owned under another epoch", { pool: key });
    else this.#log("error", "the pass failed and is tried again", { pool: key, code, error });
    this.#troubles.set(key, describeError(error));
    // While the store is away nobody can renew. What else keeps a pool's pass is no gap in the observation of leases, least of all of other pools'.
    if (isStoreUnavailable(error)) this.#parts.leases.interrupted();
    if (code !== "stale_epoch") return;
    this.#claims.drop(key);
    if (this.#parts.members.isShared) this.#lose(key);
  }

  #log(level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#parts.log(level, message, fields);
  }
}
