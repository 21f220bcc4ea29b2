/** The member whose process made a query, by the coordinator id at the end of the query's id. */
import { coordinatorIdOf } from "../../model/trino.ts";
import type { RejectionCode } from "../codes.ts";
import type { MemberState, RouteState } from "../membership.ts";

/** Of one list of members, which is never changed but replaced; a member without a boot id made nothing that could be asked for. */
const indexes = new WeakMap<readonly MemberState[], ReadonlyMap<string, readonly MemberState[]>>();

/** Those that are gone do not count: what they held is void. Two that have the same id are not guessed between. */
export function memberOfCoordinator(routes: readonly RouteState[], coordinator: string): MemberState | RejectionCode {
  const found = routes.flatMap((route) => (indexOf(route.members).get(coordinator) ?? []).filter((member) => !member.gone));
  const [only] = found;
  if (only === undefined) return "query_lost";
  return found.length === 1 ? only : "coordinator_ambiguous";
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
