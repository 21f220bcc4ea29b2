/**
 * The move of one workload to a place, as Relevo makes it: the place gets ready, the delta of the state moves, it warms up, the rest is caught up, its check
 * passes, and only then requests stop going to the old one: for as long as its last answers, the last of the delta and the passing of the lease take. When the
 * old one is lost on the way, what is committed is what there is.
 *
 * Times that are not in the scenario, with where they come from: `TIMES`.
 */
import type { Clock } from "../../kernel/clock.ts";
import type { Priority } from "../../model/membership.ts";
import { chance } from "../seeded.ts";
import { poisson, uniform } from "./draws.ts";
import type { Place } from "./sites.ts";
import type { StormChecks } from "./checks.ts";
import type { Traffic } from "./traffic.ts";
import type { Workload } from "./workload.ts";

/** ms */
export const TIMES = {
  /** From a decision to the first effect at the place: the record of a step and its call. */
  begin: [20, 150],
  /** A commit of the store and what it tells the gateway's replicas, until all have applied it. */
  commitAndPush: [3, 12],
  /** A replica's report that nothing is held any more (the gateway's `reportSoonMs`, and the way). */
  report: [20, 25],
  /** A call to an instance: drain, admit. */
  call: [1, 8],
  /** A health check, and how long until a failed one is tried again. */
  check: [1, 6],
  checkAgain: 1_000,
  /** From the loss of a node to the record that it is lost. */
  noticeLoss: [500, 2_000],
  /** An answer that there is no capacity. */
  refusal: [1_000, 5_000],
} as const;

/** A rest that moves within this time is moved while requests wait. */
const SMALL_REST_MS = 20;
/** Where the rest does not become smaller, it is moved after so many rounds all the same. */
const MOST_ROUNDS = 6;
const CHECK_TRIES = 3;
/** Of checks that fail per unit of load above what the site lands. */
const OVERLOAD_FAILS = 0.1;
const MOST_OVERLOAD_FAILS = 0.5;

export interface MoveOptions {
  readonly clock: Clock;
  readonly traffic: Traffic;
  readonly checks: StormChecks;
  /** Whether the node that was asked for came. */
  readonly launched: (isThere: boolean) => void;
  /** The place did not work out: another one is looked for. */
  readonly failed: (why: string) => void;
  readonly served: () => void;
}

export class Move {
  readonly #options: MoveOptions;
  readonly #workload: Workload;
  readonly #place: Place;
  readonly #preempts: Priority | null;
  /** When what the site absorbs began: after the node's own start. */
  #admissionAt = 0;
  #rounds = 0;
  #passedCheckAt: number | null = null;

  constructor(workload: Workload, place: Place, preempts: Priority | null, options: MoveOptions) {
    this.#options = options;
    this.#workload = workload;
    this.#place = place;
    this.#preempts = preempts;
    place.reserved += 1;
    this.#after(TIMES.begin, () => this.#begin());
  }

