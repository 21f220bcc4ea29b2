/**
 * The brake: when more than half of the instances that nobody else speaks of fail our check at once, the observer is suspected first. Those that were
 * announced to go, or that others see failing too, are no majority that is well: they do not count.
 * What the gateway also sees failing, or the API server calls not ready, has its second witness and is no longer held. The same for writer leases: when more
 * than half of them were not renewed at once, it is the way to us that is suspected.
 */
import type { Instant } from "../kernel/clock.ts";
import { LEASE_LAPSED } from "../model/protocol.ts";
import type { InstanceSnapshot, LeaseState, PoolSnapshot } from "../plan/snapshot.ts";

export const BRAKE_SHARE = 0.5;
export const BRAKE_WINDOW_MS = 60_000;

type Health = InstanceSnapshot["health"];
/** What a brake reads of the last look at a pool. */
type Watched = Pick<PoolSnapshot, "pool" | "instances">;

/** What the brake asks of our checks, and tells them. */
export interface Checks {
  healthOf(instance: string, incarnation: number): Health;
  beginAnew(instance: string): void;
}

/**
 * When it goes, whoever still fails and is seen by nobody else was not asked again since we can be answered: its silence begins anew. Else those whose check
 * comes last would be condemned for our own blindness, as soon as half of the others have answered.
 */
export class HealthBrake {
  readonly #checks: Checks;
  readonly #majority = new Majority<{ readonly id: string; readonly since: Instant }>(({ id }) => this.#checks.beginAnew(id));

  constructor(checks: Checks) {
    this.#checks = checks;
  }

  /**
   * From the last snapshot of each pool, and what our checks say now: the last look may be long ago, when the store kept us from another one, and all that
   * fails since would be news of one pool alone.
   */
  look(pools: readonly Watched[]): PoolSnapshot["brake"] {
    const watched = pools
      .flatMap(({ instances }) => instances.filter(isWatched))
      .flatMap((instance) => {
        const { id, incarnation } = instance.record;
        const health = this.#checks.healthOf(id, incarnation.number);
        return isOursAlone(instance, health) ? [{ id, health }] : [];
      });
    const suspects = watched.flatMap(({ id, health }) => (isSuspect(health) ? [{ id, since: health.since }] : []));
    const suspect = this.#majority.of(suspects, watched.length, 1);
    return suspect === null ? null : { suspect, total: watched.length };
  }
}

/** What the brake of the leases asks of their judge, and tells it. */
export interface LeaseJudge {
  readonly isWatching: boolean;
  stateOf(pool: string, instance: string, incarnation: number): LeaseState;
  beginAnew(pool: string, instance: string): void;
}

/**
 * One alone is never half of all: its holder has stopped itself by then, so that a fence costs less than to wait. When the brake goes, whoever has not renewed
 * yet and is seen by nobody else was not listened to either: a full TTL begins anew.
 */
export class LeaseBrake {
  readonly #judge: LeaseJudge;
  readonly #majority = new Majority<LeaseSuspect>(({ pool, instance }) => this.#judge.beginAnew(pool, instance));

  constructor(judge: LeaseJudge) {
    this.#judge = judge;
  }

  /** From the last snapshot of each pool, and what the judge says now. */
  look(pools: Iterable<Watched>): PoolSnapshot["leaseBrake"] {
    if (!this.#judge.isWatching) return null;
    const suspects: LeaseSuspect[] = [];
    let total = 0;
    for (const { pool, instances } of pools)
      for (const instance of instances) {
        const { id, incarnation } = instance.record;
        const lease = this.#judge.stateOf(pool, id, incarnation.number);
        if (lease.state === "none" || lease.state === "unwatched" || lease.state === "unasked") continue;
        if (isSeenByOthers(instance, instance.unreached)) continue;
        total += 1;
        const isSilent = lease.state === "late" || lease.state === "expired";
        if (isSilent && !saysItself(instance.health)) suspects.push({ pool, instance: id, since: lease.since });
      }
    const late = this.#majority.of(suspects, total, 2);
    return late === null ? null : { late, total };
  }
}

interface LeaseSuspect {
  readonly pool: string;
  readonly instance: string;
  readonly since: Instant;
}

/** Whether more than the share are suspects at once. When it is over, whoever is one still is told apart: nobody was listened to meanwhile. */
class Majority<S extends { readonly since: Instant }> {
  readonly #beginAnew: (suspect: S) => void;
  #isOn = false;

  constructor(beginAnew: (suspect: S) => void) {
    this.#beginAnew = beginAnew;
  }

  /** How many; null: no majority, or fewer than `least`. */
  of(suspects: readonly S[], total: number, least: number): number | null {
    const atOnce = mostAtOnce(suspects.map(({ since }) => since));
    const wasOn = this.#isOn;
    this.#isOn = atOnce >= least && atOnce > total * BRAKE_SHARE;
    if (this.#isOn) return atOnce;
    if (wasOn) for (const suspect of suspects) this.#beginAnew(suspect);
    return null;
  }
}

function isWatched({ record }: InstanceSnapshot): boolean {
  return record.phase === "serving" || record.phase === "admitted" || record.phase === "draining";
}

/** One that answers us that it could not renew its lease is no silence of anybody. */
function isSuspect(health: Health): health is Extract<Health, { readonly state: "failing" }> {
  return health.state === "failing" && health.code !== LEASE_LAPSED;
}

/** Nobody but we would say that it is not well. Of a silence only silence is a witness: who answers a gateway 503 while we are cut off may lack nothing but us. */
function isOursAlone(instance: InstanceSnapshot, health: Health): boolean {
  return !isSeenByOthers(instance, saysItself(health) ? instance.witnessed : instance.unreached);
}

/** It answers us, and lacks something else than what it gets from us. */
function saysItself(health: Health): boolean {
  return health.state === "failing" && health.code === "unhealthy";
}

/** A gateway, the API server or a notice says too that it is not well. */
function isSeenByOthers({ pods, evidence }: InstanceSnapshot, byGateway: boolean): boolean {
  return byGateway || evidence.length > 0 || pods.some(({ node }) => node?.ready !== true);
}

/** How many began within one window. That they began together is what is suspicious, however long ago it was: time is no second witness. */
function mostAtOnce(begun: readonly Instant[]): number {
  const inOrder = begun.toSorted((a, b) => a - b);
  let most = 0;
  for (let first = 0, last = 0; last < inOrder.length; last += 1) {
    while ((inOrder[last] ?? 0) - (inOrder[first] ?? 0) > BRAKE_WINDOW_MS) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
