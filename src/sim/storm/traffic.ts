/**
 * The requests of a fleet, as the gateway keeps its promise to them. A workload has one writer at a time, so its requests go to that one or wait: bounded in
 * time and number, the least urgent displaced first, then refused with Retry-After. What is undisturbed is counted without being followed; every request that
 * is in flight, waits, or begins within a second of a switch is followed one by one.
 *
 * accepted = completed + queued + rejected + cut, at every look (I14; what is in flight is counted when it ends).
 */
import { weightOf } from "../../gateway/balancer.ts";
import type { Clock, Timer } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { PRIORITIES } from "../../model/membership.ts";
import { exponential, poisson } from "./draws.ts";
import type { FleetClass } from "./fleet.ts";
import { Histogram } from "./histogram.ts";

export interface Counts {
  accepted: number;
  completed: number;
  queued: number;
  /** Refused with Retry-After, or answered with an explicit error. */
  rejected: number;
  /** Their answer broke off. */
  cut: number;
}

/** How long after a switch a request still counts as touched by it. */
const TOUCHED_MS = 1_000;
/** How often waiting requests are looked through. */
const SWEEP_MS = 50;

export interface Route {
  readonly id: string;
  readonly of: FleetClass;
  readonly random: Random;
  /** Up to when its requests are counted. */
  countedTo: number;
  /** Of its place, round trip. */
  latencyMs: number;
  /** Arrival times, oldest first; null while a place serves. */
  waiting: number[] | null;
}

export class Traffic {
  readonly counts: Counts = { accepted: 0, completed: 0, queued: 0, rejected: 0, cut: 0 };
  /** Added latency of the touched requests that were completed, ms. */
  readonly added = new Histogram();
  over50Ms = 0;
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #until: number;
  /** Routes without a place, by rank of their class. */
  readonly #down: readonly Set<Route>[] = PRIORITIES.map(() => new Set<Route>());
  /** By rank, whose request came last: the top is displaced first. What has left meanwhile may still stand below. */
  readonly #joined: readonly Route[][] = PRIORITIES.map(() => []);
  #sweep: Timer | undefined;

  /** Counts up to `until`, monotonic ms. `limit`: of all that wait together. */
  constructor(clock: Clock, limit: number, until: number) {
    this.#clock = clock;
    this.#limit = limit;
    this.#until = until;
  }

