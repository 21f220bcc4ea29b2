/**
 * A modelled gateway replica around the production state machines: membership, ledger, queue, balancer and report are those that run on sockets; what is
 * modelled is the wire, the checks and the link.
 */
import { chooseMember } from "../gateway/balancer.ts";
import { Ledger } from "../gateway/ledger.ts";
import { LIMITS } from "../gateway/limits.ts";
import { Membership, type MembershipEvent, type MemberState } from "../gateway/membership.ts";
import { WaitingRoom } from "../gateway/queue.ts";
import { reportOf } from "../gateway/report.ts";
import { isStaleEpoch } from "../gateway/stale.ts";
import type { Clock, Timer } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import { integerBetween, type Random } from "../kernel/random.ts";
import type { ControllerLine, GatewayReport } from "../model/membership.ts";
import type { EventLog } from "./event-log.ts";
import { type Ask, Exchange, type RequestOutcome } from "./exchange.ts";
import type { Observe } from "./events.ts";
import type { InstanceProcess, Instances, Work } from "./instances.ts";
import type { SimulatedProcess } from "./process.ts";
import { overTheWire } from "./wire.ts";

/** How a replica reaches whatever controller is there; both reject when none is. */
export interface ControllerLink {
  /** `closed` is called when the stream ends. */
  open(replica: string, line: (line: ControllerLine) => boolean, closed: () => void): Promise<void>;
  report(report: GatewayReport): Promise<void>;
}

export interface GatewayOptions {
  readonly id: string;
  readonly process: SimulatedProcess;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  /** One to each controller that is to be there. */
  readonly links: readonly ControllerLink[];
  readonly instances: Instances;
  readonly log: EventLog;
  readonly observe: Observe;
}

const NETWORK_MS = 1;
/** Of what was lost on the way. */
const RESEND_MS = 200;
const CHECK_MS = [1, 6] as const;
const STILL_MS = 250;
/** Of an instance: longer than any client holds one. */
const SESSION_TTL_MS = 10_000;

export class GatewayReplica {
  readonly id: string;
  readonly membership: Membership;
  readonly ledger = new Ledger();
  readonly #options: GatewayOptions;
  readonly #clock: Clock;
  readonly #waiting = new WaitingRoom(LIMITS.queuedRequests);
  readonly #held = new Map<MemberState, Set<Exchange>>();
  readonly #checked = new Map<MemberState, number>();
  readonly #sessions = new Map<string, Work>();
  /** Nothing goes through between it and the controller. */
  isCutOff = false;
  /** Nothing goes through between it and the instances. */
  reachesNobody = false;
  #sequence = 0;
  #reportTimer: Timer | undefined;
  #reportDueAt = Number.POSITIVE_INFINITY;
  /** Of each link. */
  readonly #heardAt: number[] = [];
  #wentOnAt = 0;
  /** Of each link: the number of its newest stream. */
  readonly #streams: number[] = [];

