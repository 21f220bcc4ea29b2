/** What a pass makes of a plan beside acting on it: what is told, what is written down, and when to look again. */
import type { Instant } from "../kernel/clock.ts";
import type { Informer } from "../kube/informer.ts";
import { memberTargetOf, targetOf } from "../drivers/target.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { isLeaving } from "../model/phase.ts";
import { type MadeCluster, poolKey } from "../model/pool.ts";
import { reason } from "../model/reasons.ts";
import type { Watched } from "../observe/health.ts";
import type { WatchedMember } from "../observe/member-monitor.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import type { Effect, Hold, Move, Plan } from "../plan/decision.ts";
import type { PoolRows, StandingReason } from "../store/port.ts";
import type { Pass } from "./pass.ts";
import type { PoolEntry } from "./pool-informer.ts";

/** Up to so many instances a pass costs next to nothing. */
const SMALL_POOL = 25;
const GAP_PER_INSTANCE_MS = 0.2;
/** A replacement waits for about ten passes, one after the other. */
const LONGEST_GAP_MS = 250;

export function newestStampOf({ instances, failures, evidence, reasons }: PoolRows): Instant {
  return Math.max(
    0,
    ...instances.map(({ phaseSince }) => phaseSince),
    ...failures.map(({ at }) => at),
    ...evidence.map(({ firstSeen }) => firstSeen),
    ...reasons.map(({ since }) => since),
  );
}

/** Each pass looks at all instances: over many of them, what changes within a gap is worth one pass and not one for each change. */
export function gapAfterPass(instances: number): number {
  return instances <= SMALL_POOL ? 0 : Math.min(Math.ceil(instances * GAP_PER_INSTANCE_MS), LONGEST_GAP_MS);
}

/** Who is to be checked: every process that is known and not yet given up. */
export function watchedOf(
  entry: PoolEntry,
  { instances }: PoolRows,
  clusterOf: (record: InstanceRecord) => MadeCluster | undefined,
): readonly Watched[] {
  const { spec } = entry.document;
  return instances.flatMap((record): Watched[] => {
    const { host, port, bootId, number } = record.incarnation;
    if (host === null || port === null || number === 0) return [];
    if (isLeaving(record.phase) && record.phase !== "draining") return [];
    return [
      {
        instance: record.id,
        incarnation: number,
        everyMs: spec.traffic.healthEvery,
        isDraining: record.phase === "draining",
        target: targetOf(spec, { host, port, bootId }, clusterOf(record)),
      },
    ];
  });
}

/** Of clusters: those members of whose nodes it is known that they go, as long as they are there. */
export function membersOf({ spec, instances }: PoolSnapshot): readonly WatchedMember[] {
  return instances.flatMap(({ memberEvidence = [], pods, cluster }) =>
    pods.flatMap(({ uid, process }) =>
      process !== undefined && memberEvidence.some(({ podUid }) => podUid === uid)
        ? [{ podUid: uid, target: memberTargetOf(spec, process.host, cluster) }]
        : [],
    ),
  );
}

/** A step whose time has come is being tried right now: its end is what wakes the pool. */
export function nextRetry({ openSteps }: PoolRows, now: Instant): Instant {
  return Math.min(
    ...openSteps.filter(({ state, notBefore }) => state === "unknown" && notBefore > now).map(({ notBefore }) => notBefore),
    Number.POSITIVE_INFINITY,
  );
}

/** An invalid document changes nothing: the last valid one holds. */
export function problemOf(pools: Informer<PoolEntry>, key: string): string | undefined {
  return pools.problems().find(({ namespace, name }) => poolKey(namespace ?? "default", name) === key)?.problem;
}

export function invalid(problem: string): Hold {
  return { kind: "hold", subject: "", reason: reason("spec_invalid", { problem }) };
}

export function fixed({ document }: PoolEntry): Hold {
  const { protocol, healthPath } = document.spec.service;
  return { kind: "hold", subject: "", reason: reason("service_fixed", { protocol, healthPath }) };
}

export function unkept(found: string): Hold {
  return { kind: "hold", subject: "", reason: reason("finalizer_forbidden", { found }) };
}

/** What the executor leaves alone has its reason too. */
export function withHolds(pass: Pass, holds: readonly Hold[]): Pass {
  return holds.length === 0 ? pass : { ...pass, plan: { ...pass.plan, holds: [...pass.plan.holds, ...holds] } };
}

export function isEffect(decision: Effect | Move): decision is Effect {
  switch (decision.kind) {
    case "create_instance":
    case "protect_pod":
    case "unprotect_pod":
    case "cordon_node":
    case "prepare_instance":
    case "admit_instance":
    case "drain_instance":
    case "close_instance":
    case "drain_member":
    case "replace_member":
    case "delete_instance":
    case "delete_stranger":
    case "scale_target":
      return true;
    case "add_instance":
    case "take_standby":
    case "record_evidence":
    case "move":
    case "renew_incarnation":
    case "trust":
    case "pass_writer":
    case "set_desired":
      return false;
    default:
      return decision satisfies never;
  }
}

export function describe(decision: Effect | Move): Readonly<Record<string, unknown>> {
  const { kind: _, reason: why, ...rest } = decision;
  return { ...rest, reason: why.code };
}

/** A reason keeps the time at which it began to hold. Most are where they were: only past the first that is not are they looked for. */
export function standingReasons(plan: Plan, former: readonly StandingReason[], now: Instant): readonly StandingReason[] {
  let since: ReadonlyMap<string, Instant> | undefined;
  return plan.holds.map((hold: Hold, at) => {
    const before = former[at];
    if (before?.subject === hold.subject && before.reason.code === hold.reason.code)
      return { subject: hold.subject, reason: hold.reason, since: before.since };
    since ??= new Map(former.map((each) => [keyOf(each), each.since]));
    return { subject: hold.subject, reason: hold.reason, since: since.get(keyOf(hold)) ?? now };
  });
}

/** Parameters change with every look; what is written down is that another reason holds. */
export function sameReasons(a: readonly StandingReason[], b: readonly StandingReason[]): boolean {
  if (a.length !== b.length) return false;
  const isInOrder = a.every(({ subject, reason }, at) => subject === b[at]?.subject && reason.code === b[at].reason.code);
  return isInOrder || a.map(keyOf).toSorted().join("\n") === b.map(keyOf).toSorted().join("\n");
}

function keyOf({ subject, reason }: Pick<StandingReason, "subject" | "reason">): string {
  return `${subject} ${reason.code}`;
}
