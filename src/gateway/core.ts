/**
 * What all connections of a gateway share: the pure parts (membership, ledger, queue) and the runtime that performs what they decide. Nothing here knows
 * how a client or the controller is spoken to.
 */
import type { Logger } from "pino";
import type { Client } from "undici";
import type { Clock, Timer } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { ControllerLine } from "../model/membership.ts";
import { chooseMember } from "./balancer.ts";
import { Deadlines } from "./deadlines.ts";
import type { Exchange } from "./exchange.ts";
import { hostName } from "./headers.ts";
import { HeldList } from "./held.ts";
import { Ledger } from "./ledger.ts";
import { LIMITS } from "./limits.ts";
import { Lobby } from "./lobby.ts";
import {
  type GoneReason,
  Membership,
  type MemberState,
  type MembershipEffect,
  type MembershipEvent,
  type RouteState,
} from "./membership.ts";
import { laneOf, WaitingRoom } from "./queue.ts";
import type { Tokens } from "./tokens.ts";
import { TransactionsOfQueries } from "./trino/transactions.ts";
import { drop, Upstream } from "./upstream.ts";

export type GatewayLog = Pick<Logger, "debug" | "info" | "warn" | "error">;

export interface CorePorts {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly tokens: Tokens;
  readonly log: GatewayLog;
}

/** Whoever wants to know what the core decided. */
export interface CoreListener {
  /** Check this member until it is gone. */
  memberAdded(member: MemberState): void;
  memberGone(member: MemberState): void;
  /** Its health is in doubt: check it now. */
  checkNow(member: MemberState): void;
  /** Something that the controller waits for changed. */
  reportSoon(): void;
}

interface MemberRuntime {
  readonly upstream: Upstream;
  readonly held: HeldList;
}

/** Counted apart from the routes' ledgers. */
export interface FaultCounts {
  /** Requests for which there is no route. */
  unrouted: number;
  /** What was no valid HTTP. */
  malformed: number;
  /** Generations that were refused. */
  refusedGenerations: number;
}

export class GatewayCore {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly tokens: Tokens;
  readonly log: GatewayLog;
  readonly ledger = new Ledger();
  readonly waiting = new WaitingRoom(LIMITS.queuedRequests);
  readonly membership: Membership;
  readonly lobby: Lobby;
  readonly trinoTransactions = new TransactionsOfQueries();
  readonly faults: FaultCounts = { unrouted: 0, malformed: 0, refusedGenerations: 0 };
  /** True once the gateway was asked to stop: connections are told to end after their answer. */
  stopping = false;

  readonly #listeners: CoreListener[] = [];
  readonly #runtimes = new Map<MemberState, MemberRuntime>();
  readonly #deadlines = new Map<number, Deadlines>();
  #byHost = new Map<string, RouteState | null>();
  readonly #trinoByHost = new Map<string, readonly RouteState[]>();
  #queueTimer: Timer | null = null;
  #sweepTimer: Timer | null = null;

  constructor(ports: CorePorts) {
    this.clock = ports.clock;
    this.ids = ports.ids;
    this.tokens = ports.tokens;
    this.log = ports.log;
    this.lobby = new Lobby(ports.clock);
    this.membership = new Membership(ports.clock.monotonic());
  }

  listen(listener: CoreListener): void {
    this.#listeners.push(listener);
  }

