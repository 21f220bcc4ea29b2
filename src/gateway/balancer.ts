/**
 * Which member gets a request: of those that serve, passed their check and have room, the one with the least in flight for its weight. A newly
 * admitted member's weight, and with it its room, grows with time (slow start, S12).
 */
import type { RoutePolicy } from "../model/membership.ts";
import { SLOW_START_FLOOR } from "./limits.ts";
import type { MemberState, RouteState } from "./membership.ts";

/** From `SLOW_START_FLOOR` to 1, growing evenly over the policy's `slowStartMs`. `now` is monotonic ms. */
export function weightOf(member: Pick<MemberState, "slowStartFrom">, policy: Pick<RoutePolicy, "slowStartMs">, now: number): number {
  if (member.slowStartFrom === null) return 1;
  const share = policy.slowStartMs === 0 ? 1 : (now - member.slowStartFrom) / policy.slowStartMs;
  if (share >= 1) {
    member.slowStartFrom = null;
    return 1;
  }
  return Math.max(SLOW_START_FLOOR, share);
}

/** Whether new work may be sent to it at all, room aside. */
export function mayServe(member: MemberState): boolean {
  return member.state === "serving" && member.health === "passing" && !member.gone;
}

/** Of a member that has nothing in flight and its whole weight: no other can be better, so that the search over a large pool mostly ends early. */
const LEAST_SCORE = 1;

/** Undefined when no member can take it now. `excluded` are those that this request has tried already. */
export function chooseMember(route: RouteState, now: number, excluded: readonly MemberState[]): MemberState | undefined {
  const { members, policy } = route;
  const count = members.length;
  let best: MemberState | undefined;
  let bestScore = Number.POSITIVE_INFINITY;
  route.turn = route.turn + 1 >= count ? 0 : route.turn + 1;
  for (let step = 0, index = route.turn; step < count; step++, index = index + 1 >= count ? 0 : index + 1) {
    const member = members[index];
    if (member === undefined || !mayServe(member)) continue;
    if (excluded.length > 0 && excluded.includes(member)) continue;
    const weight = weightOf(member, policy, now);
    if (member.load.requests >= Math.max(1, Math.floor(policy.concurrency * weight))) continue;
    const score = (member.load.requests + 1) / weight;
    if (score < bestScore) {
      best = member;
      bestScore = score;
      if (bestScore <= LEAST_SCORE) break;
    }
  }
  return best;
}
