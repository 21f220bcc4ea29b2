/**
 * Who writes for each workload, that is for each place of a pool with a writer lease (I1, I2).
 *
 * 1. The lease leaves its holder only when that one is over: sealed, fenced, or another process by now. Its tombstone is in the very commit that says so.
 * 2. It goes to a process that takes traffic and is trusted. A candidate on top of what is desired waits until its predecessor is over.
 * 3. Nobody is let on in the place of a writer that is lost before that one is fenced: traffic never comes before fencing.
 * 4. A pool without a lease gives none; who holds one from before keeps it until it is over.
 * 5. The first lease of a place is given to nobody while objects are there that the store does not know: a store that was put back to before its first writer
 *    would give that one's epoch a second time, and the gateways, who would tell, may be out of reach.
 */
import type { Instant } from "../kernel/clock.ts";
import { EPOCH_ZERO } from "../kernel/epoch.ts";
import { isRouted } from "../model/phase.ts";
import { reason, type Reason } from "../model/reasons.ts";
import type { Workload, WriterHolder } from "../model/writer.ts";
import type { Draft } from "./draft.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import { isOfLostTime } from "./strangers.ts";
import { compareText, idOf, isCondemned, isServing } from "./view.ts";

interface Planning {
  readonly pool: PoolSnapshot;
  readonly now: Instant;
  readonly draft: Draft;
}

/** Looks at what else this plan decides: it comes last. */
export function planWriter(pool: PoolSnapshot, now: Instant, draft: Draft): void {
  if (pool.workloads.length === 0 && pool.spec.state.lease === undefined) return;
  const isGiven = pool.spec.state.lease !== undefined && pool.spec.service.protocol === "relevo/v1";
  const instances = new Map(pool.instances.map((instance) => [idOf(instance), instance]));
  const waiting = isGiven ? waitingByPlace(pool, draft) : new Map<number, readonly InstanceSnapshot[]>();
  const ended = draft.endedProcesses();
  const held = new Set<number>();
  // Of a time that the store has forgotten: the next epoch by its count may have been given then.
  const unknown = pool.strangers.find((stranger) => !stranger.outlived && !isOfLostTime(pool, stranger));

  for (const workload of pool.workloads) {
    const { ordinal, holder } = workload;
    if (holder === null) continue;
    held.add(ordinal);
    const next = waiting.get(ordinal) ?? [];
    const instance = instances.get(holder.instance);
    if (instance && isProcess(instance, holder) && mayWrite(instance) && !ended.has(holder.instance))
      keep({ pool, now, draft }, instance, ordinal, next);
    else take(workload, holder, unknown ? undefined : next[0], draft);
  }
  const epochs = new Map(pool.workloads.map(({ ordinal, writerEpoch }) => [ordinal, writerEpoch]));
  for (const [ordinal, [next]] of waiting) {
    if (next === undefined || held.has(ordinal)) continue;
    const after = epochs.get(ordinal) ?? EPOCH_ZERO;
    if (unknown) draft.hold(idOf(next), reason("writer_unknown", { ordinal, stranger: unknown.instance }));
    else pass(next, ordinal, after, draft);
  }
}

/** Why the process may not take traffic yet; undefined when it may. Only what is committed counts. */
export function waitsForFence(pool: PoolSnapshot, instance: InstanceSnapshot): Reason | undefined {
  const { ordinal } = instance.record;
  const holder = pool.workloads.find((workload) => workload.ordinal === ordinal)?.holder;
  if (!holder || isProcess(instance, holder)) return undefined;
  const former = pool.instances.find((each) => isProcess(each, holder));
  if (former && mayWrite(former) && former.evidence.every(({ loss }) => loss !== "forced")) return undefined;
  return reason("waiting_for_fence", { holder: holder.instance, ordinal });
}

function keep({ pool, now, draft }: Planning, instance: InstanceSnapshot, ordinal: number, waiting: readonly InstanceSnapshot[]): void {
  if (instance.lease.state === "unasked") {
    const overdueAt = instance.lease.since + (pool.spec.state.lease?.ttl ?? 0);
    if (now < overdueAt) draft.lookAgainAt(overdueAt);
    else draft.hold(idOf(instance), reason("lease_unasked", { ordinal }));
  }
  for (const other of waiting) draft.hold(idOf(other), reason("waiting_for_writer", { holder: idOf(instance), ordinal }));
}

/** Whoever comes next has the next epoch: that is the tombstone of all before it. */
function take({ ordinal, writerEpoch: after }: Workload, holder: WriterHolder, next: InstanceSnapshot | undefined, draft: Draft): void {
  if (next) return pass(next, ordinal, after, draft);
  const { instance } = holder;
  draft.decide({ kind: "pass_writer", instance, ordinal, after, to: null, reason: reason("writer_fenced", { ordinal, instance }) });
}

function pass({ record }: InstanceSnapshot, ordinal: number, after: Workload["writerEpoch"], draft: Draft): void {
  const { number: incarnation, bootId } = record.incarnation;
  if (bootId === null) return;
  const to = { instance: record.id, incarnation, bootId };
  draft.decide({ kind: "pass_writer", instance: record.id, ordinal, after, to, reason: reason("writer_passed", { ordinal }) });
}

/** Who could write at each place and does not, the best first, the places in their order. */
function waitingByPlace(pool: PoolSnapshot, draft: Draft): ReadonlyMap<number, readonly InstanceSnapshot[]> {
  const doubted = draft.doubtedProcesses();
  const waiting = pool.instances.filter(
    ({ record, evidence, lease }) =>
      isRouted(record.phase) &&
      record.trust === "ok" &&
      record.incarnation.bootId !== null &&
      lease.state === "none" &&
      evidence.every(({ loss }) => loss !== "forced") &&
      !doubted.has(record.id),
  );
  return Map.groupBy(waiting.toSorted(compareFitness), ({ record }) => record.ordinal);
}

/** One that stays before one that must go, one that serves before one that is only admitted, the oldest; all by place. */
function compareFitness(a: InstanceSnapshot, b: InstanceSnapshot): number {
  return (
    a.record.ordinal - b.record.ordinal ||
    Number(isCondemned(a)) - Number(isCondemned(b)) ||
    Number(isServing(b)) - Number(isServing(a)) ||
    a.record.createdAt - b.record.createdAt ||
    compareText(idOf(a), idOf(b))
  );
}

function isProcess({ record }: InstanceSnapshot, holder: WriterHolder): boolean {
  return record.id === holder.instance && record.incarnation.number === holder.incarnation;
}

/** As far as is committed. */
function mayWrite({ record }: InstanceSnapshot): boolean {
  return record.trust !== "fenced" && (isRouted(record.phase) || record.phase === "draining");
}
