/** The size of a pool that follows its demand: from the snapshot to the policy, and from its word to a move and to reasons. */
import { parseInstant, type Instant } from "../../kernel/clock.ts";
import type { ScalePolicy } from "../../model/scale.ts";
import type { Draft } from "../draft.ts";
import type { PoolSnapshot } from "../snapshot.ts";
import { isHeld, isServing, isStandby, isSurge, servingOf } from "../view.ts";
import { decideScale } from "./decide-scale.ts";
import { GROWTH_HOLDS } from "./saturation.ts";
import { sizeOf } from "./size-of.ts";
import { stateAfter } from "./state-after.ts";
import type { ScalingInput } from "./types.ts";

/** The size to plan with. A brake does not stop it: more instances are no answer to what the brake is about, but to the demand they are. */
export function planScaling(pool: PoolSnapshot, now: Instant, draft: Draft): number {
  const { scale: policy } = pool.spec;
  if (policy === undefined) return sizeOf(pool);
  const input = inputOf(pool, policy);
  const outcome = decideScale(input, now);
  draft.recommend(outcome.recommendation);
  // What is wanted meanwhile is remembered; the size is as it was when the pool was frozen.
  if (pool.freeze !== null && now < pool.freeze.until) return input.desired;
  for (const why of outcome.holds) draft.hold("", why);
  if (outcome.nextLookAt !== null) draft.lookAgainAt(outcome.nextLookAt);
  if (outcome.change === null) return input.desired;
  draft.decide({
    kind: "set_desired",
    from: input.desired,
    to: outcome.desired,
    state: stateAfter(input, outcome.desired, now),
    reason: outcome.change,
  });
  return outcome.desired;
}

export function inputOf(pool: PoolSnapshot, policy: ScalePolicy): ScalingInput {
  const desired = sizeOf(pool);
  const { floor, max } = pool.spec.size;
  const serving = servingOf(pool);
  const places = pool.instances.filter((instance) => isHeld(instance) && !isStandby(instance) && !isSurge(pool, instance));
  return {
    policy,
    bounds: { floor, max, quota: isQuotaUsed(pool) ? desired : null },
    desired,
    state: pool.scale,
    demand: pool.demand ?? { reading: null, readAt: null, trouble: null },
    slots: pool.slots,
    instances: {
      serving: serving.length,
      coming: places.filter((instance) => !isServing(instance)).length,
      since: serving.map(({ record }) => record.phaseSince).toSorted((a, b) => a - b),
    },
    settledAt: pool.settledAt,
    recommended: pool.recommended,
    heldSince: heldSinceOf(pool),
  };
}

/**
 * One that was asked for finds no place because of a quota: no more are asked for. Those that wait are not given up for it, else the quota would seem to have
 * room again, and they would be asked for and given up for ever.
 */
function isQuotaUsed({ instances, noPlace }: PoolSnapshot): boolean {
  if (noPlace === undefined || noPlace.size === 0) return false;
  return instances.some(
    (instance) =>
      isHeld(instance) &&
      instance.pods.some(({ uid, node }) => {
        const kind = node === null ? noPlace.get(uid)?.kind : undefined;
        return kind === "quota" || kind === "limit";
      }),
  );
}

/** One sign often follows another: the time goes on from the first, which each reason carries. */
function heldSinceOf({ reasons }: PoolSnapshot): Instant | null {
  const held = reasons.filter(({ subject, reason }) => subject === "" && GROWTH_HOLDS.has(reason.code));
  const since = held.map(({ reason, since: standing }) => parseInstant(String(reason.params["since"])) ?? standing);
  return since.length === 0 ? null : Math.min(...since);
}
