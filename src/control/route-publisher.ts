/** Which routes each pool has, and what the gateways are told of them. */
import type { Informer } from "../kube/informer.ts";
import { routeOf } from "../model/pool.ts";
import type { PoolRows } from "../store/port.ts";
import type { GatewayRegistry } from "./gateways.ts";
import { membershipOf } from "./membership.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { routeHolder, routesHolding } from "./routes.ts";

export interface RoutePublisherParts {
  readonly pools: Informer<PoolEntry>;
  readonly gateways: GatewayRegistry;
}

export class RoutePublisher {
  readonly #parts: RoutePublisherParts;
  /** Published for each pool: its own, and former names under which a replica still has instances of it. */
  readonly #routes = new Map<string, ReadonlySet<string>>();
  #areAllKnown = false;

  constructor(parts: RoutePublisherParts) {
    this.#parts = parts;
  }

  /** The other pool that has this one's route; undefined when the route is this one's. */
  holderOf(entry: PoolEntry): string | undefined {
    return routeHolder(entry, this.#parts.pools.list(), this.#routes);
  }

  /** Those whose traffic goes by this route, also under a former name of it. */
  poolsOn(route: string): readonly string[] {
    return [...this.#routes].filter(([, routes]) => routes.has(route)).map(([pool]) => pool);
  }

  publish(entry: PoolEntry, rows: PoolRows): void {
    const { pools, gateways } = this.#parts;
    const membership = membershipOf(entry.document, rows);
    const isTaken = this.holderOf(entry) !== undefined;
    const others = new Set(pools.list().flatMap(({ key, document }) => (key === entry.key ? [] : [routeOf(document)])));
    const former = routesHolding(gateways.views(), rows).filter((route) => route !== membership.route && !others.has(route));
    const routes = new Set([...(isTaken ? [] : [membership.route]), ...former]);
    for (const route of routes) gateways.publish({ ...membership, route });
    this.#routes.set(entry.key, routes);
    this.#tellWhenAllAreKnown();
  }

  withdraw(pool: string): void {
    for (const route of this.#routes.get(pool) ?? []) this.#parts.gateways.withdraw(route);
  }

  /** What was published of it stays as it is. */
  forget(pool: string): void {
    this.#routes.delete(pool);
  }

  /** Once each pool was looked at: a route that is not among those that are published is gone. */
  #tellWhenAllAreKnown(): void {
    const { pools, gateways } = this.#parts;
    if (this.#areAllKnown || pools.problems().length > 0 || !pools.list().every(({ key }) => this.#routes.has(key))) return;
    this.#areAllKnown = true;
    gateways.allRoutesKnown();
  }
}
