/** Which routes each pool has, and what the gateways are told of them. */
import type { Clock } from "../kernel/clock.ts";
import type { Informer } from "../kube/informer.ts";
import { hasRoute, routeOf } from "../model/pool.ts";
import type { PoolRows } from "../store/port.ts";
import type { GatewayRegistry } from "./gateways.ts";
import { membershipOf } from "./membership.ts";
import type { Members } from "./members.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { poolNameIn } from "./rewound.ts";
import { routeHolder, routesHolding } from "./routes.ts";

export interface RoutePublisherParts {
  readonly pools: Informer<PoolEntry>;
  readonly gateways: GatewayRegistry;
  readonly members: Pick<Members, "isShared">;
  readonly clock: Clock;
  /** Whether this replica is to act for the pool. */
  readonly isMine: (pool: string) => boolean;
}

/** For so long a replica goes on naming the routes of a pool that it has lost: its next owner may not have spoken yet. */
const NAME_LOST_FOR_MS = 30_000;

export class RoutePublisher {
  readonly #parts: RoutePublisherParts;
  /** Published for each pool: its own, and former names under which a replica still has instances of it. */
  readonly #routes = new Map<string, ReadonlySet<string>>();
  /** Of pools that another replica has now: until when, monotonic, their routes are named here. */
  readonly #lost = new Map<string, number>();
  #areAllKnown = false;

  constructor(parts: RoutePublisherParts) {
    this.#parts = parts;
    if (!parts.members.isShared) return;
    parts.gateways.nameRoutes(() => this.#names());
    parts.pools.onChange(({ before, after }) => {
      if (before === undefined || after === undefined || routeOf(before.document) !== routeOf(after.document))
        parts.gateways.namesChanged();
    });
  }

  /** The other pool that has this one's route; undefined when the route is this one's. */
  holderOf(entry: PoolEntry): string | undefined {
    const { members } = this.#parts;
    if (!hasRoute(entry.document)) return undefined;
    const routed = this.#routed();
    const hasRivals = routed.some(({ key, document }) => key !== entry.key && routeOf(document) === routeOf(entry.document));
    if (!hasRivals) return undefined;
    return routeHolder(entry, routed, members.isShared ? this.#publishedByAll() : this.#routes);
  }

  /** Those whose traffic goes by this route, also under a former name of it. */
  poolsOn(route: string): readonly string[] {
    return [...this.#routes].filter(([, routes]) => routes.has(route)).map(([pool]) => pool);
  }

  publish(entry: PoolEntry, rows: PoolRows): void {
    const { gateways } = this.#parts;
    const membership = membershipOf(entry.document, rows);
    const isNone = !hasRoute(entry.document) || this.holderOf(entry) !== undefined;
    const others = new Set(this.#routed().flatMap(({ key, document }) => (key === entry.key ? [] : [routeOf(document)])));
    const former = routesHolding(gateways.views(), rows).filter((route) => route !== membership.route && !others.has(route));
    const routes = new Set([...(isNone ? [] : [membership.route]), ...former]);
    for (const route of routes) gateways.publish(route === membership.route ? membership : { ...membership, route });
    this.#routes.set(entry.key, routes);
    this.#tellWhenAllAreKnown();
  }

  #routed(): readonly PoolEntry[] {
    return this.#parts.pools.list().filter(({ document }) => hasRoute(document));
  }

  withdraw(pool: string): void {
    for (const route of this.#routes.get(pool) ?? []) this.#parts.gateways.withdraw(route);
  }

  /** What was published of it stays as it is. */
  forget(pool: string): void {
    this.#routes.delete(pool);
  }

  /** Another replica has the pool: what was published of it is not said any more, and its routes are named until that one has spoken. */
  lose(pool: string): void {
    const { gateways, clock } = this.#parts;
    for (const route of this.#routes.get(pool) ?? []) {
      this.#lost.set(route, clock.monotonic() + NAME_LOST_FOR_MS);
      gateways.forgetRoute(route);
    }
    this.#routes.delete(pool);
  }

  /** A pool that is another replica's was looked at. */
  lookedAt(): void {
    this.#tellWhenAllAreKnown();
  }

  /**
   * Routes that no gateway replica may drop, whoever serves them: of all Pools that there are, also under a former name under which a replica still holds their
   * instances, and of those that were ours until a moment ago.
   */
  #names(): readonly string[] {
    const { clock } = this.#parts;
    const now = clock.monotonic();
    for (const [route, until] of this.#lost) if (until <= now) this.#lost.delete(route);
    const own = this.#routed().map(({ document }) => routeOf(document));
    return [...new Set([...own, ...this.#reported().map(({ route }) => route), ...this.#lost.keys()])].toSorted();
  }

  /** Under which routes replicas hold instances of which pools, as their reports say. */
  #reported(): readonly { readonly pool: string; readonly route: string }[] {
    const { pools, gateways } = this.#parts;
    const byName = new Map<string, string[]>();
    for (const { key } of pools.list()) {
      const name = key.slice(key.indexOf("/") + 1);
      byName.set(name, [...(byName.get(name) ?? []), key]);
    }
    const routes = gateways.views().flatMap(({ report }) => report?.routes ?? []);
    return routes.flatMap(({ route, members }) => {
      const names = new Set(members.map(({ instance }) => poolNameIn(instance)));
      return [...names].flatMap((name) => byName.get(name) ?? []).map((pool) => ({ pool, route }));
    });
  }

  /** What other replicas have published is seen in what gateway replicas have applied. */
  #publishedByAll(): ReadonlyMap<string, ReadonlySet<string>> {
    const published = new Map([...this.#routes].map(([pool, routes]): [string, Set<string>] => [pool, new Set(routes)]));
    for (const { pool, route } of this.#reported()) published.set(pool, (published.get(pool) ?? new Set()).add(route));
    return published;
  }

  /** Once each pool was looked at: a route that is neither published nor named is gone. */
  #tellWhenAllAreKnown(): void {
    const { pools, gateways, isMine } = this.#parts;
    if (this.#areAllKnown || pools.problems().length > 0) return;
    if (!pools.list().every(({ key }) => this.#routes.has(key) || !isMine(key))) return;
    this.#areAllKnown = true;
    gateways.allRoutesKnown();
  }
}
