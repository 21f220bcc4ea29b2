/**
 * Whom of a pool the schedule has to move: those whose capacity goes at a known time, or went, and nobody takes over from yet. Pure.
 *
 * Only who could go now: one that its pool keeps back (candidates failed, frozen, a controller that is new) would hold a place and a token that others need, and
 * use neither. It is asked again when its pool may.
 */
import type { Instant } from "../../kernel/clock.ts";
import { candidateGate } from "../candidates.ts";
import { compareText, compareUrgency, deadlineOf, idOf, isCondemned, isHeld, isRoutedNow, isStandby, lossOf } from "../view.ts";
import { mayAct } from "../disruption.ts";
import { sizeOf } from "../scaling/size-of.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../snapshot.ts";
import type { Evacuee } from "./types.ts";

export function evacueesOf(pool: PoolSnapshot, now: Instant): readonly Evacuee[] {
  if (!pool.instances.some(isCondemned) || now < (pool.witnessesAwaitedUntil ?? now)) return [];
  const isFrozen = pool.freeze !== null && now < pool.freeze.until;
  const desired = pool.deleting && pool.spec.deletion === "drain" ? 0 : sizeOf(pool);
  const staying = pool.instances.filter((instance) => isHeld(instance) && !isStandby(instance) && !isCondemned(instance));
  const taken = new Set(pool.instances.filter((instance) => isHeld(instance) && !isStandby(instance)).map(({ record }) => record.ordinal));
  const replaced = new Set(pool.instances.filter(isHeld).map(({ record }) => record.replaces));
  const newest = newestLeaving(pool);
  const evacuees = pool.instances
    .filter(isCondemned)
    .filter((instance) => {
      if (lossOf(instance) === "voluntary" || replaced.has(idOf(instance))) return false;
      if (!candidateGate(pool, idOf(instance), now).open) return false;
      if (isFrozen && !instance.evidence.some(({ loss }) => loss === "deadline")) return false;
      if (isRoutedNow(instance)) return mayAct(pool, instance);
      return newest.get(instance.record.ordinal) === instance && !taken.has(instance.record.ordinal);
    })
    .toSorted((a, b) => compareText(idOf(a), idOf(b)));
  const short = Math.max(0, desired - staying.length);
  const wanted = evacuees.length <= short ? evacuees : evacuees.toSorted(compareUrgency).slice(0, short);
  return wanted.map((instance) => evacueeOf(pool, instance));
}

/** Of each place who held it last and is on the way out: its successor is made for that one. */
function newestLeaving(pool: PoolSnapshot): ReadonlyMap<number, InstanceSnapshot> {
  const newest = new Map<number, InstanceSnapshot>();
  for (const instance of pool.instances) {
    const { ordinal, phase, failure, createdAt } = instance.record;
    if (isHeld(instance) || phase === "failed" || failure !== null) continue;
    const known = newest.get(ordinal);
    const isNewer = !known || createdAt > known.record.createdAt || (createdAt === known.record.createdAt && idOf(instance) > idOf(known));
    if (isNewer) newest.set(ordinal, instance);
  }
  return newest;
}

function evacueeOf(pool: PoolSnapshot, instance: InstanceSnapshot): Evacuee {
  const grave = instance.evidence.filter(({ loss }) => loss !== "voluntary");
  return {
    id: idOf(instance),
    pool: pool.pool,
    priority: pool.spec.priority,
    noticedAt: Math.min(...grave.map(({ firstSeen }) => firstSeen)),
    deadline: lossOf(instance) === "forced" ? null : deadlineOf(pool, instance),
    // What must be moved is known once checkpoints are; until then an instance begins with nothing.
    stateMoveMs: 0,
    warmUpMs: pool.spec.traffic.slowStart,
    latencyLimitMs: pool.spec.traffic.latencyLimit,
  };
}