  constructor(options: GatewayOptions) {
    this.id = options.id;
    this.#options = options;
    this.#clock = options.process.clock(options.clock);
    this.membership = new Membership(this.#clock.monotonic());
  }

  start(): void {
    for (const link of this.#options.links.keys()) void this.#connect(link);
    this.#scheduleReport(LIMITS.reportEveryMs);
    this.#sweep();
  }

  /** SIGKILL: its connections close, its clients see an error. */
  die(): void {
    this.#options.process.kill();
    for (const exchanges of this.#held.values()) {
      for (const exchange of exchanges) {
        exchange.finish?.();
        exchange.ask.done("rejected", null);
      }
    }
    this.#held.clear();
    // What it held of sessions the instances let go of at their own TTL, whether or not it was going to say so.
    for (const id of [...this.#sessions.keys()]) this.#options.clock.after(SESSION_TTL_MS, () => this.#endSession(id));
  }

  /** It stands still, as after SIGSTOP: what reaches it waits. */
  pause(): void {
    this.#options.log.add(`${this.id} stands still`);
    this.#options.process.pause();
  }

  resume(): void {
    if (!this.#options.process.isAlive) return;
    this.#options.log.add(`${this.id} goes on`);
    this.#wentOnAt = this.#clock.monotonic();
    this.#options.process.resume();
  }

  /** The wall clock of its machine is set. */
  skew(byMs: number): void {
    this.#options.process.skewMs += byMs;
  }

  // ---- clients

  ask(ask: Ask): void {
    this.#options.process.whenRunning(() => this.#take(ask));
  }

  #take(ask: Ask): void {
    const route = this.membership.routes.get(ask.route);
    const refuse = (waiting: Exchange, why: string): void => this.#end(waiting, "rejected", why);
    const exchange = new Exchange(ask, this.ledger.of(ask.route), this.#clock.monotonic(), route, refuse);
    this.ledger.accept(exchange);
    this.#route(exchange);
  }

  /** A session that the instance opened in its answer; the token names it, so any replica may hold it. */
  openSession(route: string, instance: string, ttlMs: number): string | undefined {
    const member = this.#memberOf(route, instance);
    if (member === undefined || member.gone || this.reachesNobody || this.#options.process.isPaused) return undefined;
    const id = this.#options.ids.next("session");
    const work: Work = { kind: "session", lost: () => this.endSession(id) };
    if (typeof this.#options.instances.take(member.host, work) !== "object") return undefined;
    this.#sessions.set(id, work);
    this.ledger.touchSession(id, member, ttlMs, this.#clock.monotonic());
    return id;
  }

  endSession(id: string): void {
    this.#options.process.whenRunning(() => this.#endSession(id));
  }

  #endSession(id: string): void {
    const work = this.#sessions.get(id);
    if (work !== undefined) for (const process of this.#options.instances.all()) process.work.delete(work);
    this.#sessions.delete(id);
    if (this.ledger.endSession(id) !== null) this.#scheduleReport(LIMITS.reportSoonMs);
  }

  #memberOf(route: string, instance: string): MemberState | undefined {
    return this.membership.routes.get(route)?.members.find((member) => member.instance === instance && member.state !== "sealed");
  }

  #route(exchange: Exchange): void {
    const route = this.membership.routes.get(exchange.ask.route);
    if (route === undefined) return this.#end(exchange, "rejected", "no_route");
    const member = chooseMember(route, this.#clock.monotonic(), exchange.tried);
    if (member !== undefined) return this.#send(exchange, member);
    if (exchange.tried.length > 0) exchange.tried = [];
    this.ledger.queue(exchange);
    if (this.#waiting.join(exchange, route.policy.queueLimit)) return;
    this.ledger.unqueue(exchange);
    this.#end(exchange, "rejected", "queue_full");
  }

  #send(exchange: Exchange, member: MemberState): void {
    const { instances, observe } = this.#options;
    this.ledger.hold(exchange, member);
    heldBy(this.#held, member).add(exchange);
    const lost = (): void => this.#options.process.whenRunning(() => this.#connectionLost(exchange, member));
    const work: Work = { kind: "request", lost };
    const taken = this.reachesNobody ? null : instances.take(member.host, work);
    if (taken === null || taken === "not_taken") {
      if (taken === null) this.#step({ type: "trouble", at: this.#clock.monotonic(), ...nameOf(member), reason: "connection_refused" });
      return this.#again(exchange, member, true);
    }
    observe({
      type: "dispatched",
      replica: this.id,
      instance: member.instance,
      incarnation: member.incarnation,
      bootId: member.bootId,
      passedCheckAt: this.#checked.get(member) ?? null,
      state: taken.bootId === member.bootId ? taken.state : "another_process",
      processAgeMs: this.#options.clock.monotonic() - Math.max(taken.startedAt, this.#wentOnAt),
    });
    exchange.finish = () => {
      taken.work.delete(work);
      exchange.timer?.cancel();
    };
    exchange.epoch = instances.epochOf(taken);
    this.#answerAfter(exchange, member, taken, exchange.ask.durationMs);
  }

  /** As the relays do with the head of an answer: one under an epoch that is no longer accepted is stale. */
  #isStale({ epoch, ask }: Exchange, { writer }: MemberState, process: InstanceProcess): boolean {
    if (epoch === null || writer === null) return false;
    const stale = isStaleEpoch(epoch, writer.minAccepted);
    const { ordinal } = writer;
    const type = stale ? "answer_refused" : "answer_landed";
    const { bootId } = process;
    const workload = this.#options.instances.workloadOf(process);
    this.#options.observe({ type, replica: this.id, route: ask.route, ordinal, workload, epoch, bootId });
    return stale;
  }

  /** A process that stands still answers once it goes on. */
  #answerAfter(exchange: Exchange, member: MemberState, process: InstanceProcess, delayMs: number): void {
    exchange.timer = this.#clock.after(delayMs, () => {
      if (!this.#options.instances.answers(process) || this.reachesNobody) return this.#answerAfter(exchange, member, process, STILL_MS);
      exchange.finish?.();
      this.#release(exchange, member);
      if (this.#isStale(exchange, member, process)) this.#end(exchange, "rejected", "stale_writer");
      else this.#end(exchange, "completed", "completed", member.instance);
    });
  }

  /** The process ended before the answer did. */
  #connectionLost(exchange: Exchange, member: MemberState): void {
    if (!this.#options.process.isAlive || exchange.obligationState === "ended" || exchange.heldBy !== member) return;
    this.#step({ type: "trouble", at: this.#clock.monotonic(), ...nameOf(member), reason: "connection_reset" });
    if (exchange.heldBy !== member) return;
    this.#again(exchange, member, false);
  }

  #again(exchange: Exchange, member: MemberState, isNotTaken: boolean): void {
    exchange.finish?.();
    this.#release(exchange, member);
    exchange.tried = [...exchange.tried, member];
    const { ask } = exchange;
    if (ask.streams && !isNotTaken) return this.#end(exchange, "cut", "connection_reset");
    if (!isNotTaken && !ask.isIdempotent) return this.#end(exchange, "rejected", "not_idempotent");
    exchange.tries += 1;
    if (exchange.tries > LIMITS.notTakenTries) return this.#end(exchange, "rejected", "tries_used");
    this.ledger.retried(exchange);
    this.#route(exchange);
  }

  #release(exchange: Exchange, member: MemberState): void {
    this.ledger.release(exchange);
    this.#held.get(member)?.delete(exchange);
    if (member.state !== "serving" && member.load.requests === 0 && member.load.sessions === 0) this.#scheduleReport(LIMITS.reportSoonMs);
  }

  #end(exchange: Exchange, outcome: RequestOutcome, code: string, instance: string | null = null): void {
    this.ledger.end(exchange, outcome, code);
    if (outcome !== "completed") this.#options.log.add(`${this.id} ${outcome} ${code}`);
    exchange.ask.done(outcome, instance);
    this.#serveWaiting(exchange.ask.route);
  }

  #serveWaiting(name: string): void {
    const route = this.membership.routes.get(name);
    while (route !== undefined) {
      const waiter = this.#waiting.first(name) as Exchange | undefined;
      const member = waiter && chooseMember(route, this.#clock.monotonic(), []);
      if (waiter === undefined || member === undefined) return;
      this.#waiting.leave(waiter);
      this.ledger.unqueue(waiter);
      this.#send(waiter, member);
    }
  }

  // ---- members

  #step(event: MembershipEvent): void {
    for (const effect of this.membership.step(event)) {
      switch (effect.type) {
        case "applied":
          this.#tellApplied(event, effect.route.route);
          this.#options.log.add(
            `${this.id} applied ${effect.generation} ${effect.route.members.map(({ instance, incarnation, state }) => `${instance}.${incarnation}:${state}`).join(" ")}`,
          );
          this.#scheduleReport(LIMITS.reportSoonMs);
          break;
        case "refused":
          this.#options.log.add(`${this.id} refused ${effect.why} ${effect.offered}`);
          this.#scheduleReport(LIMITS.reportSoonMs);
          break;
        case "member_added":
        case "check_now":
          this.#checkAfter(0, effect.member);
          break;
        case "member_gone":
          this.#memberGone(effect.member);
          break;
        case "health_changed":
          this.#options.log.add(`${this.id} ${effect.member.instance}.${effect.member.incarnation} ${effect.member.health}`);
          this.#scheduleReport(LIMITS.reportSoonMs);
          break;
        case "capacity":
          this.#serveWaiting(effect.route.route);
          break;
        // A modelled answer comes whole at its end, from a member that is still there: nothing of it can have begun.
        case "writer_raised":
        case "route_removed":
        case "member_draining":
        case "cut_off":
        case "connected":
          break;
        default:
          effect satisfies never;
      }
    }
  }

  #tellApplied(event: MembershipEvent, name: string): void {
    if (event.type !== "line" || event.line.type !== "membership") return;
    for (const { route, generation, members } of event.line.routes) {
      if (route !== name) continue;
      const writers = members.flatMap(({ writer }) => writer ?? []);
      this.#options.observe({ type: "membership_applied", replica: this.id, route, generation, writers });
    }
  }

