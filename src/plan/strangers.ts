/**
 * Objects of ours that the store does not know: after a recovery, what was made in the lost time; and what outlived its instance, because a leader that had
 * been overtaken made it too late: it was never in traffic and never will be.
 *
 * 1. They are told, and touched only when they were there before the recovery: later ones are nobody's that we know.
 * 2. They are deleted only once no gateway can send anything there: every replica has applied a generation of the new era, or was given up.
 */
import { compareEpochs } from "../kernel/epoch.ts";
import { reason } from "../model/reasons.ts";
import type { Draft } from "./draft.ts";
import type { PoolSnapshot, Stranger } from "./snapshot.ts";
import { compareText } from "./view.ts";

export function planStrangers(pool: PoolSnapshot, draft: Draft): void {
  for (const stranger of pool.strangers.toSorted((a, b) => compareText(a.instance, b.instance))) {
    const { instance } = stranger;
    if (stranger.outlived) draft.decide({ kind: "delete_stranger", instance, reason: reason("stranger_outlived") });
    else if (!isOfLostTime(pool, stranger)) draft.hold(instance, reason("stranger"));
    else if (!isOutOfTraffic(pool)) draft.hold(instance, reason("stranger_waits", { generation: pool.generation }));
    else draft.decide({ kind: "delete_stranger", instance, reason: reason("stranger_deleted") });
  }
}

function isOfLostTime({ recoveredAt }: PoolSnapshot, { createdAt }: Stranger): boolean {
  return recoveredAt !== null && createdAt <= recoveredAt;
}

function isOutOfTraffic({ gateways, generation }: PoolSnapshot): boolean {
  return gateways.every(({ applied, lostAt }) => lostAt !== null || (applied !== null && compareEpochs(applied, generation) >= 0));
}