  #begin(): void {
    const { spec } = this.#place;
    this.#place.reserved -= 1;
    this.#place.taken += 1;
    if (spec.kind === "standby") return this.#preempts === null ? this.#ready() : this.#boot();
    if (chance(this.#workload.random, spec.launchFails)) {
      this.#after(TIMES.refusal, () => {
        this.#place.taken -= 1;
        this.#options.launched(false);
        this.#options.failed("launch_failed");
      });
      return;
    }
    this.#after(spec.nodeStart, () => {
      this.#options.launched(true);
      this.#boot();
    });
  }

  #boot(): void {
    this.#options.clock.after(this.#workload.of.boot, () => this.#ready());
  }

  #ready(): void {
    this.#admissionAt = this.#options.clock.now();
    this.#place.site.admitting(1);
    this.#copy(() => this.#warmUp());
  }

  /** One round of what was written since the last one. */
  #copy(then: () => void): void {
    const { clock } = this.#options;
    const workload = this.#workload;
    const from = clock.now();
    const bytes = workload.deltaBytes(from);
    if (bytes === 0) return then();
    const { bandwidth } = workload.of.state;
    this.#place.site.ingress.add((bytes / bandwidth) * 1_000, bandwidth, () => {
      if (workload.isHomeAlive) workload.commit(from);
      then();
    });
  }

  #warmUp(): void {
    this.#place.site.land(this.#workload.of.warmUp, () => this.#catchUp());
  }

  #catchUp(): void {
    this.#rounds += 1;
    if (this.#restMs() <= SMALL_REST_MS || this.#rounds > MOST_ROUNDS) return this.#check(CHECK_TRIES);
    this.#copy(() => this.#catchUp());
  }

  #restMs(): number {
    const { of } = this.#workload;
    return (this.#workload.deltaBytes(this.#options.clock.now()) / of.state.bandwidth) * 1_000;
  }

  #check(triesLeft: number): void {
    const { random } = this.#workload;
    const { spec, site } = this.#place;
    this.#after(TIMES.check, () => {
      const overload = Math.min(MOST_OVERLOAD_FAILS, Math.max(0, site.landing.load - 1) * OVERLOAD_FAILS);
      const lies = chance(random, spec.checkFails);
      if (!lies && !chance(random, overload)) {
        this.#passedCheckAt = this.#options.clock.now();
        return this.#workload.isHomeAlive ? this.#switch() : this.#takeOver();
      }
      if (triesLeft > 1) {
        this.#options.clock.after(TIMES.checkAgain, () => this.#check(triesLeft - 1));
        return;
      }
      site.admitting(-1);
      if (lies) return this.#options.failed("check_failed"); // the place stays spoilt
      site.bucket.failed(this.#options.clock.now());
      this.#rounds = 0;
      this.#boot(); // it is started again where it is
    });
  }

  /** The old one lives: requests wait while the last of it moves. */
  #switch(): void {
    const { clock, traffic } = this.#options;
    const workload = this.#workload;
    this.#after(TIMES.commitAndPush, () => {
      if (!workload.isHomeAlive) return this.#takeOver();
      const drainMs = traffic.pause(workload.route);
      const wayMs = Math.abs(this.#place.site.spec.latency - workload.route.latencyMs) + 1;
      const sealMs = this.#draw(TIMES.report) + this.#draw(TIMES.commitAndPush);
      const openMs = wayMs + this.#draw(TIMES.call) + this.#draw(TIMES.commitAndPush);
      clock.after(drainMs + sealMs, () => this.#copy(() => clock.after(openMs, () => this.#serve())));
    });
  }

  /** The old one is gone: nothing is admitted before it is fenced. */
  #takeOver(): void {
    const { clock } = this.#options;
    if (this.#workload.holder !== null) {
      clock.after(TIMES.noticeLoss[0], () => this.#takeOver());
      return;
    }
    this.#after(TIMES.call, () => this.#after(TIMES.commitAndPush, () => this.#serve()));
  }

  #serve(): void {
    const { clock, traffic, checks, served } = this.#options;
    const workload = this.#workload;
    const { site } = this.#place;
    const epoch = workload.passTo(this.#place.id);
    checks.traffic(workload.id, this.#passedCheckAt);
    if (workload.lands(epoch)) checks.accepted(workload.id, epoch, this.#place.id, workload.minAccepted);
    traffic.resume(workload.route, site.spec.latency, site.slowness);
    site.admitting(-1);
    site.bucket.served(clock.now(), clock.now() - this.#admissionAt);
    workload.servingAt = clock.now();
    workload.place = this.#place;
    workload.state = "moved";
    workload.isBreach = site.spec.latency > workload.of.latencyLimit;
    served();
  }

  #draw([low, high]: readonly [number, number]): number {
    return uniform(this.#workload.random, low, high);
  }

  #after(range: readonly [number, number], then: () => void): void {
    this.#options.clock.after(this.#draw(range), then);
  }
}

/** Acknowledged writes of so long a time. */
export function writesIn(workload: Workload, ms: number): number {
  const { perSecond, writes } = workload.of.requests;
  return poisson(workload.random, (ms / 1_000) * perSecond * writes);
}
