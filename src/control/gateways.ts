/**
 * The gateway replicas: who is registered, what each has applied, who is silent.
 *
 * 1. A replica is registered from its first stream on, in the store too: a seal waits for it even when the controller was away in between.
 * 2. A replica that is silent for its TTL no longer holds up a seal, but the seal is then only assumed; also long afterwards, for every instance that it may
 *    still know. One that ended is named by its successor, or says so itself.
 * 3. After a start of the controller every registered replica is given a full TTL before its silence counts.
 * 4. Whoever sees that the store was rewound registers all replicas again that it knows (`registerAgain`), at the latest before the recovery.
 *
 * With several controllers each has a stream to each replica, and a replica may be registered by any of them. That a seal waits for all of them rests on an
 * order. A replica that joins here is registered in the store first; then the epochs of all pools are read, and it is told only of pools that are still ours.
 * A controller that takes a pool claims it first; then it reads who is registered (`refresh`), and seals only afterwards. So for a pool that changes hands while
 * a replica joins at the former owner: was it claimed before our read of the epochs, the replica hears nothing of it from us; was it claimed afterwards, the
 * registration came before the claim, and the new owner's list holds the replica. In both cases whoever may send requests to an instance is waited for.
 */
import { compareEpochs, type Epoch } from "../kernel/epoch.ts";
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import type { ControllerLine, GatewayReport, RouteMembership } from "../model/membership.ts";
import type { GatewayView } from "../observe/snapshot.ts";
import type { Store } from "../store/port.ts";

export const GATEWAY_TTL_MS = 3_000;

/**
 * Within this time of the start of a controller every replica that lives has come to it and reported, also one whose stream led to a process that stands still: it gives
 * that up after 5 s, tries again at most 2 s later, and reports within a second (`gateway/limits.ts`).
 */
export const REPORTS_WITHIN_MS = 8_000;
/** A replica that is silent for so long is given up: nothing is sent to it any more, so it knows of no instance that is made from then on. */
export const LOST_AFTER_MS = 120_000;
/** It may be cut off and go on with what it has for ever: what it may know is not confirmed as sealed. Only after so long, or beyond so many, it is forgotten. */
const FORGET_AFTER_MS = 24 * 3_600_000;
const MAX_LOST = 64;
const PING_EVERY_MS = 1_000;
const PING: ControllerLine = { type: "ping" };
/** Between two ticks no more than this counts as watched. */
const LONGEST_WATCH_MS = 1_500;

interface Replica {
  readonly id: string;
  /** For people; what is judged is `seenAt`, in time watched. */
  lastSeen: Instant;
  seenAt: number;
  report: GatewayReport | null;
  send: ((line: ControllerLine) => boolean) | null;
  wasSilent: boolean;
  lostAt: Instant | null;
}

export interface GatewayRegistryOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Something that a pool of this route waits for may have changed; null: of every route. */
  readonly onChange: (route: string | null) => void;
  /** Where there are several controllers: told the epochs of all pools between a registration and the first word to the replica. */
  readonly learnEpochs?: (epochs: ReadonlyMap<string, Epoch>) => void;
}

type RouteReport = GatewayReport["routes"][number];

/** Most are told apart, or known to be the same, without a look at their members. */
function isSame(a: RouteMembership, b: RouteMembership): boolean {
  return a === b || (a.generation === b.generation && JSON.stringify(a) === JSON.stringify(b));
}

function isIdle({ requests, sessions }: RouteReport["members"][number]): boolean {
  return requests + sessions === 0;
}

export class GatewayRegistry {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onChange: (route: string | null) => void;
  readonly #replicas = new Map<string, Replica>();
  readonly #routes = new Map<string, RouteMembership>();
  /** Until then a route that is not here may still be somebody's: a replica must not drop what drains on it. */
  #areAllKnown = false;
  readonly #learnEpochs: GatewayRegistryOptions["learnEpochs"];
  /** Routes of which no replica is to conclude that they are gone, whoever publishes them. */
  #names: (() => readonly string[]) | undefined;
  #isRereading = false;
  #timer: Timer | undefined;
  #watchedMs = 0;
  #tickedAt: number;

  constructor({ store, clock, onChange, learnEpochs }: GatewayRegistryOptions) {
    this.#learnEpochs = learnEpochs;
    this.#store = store;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#tickedAt = clock.monotonic();
  }

