/**
 * Whether an instance's process is believed: suspect while its check fails, fenced once it is given up. Trust belongs to the incarnation. One that holds a
 * writer lease is believed by its renewals alone: suspect while it does not renew, and then it gets nothing new.
 */
import { formatDuration } from "../kernel/units.ts";
import type { Trust } from "../model/phase.ts";
import { reason, type Reason } from "../model/reasons.ts";
import type { Draft } from "./draft.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import { idOf } from "./view.ts";

interface Verdict {
  readonly trust: Trust;
  readonly reason: Reason;
}

export function planTrust(pool: PoolSnapshot, instance: InstanceSnapshot, draft: Draft): void {
  const { record } = instance;
  if (record.phase !== "admitted" && record.phase !== "serving" && record.phase !== "draining") return;
  if (record.trust === "fenced") return;
  const isLost = instance.evidence.some(({ loss }) => loss === "forced");
  const wanted = isLost
    ? ({ trust: "fenced", reason: reason("process_lost") } as const)
    : instance.lease.state === "none"
      ? byHealth(instance)
      : byLease(pool, instance, draft);
  if (wanted === undefined || wanted.trust === record.trust) return;
  draft.decide({
    kind: "trust",
    instance: idOf(instance),
    incarnation: record.incarnation.number,
    from: record.trust,
    to: wanted.trust,
    reason: wanted.reason,
  });
}

/** Undefined: as before. */
function byHealth({ health }: InstanceSnapshot): Verdict | undefined {
  switch (health.state) {
    case "unknown":
      return undefined;
    case "failing":
      return { trust: "suspect", reason: reason("check_failing", { code: health.code }) };
    case "passing":
      return { trust: "ok", reason: reason("check_passing") };
    default:
      return health satisfies never;
  }
}

/** What time alone will change is looked at when its time comes. */
function byLease(pool: PoolSnapshot, { lease }: InstanceSnapshot, draft: Draft): Verdict | undefined {
  switch (lease.state) {
    case "none":
    case "unwatched":
    case "unasked":
      return { trust: "ok", reason: reason("lease_renewed") };
    case "unproven":
      draft.lookAgainAt(lease.lateAt);
      return undefined;
    case "renewed":
      draft.lookAgainAt(lease.lateAt);
      return { trust: "ok", reason: reason("lease_renewed") };
    case "late":
    case "expired":
      if (lease.state === "late") draft.lookAgainAt(lease.expiresAt);
      // More than half of all at once: that says something about who watches.
      if (pool.leaseBrake) return undefined;
      return { trust: "suspect", reason: reason("lease_late", { ttl: formatDuration(pool.spec.state.lease?.ttl ?? 0) }) };
    default:
      return lease satisfies never;
  }
}
