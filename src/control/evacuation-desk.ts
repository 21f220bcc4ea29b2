/**
 * One evacuation schedule over all pools of this controller (S3, S12): it keeps what each pool's last snapshot said, makes the schedule when that has changed,
 * and tells each pool's planner whose turn it is.
 *
 * 1. It advises what may begin and never acts. Whom it does not name goes as if there were no schedule, and an error in it is said and leaves everybody unnamed (D12).
 * 2. What is committed is the truth: an evacuee is one that the store shows without a successor, a place that is used is an instance there. Only what was
 *    promised a moment ago and what a site was seen to absorb are kept here: after a restart promises are made anew, and absorption is learned anew from generous
 *    beginnings.
 * 3. A look costs what its pool has; a schedule costs what waits to be moved, and is made at most so often that this stays a small share of the time.
 */
import type { Instant } from "../kernel/clock.ts";
import type { CapacityView, EvacuationOverview } from "../plan/evacuation/capacity-view.ts";
import { SITE } from "../observe/spots.ts";
import { beginningsOf, isPaced } from "../plan/evacuation/beginnings.ts";
import { AbsorptionBucket, type AbsorptionConfig, type LearnedAbsorption } from "../plan/evacuation/bucket.ts";
import { evacueesOf } from "../plan/evacuation/evacuees.ts";
import { Exposure } from "../plan/evacuation/exposure.ts";
import type { EvacuationPolicy } from "../plan/evacuation/policy.ts";
import { planEvacuation } from "../plan/evacuation/schedule.ts";
import type { EvacuationPlan, Evacuee, Exposed, Grant, Prediction, Reservation } from "../plan/evacuation/types.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import { isCondemned, isRoutedNow } from "../plan/view.ts";
import { isSameSupply, type PoolSupply, poolSupplyOf, standbyPoolOf, suppliesOf } from "./evacuation-supply.ts";
import type { ControllerLog } from "./pass.ts";

/** Where learning begins: more than a small fleet ever asks for at once. Never so little that a small pool would notice. */
export const FIRST_ABSORPTION = { site: SITE, perSecond: 20, burst: 200, leastPerSecond: 1, leastBurst: 10 } as const;
/** With more than this many a schedule is made anew after so long for each one that waits: what it costs stays some hundredths of the time. */
const MOST_AT_ONCE = 100;
const SPACING_MS_PER_EVACUEE = 0.05;
/** A standby that must make room does so until the one that needs it has its machine, and no longer than this. */
const MAKES_ROOM_MS = 120_000;
/** From admission to serving takes no longer unless something is wrong. */
const MOST_ADMITTING_MS = 30_000;
/** The same fault is told so often. */
const TELL_AGAIN_MS = 60_000;
const NO_GRANTS: ReadonlyMap<string, Grant> = new Map();

export interface BeginningAbsorption {
  readonly perSecond: number;
  readonly burst: number;
}

/** Who says that a site takes little at once is believed: it is not learned to be more than that in the first moment. */
function beginningOf(known: BeginningAbsorption | undefined): AbsorptionConfig {
  if (known === undefined) return FIRST_ABSORPTION;
  return { ...FIRST_ABSORPTION, ...known, leastBurst: Math.min(known.burst, FIRST_ABSORPTION.leastBurst) };
}

export interface EvacuationDeskOptions {
  readonly capacity: () => CapacityView;
  /** Pools whose turn has come by what another one's look changed. */
  readonly onTurn: (pool: string) => void;
  readonly log: ControllerLog;
  readonly policy?: EvacuationPolicy;
  /** Where learning begins, for a site of which that is known: at least one a second and one at once. */
  readonly absorption?: BeginningAbsorption;
  readonly onPlan?: (plan: EvacuationPlan, begun: readonly Evacuee[]) => void;
}

export type Advice = Pick<PoolSnapshot, "evacuation" | "makesRoom">;

interface PoolView {
  readonly evacuees: readonly Evacuee[];
  readonly supply: PoolSupply;
  /** Since when each admitted one is that. */
  readonly admitted: ReadonlyMap<string, Instant>;
  readonly failed: ReadonlySet<string>;
  readonly exposed: Exposed | undefined;
}

