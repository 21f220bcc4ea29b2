/**
 * The changes of one commit, applied one after the other under one authority. Runs inside a transaction: what it throws undoes all of them.
 *
 * The route's generation rises at most once, by the first change that touches who may get traffic; all members of the commit bear the same one.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { isRouted, mayMove, mayTrust, nextPhases, type Phase } from "../model/phase.ts";
import { type ReasonCode, sentenceOf } from "../model/reasons.ts";
import type { WriterHolder } from "../model/writer.ts";
import type { EvidenceRepository } from "./evidence.ts";
import type { InstanceRepository } from "./instances.ts";
import type { LossRepository } from "./losses.ts";
import type { PoolRepository, PoolRow } from "./pools.ts";
import { storeConflict, type Authority, type Change, type CommitResult, type InstanceFacts } from "./port.ts";
import type { ScaleRepository } from "./scale.ts";
import type { StepRepository } from "./steps.ts";
import type { WorkloadRepository } from "./workloads.ts";

/** By which a target goes to a pool or from it. */
const HAND_OVERS: ReadonlySet<ReasonCode> = new Set<ReasonCode>(["scale_adopted", "scale_released"]);

export interface Repositories {
  readonly pools: PoolRepository;
  readonly instances: InstanceRepository;
  readonly evidence: EvidenceRepository;
  readonly steps: StepRepository;
  readonly losses: LossRepository;
  readonly workloads: WorkloadRepository;
  readonly scale: ScaleRepository;
}

type ChangeOf<K extends Change["kind"]> = Extract<Change, { kind: K }>;

export async function applyChanges(
  repositories: Repositories,
  authority: Authority,
  changes: readonly Change[],
  now: Instant,
): Promise<CommitResult> {
  const pool = await repositories.pools.authorise(authority);
  const transaction = new PoolTransaction(repositories, authority, pool, now);
  for (const change of changes) await transaction.apply(change);
  return { generation: transaction.generation };
}

class PoolTransaction {
  readonly #repositories: Repositories;
  readonly #authority: Authority;
  readonly #now: Instant;
  #pool: PoolRow;
  #generation: Epoch;
  #isRaised = false;

  constructor(repositories: Repositories, authority: Authority, pool: PoolRow, now: Instant) {
    this.#repositories = repositories;
    this.#authority = authority;
    this.#now = now;
    this.#pool = pool;
    this.#generation = pool.generation;
  }

  get generation(): Epoch {
    return this.#generation;
  }

