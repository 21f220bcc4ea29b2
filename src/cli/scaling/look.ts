/** One look at a pool whose size follows its demand, as its controller tells it, beside what became of a command's own jobs. */
import type { Clock } from "../../kernel/clock.ts";
import type { TaggedCounts } from "../../sdk/queue-client.ts";
import { type PoolView, poolView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";

export interface ScaleLook {
  /** Monotonic. */
  readonly at: number;
  readonly desired: number;
  readonly serving: number;
  /** Of all that waits in the pool's queue; null: nobody knows. */
  readonly backlog: number | null;
  readonly jobs: TaggedCounts;
}

export async function lookAt(client: ControllerClient, pool: string, jobs: TaggedCounts, clock: Clock): Promise<ScaleLook> {
  const { desired, serving, scale } = await client.get(`/v1/pools/${pool}`, poolView);
  return { at: clock.monotonic(), desired, serving, backlog: scale?.backlog ?? null, jobs };
}

/** Ended in good order. */
export function doneOf({ done, nothing }: TaggedCounts): number {
  return done + nothing;
}

/** Ended at all, whatever way. */
export function endedOf({ done, nothing, failed, reaped, dead }: TaggedCounts): number {
  return done + nothing + failed + reaped + dead;
}

/** Why nothing could be shown of this pool now; empty: it can. */
export function hindrancesOf({ freeze, scale, desired, max }: PoolView): readonly string[] {
  if (scale === null || scale === undefined) return ["its controller has not looked at it yet"];
  return [
    ...(freeze === null ? [] : [`it is frozen until ${freeze.until}: ${freeze.why}`]),
    ...(scale.pausedAt === null ? [] : [`it is paused at ${scale.pausedAt}`]),
    ...(scale.trouble === null ? [] : [`its demand cannot be read: ${scale.trouble.detail}`]),
    ...(scale.growthHeld ? scale.holds.slice(0, 1).map(({ sentence }) => `its growth is held: ${sentence}`) : []),
    ...(desired >= max ? [`it is at its maximum of ${max} already`] : []),
  ];
}