interface Room {
  readonly pool: string;
  readonly until: Instant;
}

export class EvacuationDesk {
  readonly #options: EvacuationDeskOptions;
  readonly #policy: EvacuationPolicy;
  readonly #pools = new Map<string, PoolView>();
  readonly #grants = new Map<string, ReadonlyMap<string, Grant>>();
  readonly #reservations = new Map<string, Reservation>();
  /** By evacuee: whose standby makes room for its successor. */
  readonly #rooms = new Map<string, Room>();
  readonly #exposures = new Map<string, Exposure>();
  #bucket: AbsorptionBucket | undefined;
  #isDirty = false;
  #plannedAt: Instant | null = null;
  #nextLookAt: Instant | null = null;
  #prediction: Prediction | undefined;
  #toldAt: Instant | null = null;

  constructor(options: EvacuationDeskOptions) {
    this.#options = options;
    this.#policy = options.policy ?? planEvacuation;
  }

  /** Before a pool is planned: takes in what is seen of it, and says whose turn it is there. */
  look(pool: PoolSnapshot, now: Instant): Advice {
    try {
      this.#takeIn(pool, now);
      if (this.#mustPlan(now)) this.#plan(pool.pool, now);
      return this.adviceFor(pool.pool, now);
    } catch (error) {
      this.#isDirty = true;
      if (this.#toldAt === null || now - this.#toldAt >= TELL_AGAIN_MS || now < this.#toldAt)
        this.#options.log("error", "no evacuation schedule could be made: each pool goes by itself", { pool: pool.pool, error });
      this.#toldAt = now;
      return { evacuation: NO_GRANTS, makesRoom: 0 };
    }
  }

  /** As of the last look, without taking anything in. */
  adviceFor(pool: string, now: Instant): Advice {
    return { evacuation: this.#waitingIncluded(pool, now), makesRoom: this.#roomOf(pool, now) };
  }

  forget(pool: string): void {
    for (const { id } of this.#pools.get(pool)?.evacuees ?? []) this.#end(id);
    this.#pools.delete(pool);
    this.#exposures.delete(pool);
    this.#grants.delete(pool);
    this.#isDirty = true;
  }

  /** Undefined while nobody has to be moved. */
  prediction(): Prediction | undefined {
    return this.#prediction;
  }

  learned(): LearnedAbsorption | undefined {
    return this.#bucket?.learned();
  }

  /** What could take over now, what of that is promised, and what the site absorbs: for people to read. */
  overview(now: Instant): EvacuationOverview {
    const bucket = this.#bucketAt(now);
    const reserved = countBySupply([...this.#reservations.values()].filter(({ until }) => until > now));
    const absorption = bucket.view(now);
    const supplies = suppliesOf(
      [...this.#pools.values()].map(({ supply }) => supply),
      this.#options.capacity(),
      absorption,
      (supply) => reserved.get(supply) ?? 0,
    );
    return {
      supplies: supplies.map((supply) => ({ supply, reserved: reserved.get(supply.id) ?? 0 })),
      absorption,
      prediction: this.#prediction ?? null,
    };
  }

  #takeIn(pool: PoolSnapshot, now: Instant): void {
    const before = this.#pools.get(pool.pool);
    const evacuees = evacueesOf(pool, now);
    const supply = poolSupplyOf(pool);
    const ids = new Set(evacuees.map(({ id }) => id));
    for (const { id } of before?.evacuees ?? []) if (!ids.has(id)) this.#used(pool, id);
    this.#endRooms(pool, ids);
    if (!isSameSupply(before?.supply, supply) || !areSame(before?.evacuees ?? [], evacuees)) this.#isDirty = true;
    this.#pools.set(pool.pool, { evacuees, supply, exposed: this.#expose(pool, evacuees, now), ...this.#measure(pool, before, now) });
    this.#bucketAt(now).underWay(now, this.#underWay(now));
  }

  /** From admission to serving, and candidates that did not become ready: what a site absorbs is told from these. */
  #measure({ instances }: PoolSnapshot, before: PoolView | undefined, now: Instant): Pick<PoolView, "admitted" | "failed"> {
    const admitted = new Map<string, Instant>();
    const failed = new Set<string>();
    for (const { record } of instances) {
      const since = before?.admitted.get(record.id);
      if (record.phase === "admitted") admitted.set(record.id, record.phaseSince);
      else if (record.phase === "serving" && since !== undefined) this.#bucketAt(now).served(now, record.phaseSince - since);
      if (record.phase !== "failed" || record.failure !== "not_ready_in_time") continue;
      failed.add(record.id);
      if (before && !before.failed.has(record.id)) this.#bucketAt(now).failed(now);
    }
    return { admitted, failed };
  }

  /** Those that may still be on their way, also of a pool that is not looked at any more: what hangs longer hangs for another reason. */
  #underWay(now: Instant): number {
    let count = 0;
    for (const { admitted } of this.#pools.values()) for (const since of admitted.values()) if (now - since < MOST_ADMITTING_MS) count += 1;
    return count;
  }

  /** Those that have not moved since the first of them had to go. */
  #expose(pool: PoolSnapshot, evacuees: readonly Evacuee[], now: Instant): Exposed | undefined {
    const exposure = this.#exposures.get(pool.pool) ?? new Exposure();
    for (const evacuee of evacuees) exposure.note(evacuee);
    const since = exposure.since(now);
    if (since === null) {
      this.#exposures.delete(pool.pool);
      return undefined;
    }
    this.#exposures.set(pool.pool, exposure);
    const stayed = pool.instances.filter(
      (each) => isRoutedNow(each) && !isCondemned(each) && (each.record.replaces === null || each.record.phaseSince < since),
    );
    return exposure.exposed(stayed.length, now);
  }

  #bucketAt(now: Instant): AbsorptionBucket {
    this.#bucket ??= new AbsorptionBucket(beginningOf(this.#options.absorption), now);
    return this.#bucket;
  }

  #mustPlan(now: Instant): boolean {
    const waiting = this.#waiting();
    if (waiting === 0) {
      this.#settle();
      return false;
    }
    if (!this.#isDirty && (this.#nextLookAt === null || now < this.#nextLookAt)) return false;
    return this.#plannedAt === null || now < this.#plannedAt || now >= this.#plannedAt + spacingMs(waiting);
  }

  #waiting(): number {
    let count = 0;
    for (const { evacuees } of this.#pools.values()) count += evacuees.length;
    return count;
  }

  #settle(): void {
    this.#grants.clear();
    this.#reservations.clear();
    this.#prediction = undefined;
    this.#nextLookAt = null;
    this.#plannedAt = null;
    this.#isDirty = false;
  }

  #plan(asking: string, now: Instant): void {
    const bucket = this.#bucketAt(now);
    const views = [...this.#pools.values()];
    const evacuees = views.flatMap((view) => view.evacuees);
    for (const [id, { until }] of this.#reservations) if (until <= now) this.#reservations.delete(id);
    const reserved = countBySupply(this.#reservations.values());
    const plan = this.#policy({
      now,
      evacuees,
      supplies: suppliesOf(
        views.map(({ supply }) => supply),
        this.#options.capacity(),
        bucket.view(now),
        (supply) => reserved.get(supply) ?? 0,
      ),
      reservations: [...this.#reservations.values()],
      exposed: views.flatMap(({ exposed }) => (exposed !== undefined && exposed.until > now ? [exposed] : [])),
    });
    const begun = this.#reserve(plan, now);
    this.#isDirty = false;
    this.#plannedAt = now;
    this.#nextLookAt = plan.nextLookAt;
    this.#tell(plan, evacuees, begun, asking);
  }

  /** Who begins takes a token; its place is kept until it is used or ends. */
  #reserve(plan: EvacuationPlan, now: Instant): ReadonlySet<string> {
    const begun = new Set<string>();
    for (const reservation of beginningsOf(plan, (evacuee) => this.#reservations.has(evacuee))) {
      const { evacuee, supply, preempts } = reservation;
      this.#reservations.set(evacuee, reservation);
      const pool = preempts === null ? null : standbyPoolOf(supply);
      if (pool !== null) this.#rooms.set(evacuee, { pool, until: now + MAKES_ROOM_MS });
      this.#bucketAt(now).take(now);
      begun.add(evacuee);
    }
    if (isPaced(plan)) this.#bucketAt(now).waited(now);
    return begun;
  }

  #tell(plan: EvacuationPlan, evacuees: readonly Evacuee[], begun: ReadonlySet<string>, asking: string): void {
    const poolOf = new Map(evacuees.map(({ id, pool }) => [id, pool]));
    const byPool = new Map<string, Map<string, Grant>>();
    const turns = new Set<string>();
    for (const grant of plan.grants) {
      const pool = poolOf.get(grant.evacuee);
      if (pool === undefined) continue;
      const grants = byPool.get(pool) ?? new Map<string, Grant>();
      byPool.set(pool, grants);
      grants.set(grant.evacuee, grant);
      if (begun.has(grant.evacuee)) turns.add(pool);
    }
    for (const { pool } of this.#rooms.values()) turns.add(pool);
    this.#grants.clear();
    for (const [pool, grants] of byPool) this.#grants.set(pool, grants);
    const was = this.#prediction;
    this.#prediction = plan.prediction;
    if (!plan.prediction.attainable && was?.attainable !== false)
      this.#options.log("warn", `evacuation: ${plan.prediction.bottleneck}`, { ...plan.prediction });
    this.#options.onPlan?.(
      plan,
      evacuees.filter(({ id }) => begun.has(id)),
    );
    turns.delete(asking);
    for (const pool of turns) this.#options.onTurn(pool);
  }

  /** It came after the last schedule was made: it hears of its turn with the next, which is soon. */
  #waitingIncluded(pool: string, now: Instant): ReadonlyMap<string, Grant> {
    const grants = this.#grants.get(pool) ?? NO_GRANTS;
    const late = (this.#pools.get(pool)?.evacuees ?? []).filter(({ id }) => !grants.has(id));
    if (late.length === 0 || this.#plannedAt === null) return grants;
    const startAt = Math.max(now + 1, Math.ceil(this.#plannedAt + spacingMs(this.#waiting())));
    const waits = late.map(({ id }): [string, Grant] => [
      id,
      { kind: "wait", evacuee: id, supply: "the next schedule", startAt, servingAt: startAt, breach: false, preempts: null },
    ]);
    return new Map([...grants, ...waits]);
  }

  #roomOf(pool: string, now: Instant): number {
    let count = 0;
    for (const [evacuee, room] of this.#rooms) {
      if (room.until <= now) this.#rooms.delete(evacuee);
      else if (room.pool === pool) count += 1;
    }
    return count;
  }

  /** Its successor is there, or none is needed any more; a room stays until the successor has its machine. */
  #used(pool: PoolSnapshot, evacuee: string): void {
    this.#reservations.delete(evacuee);
    if (!pool.instances.some(({ record }) => record.replaces === evacuee)) this.#rooms.delete(evacuee);
  }

  #endRooms(pool: PoolSnapshot, waiting: ReadonlySet<string>): void {
    if (this.#rooms.size === 0) return;
    for (const { record, pods } of pool.instances) {
      if (record.replaces === null || !this.#rooms.has(record.replaces) || waiting.has(record.replaces)) continue;
      if (pods.some(({ node }) => node !== null)) this.#rooms.delete(record.replaces);
    }
  }

  #end(evacuee: string): void {
    this.#reservations.delete(evacuee);
    this.#rooms.delete(evacuee);
  }
}

function spacingMs(waiting: number): number {
  return waiting <= MOST_AT_ONCE ? 0 : waiting * SPACING_MS_PER_EVACUEE;
}

function countBySupply(reservations: Iterable<Reservation>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { supply } of reservations) counts.set(supply, (counts.get(supply) ?? 0) + 1);
  return counts;
}

/** Both are in one order. */
function areSame(a: readonly Evacuee[], b: readonly Evacuee[]): boolean {
  return a.length === b.length && a.every((each, index) => isSame(each, b[index]));
}

function isSame(a: Evacuee, b: Evacuee | undefined): boolean {
  return (
    b !== undefined &&
    a.id === b.id &&
    a.priority === b.priority &&
    a.noticedAt === b.noticedAt &&
    a.deadline === b.deadline &&
    a.warmUpMs === b.warmUpMs &&
    a.latencyLimitMs === b.latencyLimitMs
  );
}