  /** Starts the periodic work; `stop` ends it. */
  start(): void {
    this.#sweepTimer = this.clock.after(LIMITS.sessionSweepMs, () => {
      this.#sweep();
      this.start();
    });
  }

  /** Ends what is still in flight, each by an explicit error or an explicit close. */
  endAll(): void {
    this.waiting.refuseAll();
    for (const { held } of this.#runtimes.values()) for (const exchange of held.all()) exchange.stopNow();
  }

  stop(): void {
    this.#sweepTimer?.cancel();
    this.#queueTimer?.cancel();
    this.#queueTimer = null;
    for (const { upstream } of this.#runtimes.values()) upstream.close();
  }

  // ---- membership

  applyLine(line: ControllerLine, source = ""): void {
    this.step({ type: "line", at: this.clock.monotonic(), line, source });
  }

  step(event: MembershipEvent): void {
    for (const effect of this.membership.step(event)) this.#perform(effect);
  }

  /** A request showed that the member does not answer. */
  trouble(member: MemberState, reason: string): void {
    const { route, instance, incarnation } = member;
    this.#runtimes.get(member)?.upstream.discardIdle();
    this.step({ type: "trouble", at: this.clock.monotonic(), route, instance, incarnation, reason });
  }

  #perform(effect: MembershipEffect): void {
    switch (effect.type) {
      case "applied":
        this.#forgetHosts();
        this.log.info({ route: effect.route.route, generation: effect.generation }, "generation applied");
        this.#reportSoon();
        this.lobby.open();
        break;
      case "refused":
        this.faults.refusedGenerations += 1;
        this.log.error(
          { route: effect.route, why: effect.why, offered: effect.offered, applied: effect.applied },
          "membership refused: the controller's store is behind what was applied, or contradicts it; traffic goes on with what was applied",
        );
        this.#reportSoon();
        break;
      case "route_removed":
        this.#forgetHosts();
        this.ledger.forget(effect.route.route);
        break;
      case "member_added":
        for (const listener of this.#listeners) listener.memberAdded(effect.member);
        break;
      case "member_draining":
        for (const exchange of this.#runtimes.get(effect.member)?.held.all() ?? []) exchange.memberDraining();
        break;
      case "member_gone":
        this.#memberGone(effect.member, effect.why);
        break;
      case "writer_raised":
        for (const exchange of this.#runtimes.get(effect.member)?.held.all() ?? []) exchange.writerRaised(effect.minAccepted);
        break;
      case "health_changed":
        this.log.info(
          {
            route: effect.member.route,
            instance: effect.member.instance,
            health: effect.member.health,
            reason: effect.member.healthReason,
          },
          "a member's health changed",
        );
        this.#serveTied(effect.member);
        this.#reportSoon();
        break;
      case "check_now":
        for (const listener of this.#listeners) listener.checkNow(effect.member);
        break;
      case "capacity":
        this.#forgetHosts();
        this.#serveWaiting(effect.route);
        break;
      case "cut_off":
        this.log.warn({ silentMs: Math.round(effect.silentMs) }, "no word from the controller: traffic goes on with the last generation");
        break;
      case "connected":
        this.log.info("the controller speaks again");
        break;
      default:
        effect satisfies never;
    }
  }

  #memberGone(member: MemberState, why: GoneReason): void {
    for (const listener of this.#listeners) listener.memberGone(member);
    const runtime = this.#runtimes.get(member);
    const voided = this.ledger.voidSessions(member);
    if (runtime === undefined) return;
    if (runtime.held.size + voided > 0) {
      this.log.warn(
        { route: member.route, instance: member.instance, why, requests: runtime.held.size, sessions: voided },
        "a member is gone with what it held",
      );
    }
    for (const exchange of runtime.held.all()) exchange.memberGone(why === "fenced");
    runtime.upstream.close();
    this.#runtimes.delete(member);
  }

  // ---- routes

  /** True while no route is known at all: a replica that just started cannot tell an unknown host from a known one. */
  get knowsNothing(): boolean {
    return this.membership.routes.size === 0;
  }

  /**
   * The route for a `Host`: one that lists it, else one whose name is its first label, else the only one there is; undefined otherwise.
   */
  routeFor(host: string | undefined): RouteState | undefined {
    const key = host ?? "";
    const known = this.#byHost.get(key);
    if (known !== undefined) return known ?? undefined;
    const found = this.#findRoute(hostName(key));
    if (this.#byHost.size >= LIMITS.rememberedHosts) this.#byHost = new Map();
    this.#byHost.set(key, found ?? null);
    return found;
  }

  #findRoute(host: string): RouteState | undefined {
    const routes = [...this.membership.routes.values()];
    const listed = routes.find((route) => route.policy.hosts.some((name) => name.toLowerCase() === host));
    if (listed !== undefined) return listed;
    const label = host.split(".", 1)[0];
    return routes.find((route) => route.route.toLowerCase() === label) ?? (routes.length === 1 ? routes[0] : undefined);
  }

  /** All routes of Trino clusters that share a `Host`, in the order of their names; `found` is the one that the host alone leads to. */
  trinoRoutesFor(host: string | undefined, found: RouteState): readonly RouteState[] {
    const name = hostName(host ?? "");
    const known = this.#trinoByHost.get(name);
    if (known !== undefined) return known;
    const listed = [...this.membership.routes.values()]
      .filter((route) => route.policy.trino !== null && route.policy.hosts.some((one) => one.toLowerCase() === name))
      .toSorted((one, other) => (one.route < other.route ? -1 : 1));
    const routes = listed.length === 0 ? [found] : listed;
    if (this.#trinoByHost.size >= LIMITS.rememberedHosts) this.#trinoByHost.clear();
    this.#trinoByHost.set(name, routes);
    return routes;
  }

  #forgetHosts(): void {
    this.#byHost.clear();
    this.#trinoByHost.clear();
  }

  // ---- members and their connections

  upstreamOf(member: MemberState): Upstream {
    return this.#runtimeOf(member).upstream;
  }

  hold(exchange: Exchange, member: MemberState): void {
    this.ledger.hold(exchange, member);
    this.#runtimeOf(member).held.add(exchange);
  }

  /** The member is done with it and its connection can be used again, unless the request's body was not read to its end. */
  giveBack(exchange: Exchange, member: MemberState, client: Client, reusable: boolean): void {
    const runtime = this.#runtimes.get(member);
    runtime?.held.delete(exchange);
    if (runtime === undefined) drop(client);
    else if (reusable) runtime.upstream.give(client, this.clock.monotonic());
    else client.close().catch(() => undefined); // what is still in flight on it ends by itself
  }

  discard(exchange: Exchange, member: MemberState, client: Client): void {
    this.#runtimes.get(member)?.held.delete(exchange);
    drop(client);
  }

  memberReleased(member: MemberState): void {
    if (this.waiting.size > 0) {
      const route = this.membership.routes.get(member.route);
      if (route !== undefined) this.#serveWaiting(route);
    }
    if (member.state !== "serving" && member.load.requests === 0 && member.load.sessions === 0) this.#reportSoon();
  }

  #runtimeOf(member: MemberState): MemberRuntime {
    let runtime = this.#runtimes.get(member);
    if (runtime === undefined) {
      runtime = { upstream: new Upstream(member), held: new HeldList() };
      this.#runtimes.set(member, runtime);
    }
    return runtime;
  }

  // ---- the queue

  hasWaiting(route: string): boolean {
    return this.waiting.size > 0 && this.waiting.first(route) !== undefined;
  }

  /** The sweep runs only while somebody waits. Room also grows with time (slow start), so it offers what there is. */
  queueGrew(): void {
    this.#queueTimer ??= this.clock.after(LIMITS.queueSweepMs, () => {
      this.#queueTimer = null;
      this.waiting.expire(this.clock.monotonic());
      for (const route of this.membership.routes.values()) this.#serveWaiting(route);
      if (this.waiting.size > 0) this.queueGrew();
    });
  }

  #serveWaiting(route: RouteState): void {
    if (this.waiting.size === 0) return;
    const now = this.clock.monotonic();
    for (;;) {
      const waiter = this.waiting.first(route.route);
      if (waiter === undefined) return;
      const member = chooseMember(route, now, []);
      if (member === undefined) return;
      (waiter as Exchange).leaveQueueFor(member);
    }
  }

  /** Those that may go to this member only, now that its first check has an outcome; a bad one is theirs to find out. */
  #serveTied(member: MemberState): void {
    if (this.waiting.size === 0) return;
    const lane = laneOf(member);
    for (let waiter = this.waiting.first(lane); waiter !== undefined; waiter = this.waiting.first(lane)) {
      (waiter as Exchange).leaveQueueFor(member);
    }
  }

  // ---- time

  /** Limits of one length; lengths come from policies, so there are few. */
  deadlines(lengthMs: number): Deadlines {
    let list = this.#deadlines.get(lengthMs);
    if (list === undefined) {
      if (this.#deadlines.size >= LIMITS.limitLengths)
        for (const [length, old] of this.#deadlines) if (old.idle) this.#deadlines.delete(length);
      list = new Deadlines(this.clock, lengthMs);
      this.#deadlines.set(lengthMs, list);
    }
    return list;
  }

  #sweep(): void {
    const now = this.clock.monotonic();
    this.step({ type: "tick", at: now });
    for (const member of this.ledger.expireSessions(now)) this.memberReleased(member);
    for (const { upstream } of this.#runtimes.values()) upstream.sweep(now);
  }

  #reportSoon(): void {
    for (const listener of this.#listeners) listener.reportSoon();
  }
}