  #memberGone(member: MemberState): void {
    const exchanges = [...(this.#held.get(member) ?? [])];
    const voided = this.ledger.voidSessions(member);
    if (exchanges.length + voided > 0)
      this.#options.log.add(`${this.id} ${member.instance}.${member.incarnation} is gone with ${exchanges.length} and ${voided}`);
    for (const exchange of exchanges) this.#again(exchange, member, false);
    this.#held.delete(member);
  }

  /** One timer for the pause and the way: the answer is as of its end. */
  #checkAfter(delayMs: number, member: MemberState): void {
    const onTheWayMs = integerBetween(this.#options.random, ...CHECK_MS);
    this.#clock.after(delayMs + onTheWayMs, () => {
      if (!member.gone) this.#check(member, this.#clock.monotonic() - onTheWayMs);
    });
  }

  #check(member: MemberState, startedAt: number): void {
    const { host, bootId } = member;
    const failure = this.reachesNobody ? "timeout" : this.#options.instances.check(host, bootId);
    if (failure === null && !this.#checked.has(member)) this.#checked.set(member, this.#clock.now());
    this.#step({ type: "checked", at: this.#clock.monotonic(), startedAt, ...nameOf(member), failure });
    const everyMs = this.membership.routes.get(member.route)?.policy.healthEveryMs ?? LIMITS.healthFastMs;
    const delayMs = member.health === "passing" ? everyMs : Math.min(LIMITS.healthFastMs, everyMs);
    this.#checkAfter(delayMs, member);
  }

  // ---- the link

  /** Its first stream breaks, and it opens another one. */
  reconnect(): void {
    this.#options.process.whenRunning(() => void this.#connect(0));
  }

  async #connect(link: number): Promise<void> {
    const stream = this.#nextStream(link);
    this.#heardAt[link] = this.#clock.monotonic();
    const again = (): void => {
      if (stream !== this.#streams[link]) return;
      this.#nextStream(link);
      const pauseMs = integerBetween(this.#options.random, LIMITS.reconnectMinMs, LIMITS.reconnectMaxMs);
      this.#clock.after(pauseMs, () => void this.#connect(link));
    };
    const inbox: ControllerLine[] = [];
    const line = (value: ControllerLine): boolean => {
      inbox.push(overTheWire(value));
      this.#clock.after(NETWORK_MS, () => this.#receive(link, stream, inbox));
      return stream === this.#streams[link];
    };
    try {
      if (this.isCutOff) throw new Error("cut off");
      await this.#options.links[link]?.open(this.id, line, again);
      this.#watchSilence(link, stream, again);
    } catch {
      again();
    }
  }

  /** What came over the one before has no say any more. */
  #nextStream(link: number): number {
    const stream = (this.#streams[link] ?? 0) + 1;
    this.#streams[link] = stream;
    this.#step({ type: "closed", source: String(link) });
    return stream;
  }

  /** What was sent while nothing went through arrives when something does again, in its order, unless the stream was given up. */
  #receive(link: number, stream: number, inbox: ControllerLine[]): void {
    if (stream !== this.#streams[link] || inbox.length === 0) return;
    if (this.isCutOff) {
      this.#clock.after(RESEND_MS, () => this.#receive(link, stream, inbox));
      return;
    }
    this.#heardAt[link] = this.#clock.monotonic();
    for (const line of inbox.splice(0)) this.#step({ type: "line", at: this.#clock.monotonic(), line, source: String(link) });
  }

  #watchSilence(link: number, stream: number, again: () => void): void {
    if (stream !== this.#streams[link]) return;
    const heardMs = this.#clock.monotonic() - (this.#heardAt[link] ?? 0);
    if (heardMs > LIMITS.connectControllerMs) return again();
    this.#clock.after(Math.max(500, LIMITS.connectControllerMs - heardMs), () => this.#watchSilence(link, stream, again));
  }

  #scheduleReport(delayMs: number): void {
    const dueAt = this.#clock.monotonic() + delayMs;
    if (dueAt >= this.#reportDueAt) return;
    this.#reportTimer?.cancel();
    this.#reportDueAt = dueAt;
    this.#reportTimer = this.#clock.after(delayMs, () => {
      this.#reportDueAt = Number.POSITIVE_INFINITY;
      this.#scheduleReport(LIMITS.reportEveryMs);
      this.#report();
    });
  }

  #report(): void {
    this.#sequence += 1;
    const report = reportOf(this.id, this.#sequence, this.membership, this.ledger);
    for (const { route, counts } of this.ledger.routes())
      this.#options.observe({ type: "counted", replica: this.id, route, counts: { ...counts } });
    if (this.isCutOff) return;
    for (const link of this.#options.links) this.#clock.after(NETWORK_MS, () => void link.report(report).catch(() => undefined)); // the next one holds all again
  }

  #sweep(): void {
    this.#clock.after(LIMITS.sessionSweepMs, () => {
      const now = this.#clock.monotonic();
      this.#step({ type: "tick", at: now });
      this.#waiting.expire(now);
      for (const route of this.membership.routes.keys()) this.#serveWaiting(route);
      for (const member of this.ledger.expireSessions(now)) {
        if (member.state !== "serving") this.#scheduleReport(LIMITS.reportSoonMs);
      }
      this.#sweep();
    });
  }
}

function heldBy(held: Map<MemberState, Set<Exchange>>, member: MemberState): Set<Exchange> {
  const known = held.get(member) ?? new Set<Exchange>();
  held.set(member, known);
  return known;
}

function nameOf({ route, instance, incarnation }: MemberState): { route: string; instance: string; incarnation: number } {
  return { route, instance, incarnation };
}
