/** Who gets a route's traffic, from the store's rows: the one place where phases become members. */
import type { Member, RouteMembership } from "../model/membership.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { type PoolDocument, routeOf, routePolicyOf } from "../model/pool.ts";
import type { PoolRows } from "../store/port.ts";

export function membershipOf(document: PoolDocument, rows: PoolRows): RouteMembership {
  return {
    route: routeOf(document),
    generation: rows.generation,
    policy: routePolicyOf(document.spec),
    members: rows.instances.flatMap((record) => memberOf(record)).toSorted((a, b) => (a.instance < b.instance ? -1 : 1)),
  };
}

function memberOf(record: InstanceRecord): readonly Member[] {
  const { incarnation } = record;
  const state =
    record.phase === "admitted" || record.phase === "serving" ? "serving" : record.phase === "draining" ? "draining" : undefined;
  if (!state || incarnation.host === null || incarnation.port === null || incarnation.number === 0) return [];
  return [
    {
      instance: record.id,
      incarnation: incarnation.number,
      bootId: incarnation.bootId,
      host: incarnation.host,
      port: incarnation.port,
      // What is tied to a lost process is lost with it.
      state: state === "draining" && record.drainLoss === "forced" ? "sealed" : state,
      deadline: state === "draining" ? record.drainDeadline : null,
      writer: null,
    },
  ];
}
