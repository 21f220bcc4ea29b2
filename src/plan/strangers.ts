/**
 * Objects of ours that the store does not know: after a recovery, what was made in the lost time; and what outlived its instance, because a leader that had
 * been overtaken made it too late: it was never in traffic and never will be.
 *
 * 1. They are told, and touched only when they were there before the recovery: later ones are nobody's that we know.
 * 2. They are deleted only once no gateway can send anything there: every replica has applied a generation of the new era, or was given up. The store may
 *    have forgotten a replica as well, which is known again only when it has come back.
 */
import type { Instant } from "../kernel/clock.ts";
import { compareEpochs } from "../kernel/epoch.ts";
import { reason } from "../model/reasons.ts";
import type { Draft } from "./draft.ts";
import type { PoolSnapshot, Stranger } from "./snapshot.ts";
import { compareText } from "./view.ts";

/** Within it a replica that the store forgot finds a controller again: its line tries anew every few seconds. */
const REJOINED_WITHIN_MS = 15_000;

export function planStrangers(pool: PoolSnapshot, now: Instant, draft: Draft): void {
  for (const stranger of pool.strangers.toSorted((a, b) => compareText(a.instance, b.instance))) {
    const { instance } = stranger;
    if (stranger.outlived) draft.decide({ kind: "delete_stranger", instance, reason: reason("stranger_outlived") });
    else if (!isOfLostTime(pool, stranger)) draft.hold(instance, reason("stranger"));
    else if (!isOutOfTraffic(pool)) draft.hold(instance, reason("stranger_waits", { generation: pool.generation }));
    else if (now < rejoinedAt(pool)) draft.hold(instance, reason("stranger_waits", { generation: pool.generation }), rejoinedAt(pool));
    else draft.decide({ kind: "delete_stranger", instance, reason: reason("stranger_deleted") });
  }
}

/** It was there when the store was recovered: what is decided since then stands above it. */
export function isOfLostTime({ recoveredAt }: PoolSnapshot, { createdAt }: Stranger): boolean {
  return recoveredAt !== null && createdAt <= recoveredAt;
}

function rejoinedAt({ recoveredAt }: PoolSnapshot): Instant {
  return (recoveredAt ?? 0) + REJOINED_WITHIN_MS;
}

function isOutOfTraffic({ gateways, generation }: PoolSnapshot): boolean {
  return gateways.every(({ applied, lostAt }) => lostAt !== null || (applied !== null && compareEpochs(applied, generation) >= 0));
}