  /**
   * For how long this process has watched. While it was stopped or its event loop stood still, nobody's silence was observed: what the replicas said meanwhile
   * waits to be read. Nor does it matter when somebody sets the wall clock.
   */
  #watched(): number {
    return this.#watchedMs + Math.min(this.#clock.monotonic() - this.#tickedAt, LONGEST_WATCH_MS);
  }

  #seenNow(): { lastSeen: Instant; seenAt: number } {
    return { lastSeen: this.#clock.now(), seenAt: this.#watched() };
  }

  /** Reads who was registered before; returns when their silence begins to count. */
  async start(): Promise<Instant> {
    const now = this.#clock.now();
    for (const { id } of await this.#store.listGateways()) this.#know(id);
    this.#tick();
    return now + GATEWAY_TTL_MS;
  }

  /**
   * After a pool was claimed: who is registered by then. One that is lost to us may have heard of the pool's instances from its former owner until now. Throws
   * what the store does.
   */
  async refresh(): Promise<void> {
    const listed = await this.#store.listGateways();
    for (const { id } of listed) this.#know(id);
    const now = this.#clock.now();
    for (const replica of this.#replicas.values()) if (replica.lostAt !== null) replica.lostAt = now;
  }

  #know(id: string): boolean {
    if (this.#replicas.has(id)) return false;
    this.#replicas.set(id, { id, ...this.#seenNow(), report: null, send: null, wasSilent: false, lostAt: null });
    return true;
  }

  /** While the store is away what is known stays, and the next tick asks again. */
  async #rereadOnce(): Promise<void> {
    if (this.#isRereading) return;
    this.#isRereading = true;
    await this.#reread().catch(() => undefined); // said above
    this.#isRereading = false;
  }

  /**
   * Who came and went elsewhere. One that talks to us is registered, whoever gave it up. The list may also be short of it because the store was rewound: then
   * those that are silent are not gone either.
   */
  async #reread(): Promise<void> {
    const before = [...this.#replicas.values()];
    const listed = new Set((await this.#store.listGateways()).map(({ id }) => id));
    const isNews = [...listed].map((id) => this.#know(id)).includes(true);
    const missing = before.filter((replica) => !listed.has(replica.id) && this.#replicas.get(replica.id) === replica);
    const areForgotten = missing.some((replica) => replica.send !== null && !this.#isSilent(replica));
    if (areForgotten) await this.#register(missing);
    else for (const { id } of missing) this.#replicas.delete(id);
    if (isNews || (missing.length > 0 && !areForgotten)) this.#onChange(null);
  }

  /**
   * A store that was rewound has forgotten who registered since, and their streams are open: they do not come again by themselves. All that are known here are
   * in its list afterwards, also those that are given up, for the controller that comes after this one. Throws what the store does.
   */
  async registerAgain(): Promise<void> {
    const listed = new Set((await this.#store.listGateways()).map(({ id }) => id));
    await this.#register([...this.#replicas.values()].filter(({ id }) => !listed.has(id)));
  }

  async #register(replicas: readonly Replica[]): Promise<void> {
    for (const { id } of replicas) if (this.#replicas.has(id)) await this.#store.registerGateway(id, this.#clock.now());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#replicas.clear();
  }

  /**
   * Opens the stream to a replica: the first line holds all routes. Returns what to call when the stream ends. The predecessor's process has ended: nothing of
   * it can be in flight.
   */
  async join(id: string, send: (line: ControllerLine) => boolean, predecessor?: string): Promise<() => void> {
    await this.#store.registerGateway(id, this.#clock.now());
    this.#learnEpochs?.(await this.#store.poolEpochs());
    if (predecessor !== undefined && predecessor !== id) await this.leave(predecessor);
    const replica: Replica = {
      id,
      ...this.#seenNow(),
      report: this.#replicas.get(id)?.report ?? null,
      send,
      wasSilent: false,
      lostAt: null,
    };
    this.#replicas.set(id, replica);
    send(this.#allRoutes());
    this.#onChange(null);
    return () => {
      if (replica.send === send) replica.send = null;
    };
  }

  /** A replica that stopped in good order: it has nothing in flight. */
  async leave(id: string): Promise<void> {
    await this.#store.removeGateway(id);
    this.#replicas.delete(id);
    this.#onChange(null);
  }

  /** False when the replica is not registered: it must open its stream first. */
  take(report: GatewayReport): boolean {
    const replica = this.#replicas.get(report.replica);
    if (!replica) return false;
    Object.assign(replica, this.#seenNow());
    replica.lostAt = null;
    if (replica.report && report.sequence <= replica.report.sequence) return true;
    const before = replica.report;
    replica.report = report;
    for (const route of report.routes) {
      const former = before?.routes.find((each) => each.route === route.route);
      if (!former || this.#isNews(former, route)) this.#onChange(route.route);
    }
    return true;
  }

  /** What a pass may wait for. How much a serving member has in flight changes with each report and is nothing to look at. */
  #isNews(former: RouteReport, { route, applied, members }: RouteReport): boolean {
    if (applied !== former.applied || members.length !== former.members.length) return true;
    let draining: ReadonlySet<string> | undefined;
    return members.some((member, at) => {
      const before = former.members[at];
      if (before === member) return false;
      if (before === undefined || member.instance !== before.instance || member.incarnation !== before.incarnation) return true;
      if (member.health !== before.health) return true;
      if (isIdle(member) === isIdle(before)) return false;
      draining ??= new Set(this.#routes.get(route)?.members.flatMap(({ instance, state }) => (state === "serving" ? [] : [instance])));
      return draining.has(member.instance);
    });
  }

  /** Tells every replica, when it is news. */
  publish(membership: RouteMembership): void {
    const known = this.#routes.get(membership.route);
    if (known !== undefined && isSame(known, membership)) return;
    if (known && compareEpochs(known.generation, membership.generation) > 0) return;
    this.#routes.set(membership.route, membership);
    this.#broadcast({ type: "membership", complete: false, routes: [membership], ttlMs: GATEWAY_TTL_MS });
  }

  /** Which routes are said to be there beside those that are published. */
  nameRoutes(names: () => readonly string[]): void {
    this.#names = names;
  }

  namesChanged(): void {
    if (this.#areAllKnown) this.#broadcast(this.#allRoutes());
  }

  /** Another controller publishes it from now on: nothing more is said of it here, and it is not gone. */
  forgetRoute(route: string): void {
    this.#routes.delete(route);
  }

  withdraw(route: string): void {
    if (this.#routes.delete(route)) this.#broadcast(this.#allRoutes());
  }

  /** Each replica that is registered has said since this process began what it has applied; false while there is none. */
  get haveAllReported(): boolean {
    return this.#replicas.size > 0 && [...this.#replicas.values()].every(({ report }) => report !== null);
  }

  /** Every pool was looked at since this process began: what was not published is no route any more. */
  allRoutesKnown(): void {
    this.#areAllKnown = true;
    this.#broadcast(this.#allRoutes());
  }

  views(): readonly GatewayView[] {
    return [...this.#replicas.values()]
      .map((replica) => ({
        replica: replica.id,
        silent: this.#isSilent(replica),
        lostAt: replica.lostAt,
        report: replica.report,
        connected: replica.send !== null,
        lastSeen: replica.lastSeen,
      }))
      .toSorted((a, b) => (a.replica < b.replica ? -1 : 1));
  }

  #allRoutes(): ControllerLine {
    const routes = [...this.#routes.values()];
    const names = this.#names === undefined ? {} : { names: [...this.#names()] };
    return { type: "membership", complete: this.#areAllKnown, routes, ...names, ttlMs: GATEWAY_TTL_MS };
  }

  #lose(replica: Replica): void {
    replica.lostAt = this.#clock.now();
    replica.send = null;
    this.#onChange(null);
  }

  #forgetLost(): void {
    const lost = [...this.#replicas.values()].filter(({ lostAt }) => lostAt !== null).toSorted((a, b) => b.seenAt - a.seenAt);
    for (const [index, { id, seenAt }] of lost.entries())
      if (index >= MAX_LOST || this.#watched() - seenAt > FORGET_AFTER_MS) void this.leave(id).catch(() => undefined); // tried again at the next tick
  }

  #isSilent(replica: Replica): boolean {
    return this.#watched() - replica.seenAt > GATEWAY_TTL_MS;
  }

  #broadcast(line: ControllerLine): void {
    for (const replica of this.#replicas.values()) {
      if (replica.send?.(line) === false) replica.send = null;
    }
  }

  #tick(): void {
    this.#watchedMs = this.#watched();
    this.#tickedAt = this.#clock.monotonic();
    this.#broadcast(PING);
    for (const replica of this.#replicas.values()) {
      const isSilent = this.#isSilent(replica);
      if (isSilent !== replica.wasSilent) {
        replica.wasSilent = isSilent;
        this.#onChange(null);
      }
      if (replica.lostAt === null && this.#watched() - replica.seenAt > LOST_AFTER_MS) this.#lose(replica);
    }
    this.#forgetLost();
    if (this.#learnEpochs !== undefined) void this.#rereadOnce();
    this.#timer = this.#clock.after(PING_EVERY_MS, () => this.#tick());
  }
}