  async apply(change: Change): Promise<void> {
    const { pools, instances, evidence, steps } = this.#repositories;
    switch (change.kind) {
      case "record_evidence":
        await instances.get(this.#authority.pool, change.evidence.instance);
        return evidence.record(this.#authority, change.id, change.evidence, this.#now);
      case "create_instance":
        return instances.create(this.#authority.pool, change.instance, this.#now);
      case "move_instance":
        return this.#move(change);
      case "take_standby":
        return this.#take(change);
      case "update_instance":
        return this.#update(change);
      case "renew_incarnation":
        return this.#renew(change);
      case "set_trust":
        return this.#setTrust(change);
      case "pass_writer":
        return this.#passWriter(change);
      case "record_step":
        return steps.record(this.#authority, change.step, this.#now);
      case "end_step":
        return steps.end(this.#authority, change, this.#now);
      case "retry_step":
        return steps.retry(this.#authority, change);
      case "count_loss":
        return this.#countLoss(change);
      case "set_reasons":
        this.#pool = await pools.setReasons(this.#pool, change.reasons);
        return;
      case "set_desired":
        return this.#setDesired(change);
      default:
        change satisfies never;
        throw storeConflict("a change of an unknown kind", change, "the kinds of the port");
    }
  }

  async #move({ instance, incarnation, from, to, set }: ChangeOf<"move_instance">): Promise<void> {
    const record = await this.#getInPhase(instance, from);
    if (incarnation !== undefined) requireIncarnation(record, incarnation);
    if (!mayMove(from, to))
      throw storeConflict(`instance ${instance} may not move from ${from} to ${to}`, to, nextPhases(from).join(", ") || "nothing");
    if (to === "admitted") await this.#requireNoLostWriter(record);
    const isShared = routeStateOf(from) !== routeStateOf(to);
    const generation = isShared ? await this.#raiseGeneration() : this.#generation;
    await this.#repositories.instances.save({
      ...record,
      ...factsOf(record, set),
      phase: to,
      phaseSince: this.#now,
      ...(to === "admitted" ? { admittedGeneration: generation } : {}),
      ...(to === "draining" ? { drainGeneration: generation, drainSince: this.#now } : {}),
      ...(to === "failed" ? { failedAt: this.#now } : {}),
    });
  }

  async #take({ instance, replaces, ordinal }: ChangeOf<"take_standby">): Promise<void> {
    const { purpose } = await this.#getInPhase(instance, "standby");
    if (purpose !== "standby") throw storeConflict(`standby ${instance} was taken already`, purpose, "standby");
    await this.#repositories.instances.take(instance, replaces, ordinal, this.#now);
  }

  async #update({ instance, phase, set }: ChangeOf<"update_instance">): Promise<void> {
    const record = await this.#getInPhase(instance, phase);
    const updated = { ...record, ...factsOf(record, set) };
    // Until when a draining one may go on is part of what the gateways apply.
    if (phase === "draining" && updated.drainDeadline !== record.drainDeadline) await this.#raiseGeneration();
    await this.#repositories.instances.save(updated);
  }

  async #renew({ instance, after, incarnation }: ChangeOf<"renew_incarnation">): Promise<void> {
    const record = await this.#get(instance);
    requireIncarnation(record, after);
    if (incarnation.number !== after + 1)
      throw storeConflict(`the next incarnation of instance ${instance} has another number`, incarnation.number, String(after + 1));
    if (routeStateOf(record.phase) !== "out") await this.#raiseGeneration();
    await this.#repositories.instances.save({ ...record, incarnation, trust: "ok" });
  }

  async #setTrust({ instance, incarnation, from, to }: ChangeOf<"set_trust">): Promise<void> {
    const record = await this.#get(instance);
    requireIncarnation(record, incarnation);
    if (record.trust !== from) throw storeConflict(`the trust in instance ${instance} is another`, record.trust, from);
    if (!mayTrust(from, to))
      throw storeConflict(
        `the trust in instance ${instance} may not go from ${from} to ${to}`,
        from,
        "ok to suspect or fenced, suspect to ok or fenced",
      );
    // Where a workload has a writer, trust is what the gateways go by: a suspect one gets nothing new, what still comes from a fenced one is stale.
    if (routeStateOf(record.phase) !== "out" && (await this.#hasWriter(record))) await this.#raiseGeneration();
    await this.#repositories.instances.save({ ...record, trust: to });
  }

  async #hasWriter({ ordinal }: InstanceRecord): Promise<boolean> {
    return (await this.#repositories.workloads.find(this.#authority.pool, ordinal)) !== undefined;
  }

  /** The tombstone is part of what the gateways apply. */
  async #passWriter({ ordinal, after, to }: ChangeOf<"pass_writer">): Promise<void> {
    const { workloads, pools } = this.#repositories;
    const { pool } = this.#authority;
    if (to !== null) {
      await this.#requireSuccessor(ordinal, to);
      await this.#requireFormerIsOver(ordinal);
    }
    if (await workloads.pass({ pool, ordinal, after, to, era: await pools.era() })) await this.#raiseGeneration();
  }

  async #requireSuccessor(ordinal: number, { instance, incarnation, bootId }: WriterHolder): Promise<void> {
    const record = await this.#get(instance);
    requireIncarnation(record, incarnation);
    if (record.ordinal !== ordinal) throw storeConflict(`instance ${instance} has another ordinal`, record.ordinal, String(ordinal));
    if (record.incarnation.bootId !== bootId)
      throw storeConflict(`instance ${instance} is another process`, record.incarnation.bootId, bootId);
    if (!isRouted(record.phase) || record.trust !== "ok")
      throw storeConflict(`instance ${instance} may not write`, `${record.phase}, ${record.trust}`, "admitted or serving, ok");
  }

  /** Traffic never comes before fencing: not even of an admission that was decided before the loss was known. */
  async #requireNoLostWriter({ ordinal }: InstanceRecord): Promise<void> {
    const { pool } = this.#authority;
    const holder = (await this.#repositories.workloads.find(pool, ordinal))?.holder;
    if (holder && (await this.#repositories.evidence.has(holder.instance, "forced")))
      throw storeConflict(`the writer ${holder.instance} is lost and not fenced`, holder.instance, "its fence first");
  }

  /** A lease leaves a process that may still write only by its fence. */
  async #requireFormerIsOver(ordinal: number): Promise<void> {
    const holder = (await this.#repositories.workloads.find(this.#authority.pool, ordinal))?.holder;
    const record = holder && (await this.#repositories.instances.find(this.#authority.pool, holder.instance));
    if (!record || record.incarnation.number !== holder.incarnation || record.trust === "fenced") return;
    if (isRouted(record.phase) || record.phase === "draining")
      throw storeConflict(`the writer ${holder.instance} is not over`, record.phase, "sealed, or fenced");
  }

  async #setDesired({ from, to, state, reason }: ChangeOf<"set_desired">): Promise<void> {
    const { scale } = this.#repositories;
    if (state.desired !== to)
      throw storeConflict(`the size of pool ${this.#pool.pool} and what is kept of it differ`, state.desired, String(to));
    await scale.set(this.#pool.pool, this.#pool.scale, from, state, HAND_OVERS.has(reason.code));
    this.#pool = { ...this.#pool, scale: state };
    await scale.note(this.#pool.pool, { at: this.#now, from, to, reason: reason.code, message: sentenceOf(reason) });
  }

  async #countLoss({ instance, loss, obligations, seal }: ChangeOf<"count_loss">): Promise<void> {
    await this.#get(instance);
    await this.#repositories.losses.count(this.#authority.pool, instance, loss, obligations, seal);
  }

  #get(instance: string): Promise<InstanceRecord> {
    return this.#repositories.instances.get(this.#authority.pool, instance);
  }

  async #getInPhase(instance: string, phase: Phase): Promise<InstanceRecord> {
    const record = await this.#get(instance);
    if (record.phase !== phase) throw storeConflict(`instance ${instance} is in another phase`, record.phase, phase);
    return record;
  }

  async #raiseGeneration(): Promise<Epoch> {
    if (this.#isRaised) return this.#generation;
    this.#isRaised = true;
    this.#generation = await this.#repositories.pools.nextGeneration(this.#authority.pool);
    return this.#generation;
  }
}

function requireIncarnation({ id, incarnation }: InstanceRecord, expected: number): void {
  if (incarnation.number !== expected)
    throw storeConflict(`instance ${id} is in another incarnation`, incarnation.number, String(expected));
}

/** What a gateway may do with an instance in this phase, as far as the store knows. */
function routeStateOf(phase: Phase): "serving" | "draining" | "out" {
  if (isRouted(phase)) return "serving";
  return phase === "draining" ? "draining" : "out";
}

/** What `set` changes; a boot id belongs to the incarnation. */
function factsOf(record: InstanceRecord, set: InstanceFacts = {}): Partial<InstanceRecord> {
  const { bootId, ...facts } = set;
  const present = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as Omit<InstanceFacts, "bootId">;
  return { ...present, ...(bootId === undefined ? {} : { incarnation: { ...record.incarnation, bootId } }) };
}