  open(id: string, of: FleetClass, latencyMs: number, random: Random): Route {
    return { id, of, random, countedTo: this.#clock.monotonic(), latencyMs, waiting: null };
  }

  /** No new request is sent to its place any more. Returns after how many ms the last of those in flight is answered. */
  pause(route: Route): number {
    const { requests } = route.of;
    this.#countSteady(route, this.#clock.monotonic());
    let longest = 0;
    for (let left = poisson(route.random, inFlightOf(route)); left > 0; left--) {
      const rest = exponential(route.random, requests.inFlight);
      longest = Math.max(longest, rest);
      this.#touched(0); // counted already; it is answered where it is
    }
    this.#takeDown(route);
    return longest;
  }

  /** Its place is gone, and what was in flight there with it. */
  lose(route: Route): void {
    const now = this.#clock.monotonic();
    if (route.waiting !== null) return; // paused: its requests wait already
    this.#countSteady(route, now);
    const waiting = this.#takeDown(route);
    for (let left = poisson(route.random, inFlightOf(route)); left > 0 && now < this.#until && this.counts.completed > 0; left--) {
      this.counts.completed -= 1; // as which it was counted
      this.counts.queued += 1;
      if (route.random.next() < route.of.requests.idempotent) waiting.push(now);
      else this.#end("cut");
    }
  }

  /** A place serves it again. `slowness`: of the place's site, 1 when it is well. */
  resume(route: Route, latencyMs: number, slowness: number): void {
    const now = this.#clock.monotonic();
    this.#arrive(route, now);
    this.#down[rankOf(route)]?.delete(route);
    const waiting = route.waiting ?? [];
    route.waiting = null;
    const addedByPlace = latencyMs - route.latencyMs;
    route.latencyMs = latencyMs;
    this.#serve(route, waiting, { now, addedByPlace, slowness });
  }

  /** Of those that wait, counted one by one. */
  waiting(): number {
    let count = 0;
    for (const routes of this.#down) for (const { waiting } of routes) count += waiting?.length ?? 0;
    return count;
  }

  /** Counts what is still open. */
  finish(): void {
    this.#sweep?.cancel();
    for (const routes of this.#down) for (const route of routes) this.#arrive(route, Math.min(this.#clock.monotonic(), this.#until));
  }

  /** Counts an undisturbed route up to the end. */
  settle(route: Route): void {
    if (route.waiting === null) this.#countSteady(route, this.#until);
  }

  #takeDown(route: Route): number[] {
    const waiting: number[] = [];
    route.waiting = waiting;
    this.#down[rankOf(route)]?.add(route);
    this.#sweep ??= this.#clock.after(SWEEP_MS, () => this.#onSweep());
    return waiting;
  }

  #onSweep(): void {
    this.#sweep = undefined;
    const now = Math.min(this.#clock.monotonic(), this.#until);
    let any = false;
    for (const routes of this.#down) {
      for (const route of routes) {
        any = true;
        this.#arrive(route, now);
      }
    }
    for (const joined of this.#joined) if (joined.length > 4 * (this.counts.queued + 1_000)) joined.splice(0, joined.length >> 1);
    if (any && now < this.#until) this.#sweep = this.#clock.after(SWEEP_MS, () => this.#onSweep());
  }

  /** What has come to a route without a place until `now`, and what of it has waited too long. */
  #arrive(route: Route, now: number): void {
    const { waiting, random } = route;
    const { perSecond, queue } = route.of.requests;
    if (waiting === null) return;
    const gap = 1_000 / perSecond;
    let at = route.countedTo;
    if (perSecond > 0) {
      for (at += exponential(random, gap); at <= Math.min(now, this.#until); at += exponential(random, gap)) {
        this.counts.accepted += 1;
        this.counts.queued += 1;
        if (waiting.length >= queue.limit || this.counts.queued > this.#limit) this.#expire(waiting, at - queue.wait);
        if (waiting.length >= queue.limit || (this.counts.queued > this.#limit && !this.#displace(route))) this.#end("rejected");
        else {
          waiting.push(at);
          this.#joined[rankOf(route)]?.push(route);
        }
      }
    }
    route.countedTo = now; // memoryless: the next gap may begin anew
    this.#expire(waiting, now - queue.wait);
  }

  #expire(waiting: number[], before: number): void {
    let expired = 0;
    while (expired < waiting.length && (waiting[expired] ?? 0) < before) expired += 1;
    if (expired === 0) return;
    waiting.splice(0, expired);
    for (; expired > 0; expired--) this.#end("rejected");
  }

  /** The last of the least urgent makes room, when it is less urgent. */
  #displace(route: Route): boolean {
    for (let rank = PRIORITIES.length - 1; rank > rankOf(route); rank--) {
      const joined = this.#joined[rank] ?? [];
      for (let last = joined.pop(); last !== undefined; last = joined.pop()) {
        if (last.waiting === null || last.waiting.length === 0) continue;
        last.waiting.pop();
        this.#end("rejected");
        return true;
      }
    }
    return false;
  }

  /** Those that waited first, then those that come within a second, through the room that slow start leaves. */
  #serve(
    route: Route,
    waiting: readonly number[],
    place: { readonly now: number; readonly addedByPlace: number; readonly slowness: number },
  ): void {
    const { random } = route;
    const { perSecond, inFlight, concurrency, slowStart, queue } = route.of.requests;
    const member = { slowStartFrom: place.now };
    const busy: number[] = [];
    const until = place.now + TOUCHED_MS;
    const gap = perSecond > 0 ? 1_000 / perSecond : Number.POSITIVE_INFINITY;
    let arrival = place.now + exponential(random, gap);
    let turn = place.now;
    for (let index = 0; ; index++) {
      const waited = waiting[index];
      const at = waited ?? arrival;
      if (waited === undefined) {
        if (arrival > until || arrival > this.#until) break;
        this.counts.accepted += 1;
        this.counts.queued += 1;
        arrival += exponential(random, gap);
      }
      turn = Math.max(turn, at);
      const room = Math.max(1, Math.floor(concurrency * weightOf(member, { slowStartMs: slowStart }, turn)));
      while (busy.length > 0 && (busy[0] ?? 0) <= turn) busy.shift();
      while (busy.length >= room) turn = Math.max(turn, busy.shift() ?? turn);
      if (turn - at > queue.wait) {
        this.#end("rejected");
        continue;
      }
      const service = exponential(random, inFlight);
      insert(busy, turn + service * place.slowness);
      this.#end("completed");
      this.#touched(turn - at + place.addedByPlace + service * (place.slowness - 1));
    }
    route.countedTo = Math.min(until, this.#until);
  }

  #touched(addedMs: number): void {
    this.added.add(Math.max(0, addedMs));
    if (addedMs > 50) this.over50Ms += 1;
  }

  #countSteady(route: Route, now: number): void {
    const to = Math.min(now, this.#until);
    const count = poisson(route.random, ((to - route.countedTo) / 1_000) * route.of.requests.perSecond);
    route.countedTo = Math.max(route.countedTo, to);
    this.counts.accepted += count;
    this.counts.completed += count;
  }

  #end(as: "completed" | "rejected" | "cut"): void {
    this.counts.queued -= 1;
    this.counts[as] += 1;
  }
}

function inFlightOf({ of: { requests } }: Route): number {
  return (requests.perSecond / 1_000) * requests.inFlight;
}

function rankOf({ of }: Route): number {
  return PRIORITIES.indexOf(of.priority);
}

/** Keeps the order; nearly always at the end. */
function insert(sorted: number[], value: number): void {
  let at = sorted.length;
  while (at > 0 && (sorted[at - 1] ?? 0) > value) at -= 1;
  sorted.splice(at, 0, value);
}
