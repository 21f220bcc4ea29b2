/** The member whose process made a query, by the coordinator id at the end of the query's id. */
import { coordinatorIdOf } from "../../model/trino.ts";
import type { MemberState, RouteState } from "../membership.ts";

/** Of one list of members, which is never changed but replaced; a member without a boot id made nothing that could be asked for. */
const indexes = new WeakMap<readonly MemberState[], ReadonlyMap<string, readonly MemberState[]>>();

/**
 * Those that are gone do not count, but it is known that they were: what they held is void. Two that have the same id are not guessed between. `unknown`: no
 * member has, or lately had, this id.
 */
export function memberOfCoordinator(routes: readonly RouteState[], coordinator: string): MemberState | "gone" | "ambiguous" | "unknown" {
  const found = routes.flatMap((route) => indexOf(route.members).get(coordinator) ?? []);
  const [only, other] = found.filter((member) => !member.gone);
  if (only === undefined) return found.length > 0 ? "gone" : "unknown";
  return other === undefined ? only : "ambiguous";
}

function indexOf(members: readonly MemberState[]): ReadonlyMap<string, readonly MemberState[]> {
  let index = indexes.get(members);
  if (index !== undefined) return index;
  index = Map.groupBy(
    members.filter((member) => coordinatorIdOf(member.bootId) !== null),
    (member) => coordinatorIdOf(member.bootId) ?? "",
  );
  indexes.set(members, index);
  return index;
}

/** When a query began by its coordinator's clock, as ms since the epoch, to the second. */
export function beginOfQuery(queryId: string): number {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)_/.exec(queryId) ?? [];
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
}
