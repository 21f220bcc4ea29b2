/**
 * Whose a route is. It is a name that gateways know, so two pools must not have the same: the one that has it keeps it, else the older one gets it. A name may
 * change while replicas still hold requests under the former one.
 */
import { routeOf } from "../model/pool.ts";
import type { GatewayView } from "../observe/snapshot.ts";
import type { PoolRows } from "../store/port.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { compareText } from "../plan/view.ts";

type Published = ReadonlyMap<string, ReadonlySet<string>>;
type Claimant = Pick<PoolEntry, "key" | "createdAt" | "document">;

/** The other pool that has this one's route; undefined when the route is this one's. */
export function routeHolder(entry: Claimant, pools: readonly Claimant[], published: Published): string | undefined {
  const route = routeOf(entry.document);
  const rivals = pools.filter(({ key, document }) => key !== entry.key && routeOf(document) === route);
  if (rivals.length === 0 || published.get(entry.key)?.has(route)) return undefined;
  const incumbent = rivals.find(({ key }) => published.get(key)?.has(route));
  if (incumbent) return incumbent.key;
  const [first] = [entry, ...rivals].toSorted((a, b) => compareText(a.createdAt, b.createdAt) || compareText(a.key, b.key));
  return first?.key === entry.key ? undefined : first?.key;
}

/** Under which names replicas have instances of these rows. */
export function routesHolding(gateways: readonly GatewayView[], { instances }: Pick<PoolRows, "instances">): readonly string[] {
  const ids = new Set(instances.map(({ id }) => id));
  const routes = gateways.flatMap(({ report }) => report?.routes ?? []);
  return [...new Set(routes.filter(({ members }) => members.some(({ instance }) => ids.has(instance))).map(({ route }) => route))];
}

/** What is said of the other pool's route is nothing about this one; a pool that no replica ever had an instance of waits for none. */
export function withoutRoute(gateways: readonly GatewayView[], rows: Pick<PoolRows, "instances">): readonly GatewayView[] {
  if (routesHolding(gateways, rows).length === 0) return [];
  return gateways.map((gateway) => ({ ...gateway, report: gateway.report && { ...gateway.report, routes: [] } }));
}
