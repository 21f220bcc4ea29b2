/**
 * A storm: a modelled fleet loses its machines, and a policy moves what runs on them. All decisions are made by the production schedule (or by the baseline
 * that stands in its place) from what Relevo would see; sites, machines, state and requests are modelled. The same fleet, seed and policy give the same run.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { EvacuationPolicy } from "../../plan/evacuation/policy.ts";
import type { EvacuationInput, Evacuee, Grant } from "../../plan/evacuation/types.ts";
import { EventLog } from "../event-log.ts";
import { seededRandom } from "../seeded.ts";
import { StormChecks } from "./checks.ts";
import { uniform } from "./draws.ts";
import type { Fleet } from "./fleet.ts";
import { Move, TIMES, writesIn } from "./move.ts";
import { drawDooms, membersOf } from "./notices.ts";
import { buildSites, type Place, type Sites, supplyOf } from "./sites.ts";
import { Traffic } from "./traffic.ts";
import { Workload } from "./workload.ts";

/** Whether what the schedule promises is held against it: a baseline promises nothing. */
export interface StormOptions {
  readonly seed: number;
  readonly policy: EvacuationPolicy;
  readonly isJudged: boolean;
}

export class Storm {
  readonly fleet: Fleet;
  readonly clock = new VirtualClock();
  readonly log = new EventLog(this.clock);
  readonly checks = new StormChecks(this.clock);
  readonly sites: Sites;
  readonly traffic: Traffic;
  readonly workloads: readonly Workload[];
  /** Results that were rejected: of an epoch below the tombstone. */
  staleResults = 0;
  readonly #startedAt: Instant;
  readonly #options: StormOptions;
  readonly #random: Random;
  readonly #boots: number;
  #isPassDue = false;
  #passes = 0;

  constructor(fleet: Fleet, options: StormOptions) {
    this.fleet = fleet;
    this.#options = options;
    this.#startedAt = this.clock.now();
    this.#random = seededRandom(options.seed, "storm");
    this.#boots = Math.max(...fleet.classes.map(({ boot }) => boot));
    this.sites = buildSites(fleet, this.clock);
    this.traffic = new Traffic(this.clock, fleet.gatewayQueue, fleet.measureFor);
    const members = membersOf(fleet, seededRandom(options.seed, "members"));
    const dooms = drawDooms(fleet, members, seededRandom(options.seed, "notices"));
    this.workloads = dooms.map((doom) => {
      const { id, of } = doom.member;
      const latencyMs = this.sites.byName.get(of.runsOn.site)?.spec.latency ?? 0;
      const route = this.traffic.open(id, of, latencyMs, seededRandom(options.seed, `requests of ${id}`));
      return new Workload(doom, route, seededRandom(options.seed, `move of ${id}`), this.#startedAt);
    });
  }

  /** Ends when the time of measurement is over. */
  async run(): Promise<void> {
    for (const workload of this.workloads) this.#plant(workload);
    this.#watchCounts();
    await this.clock.advance(this.fleet.measureFor);
    this.traffic.finish();
    for (const { route } of this.workloads) this.traffic.settle(route);
    this.checks.counts(this.traffic, this.traffic.waiting());
    for (const { id, servingAt, isHomeAlive } of this.workloads)
      if (servingAt === null && !isHomeAlive) this.log.add(`${id} has no place at the end`);
  }

  get passes(): number {
    return this.#passes;
  }

  // ---- what happens to the machines

  #plant(workload: Workload): void {
    const { doom } = workload;
    for (const at of doom.noticesAt) this.clock.after(at, () => this.#notice(workload, this.#startedAt + doom.lostAt));
    this.clock.after(doom.lostAt, () => this.#lose(workload));
  }

  #notice(workload: Workload, deadline: Instant): void {
    if (!workload.isHomeAlive || !workload.record("deadline", this.clock.now(), deadline)) return;
    this.log.add(`${workload.id} is noticed`);
    this.#want(workload);
  }

  #lose(workload: Workload): void {
    const now = this.clock.now();
    const { lingersMs } = workload.doom;
    workload.loseHome(now);
    this.log.add(`the home of ${workload.id} goes`);
    if (workload.servingAt === null) {
      this.traffic.lose(workload.route);
      workload.lost = writesIn(workload, now - workload.committedAt(now));
    }
    if (lingersMs > 0) this.#linger(workload, workload.homeEpoch, now + lingersMs);
    this.clock.after(uniform(this.#random, ...TIMES.noticeLoss), () => {
      if (workload.servingAt !== null) return;
      workload.fence();
      workload.record("forced", this.clock.now(), null);
      this.#want(workload);
    });
  }

  /** Cut off, and writing on under the epoch that it had. */
  #linger(workload: Workload, epoch: Workload["epoch"], until: Instant): void {
    if (this.clock.now() > until) return;
    if (workload.lands(epoch)) this.checks.accepted(workload.id, epoch, "home", workload.minAccepted);
    else this.staleResults += 1;
    this.clock.after(500, () => this.#linger(workload, epoch, until));
  }

  // ---- the schedule

  #want(workload: Workload): void {
    if (workload.state === "home") workload.state = "waiting";
    this.#passSoon(this.fleet.planEvery);
  }

  #passSoon(inMs: number): void {
    if (this.#isPassDue) return;
    this.#isPassDue = true;
    this.clock.after(inMs, () => {
      this.#isPassDue = false;
      this.#pass();
    });
  }

  #pass(): void {
    const input = this.input();
    if (input.evacuees.length === 0) return;
    this.#passes += 1;
    const { grants, nextLookAt } = this.#options.policy(input);
    for (const { absorption } of input.supplies) this.checks.looked(absorption, input.now);
    const byId = new Map(this.workloads.filter(({ state }) => state === "waiting").map((each) => [each.id, each]));
    if (this.#options.isJudged) this.checks.plan(input, grants);
    for (const grant of grants) this.#apply(grant, byId.get(grant.evacuee));
    this.checks.places(this.sites.places);
    if (nextLookAt !== null) this.#passSoon(Math.max(this.fleet.planEvery, nextLookAt - this.clock.now()));
  }

  /** What Relevo sees now. */
  input(): EvacuationInput {
    const now = this.clock.now();
    const evacuees = this.workloads.filter(({ state }) => state === "waiting").map((workload) => evacueeOf(workload, now));
    const supplies = this.sites.places.map((place) => supplyOf(place, now, this.#boots, 0));
    return { now, evacuees, supplies, reservations: [] };
  }

  #apply(grant: Grant, workload: Workload | undefined): void {
    if (workload === undefined) return;
    const now = this.clock.now();
    if (grant.kind === "unsavable") {
      if (workload.unsavable !== grant.why) this.log.add(`${workload.id} cannot be saved in time: ${grant.why}`);
      workload.unsavable = grant.why;
      if (grant.late !== null && grant.reservedUntil !== null) this.#start(workload, grant.late.supply, grant.late.preempts);
      return;
    }
    workload.unsavable = null;
    const place = this.#placeOf(grant.supply);
    if (grant.kind === "wait") {
      if (place !== undefined && place.site.bucket.view(now).tokens < 1) place.site.bucket.waited(now);
      return;
    }
    this.#start(workload, grant.supply, grant.preempts);
  }

  #placeOf(id: string): Place | undefined {
    return this.sites.places.find((place) => place.id === id);
  }

  #start(workload: Workload, supply: string, preempts: Evacuee["priority"] | null): void {
    const place = this.#placeOf(supply);
    if (place === undefined) return;
    const now = this.clock.now();
    const { bucket } = place.site;
    if (this.#options.isJudged) this.checks.started(bucket.view(now), now);
    bucket.take(now);
    workload.state = "moving";
    this.log.add(`${workload.id} goes to ${place.id}`);
    new Move(workload, place, preempts, {
      clock: this.clock,
      traffic: this.traffic,
      checks: this.checks,
      served: () => {
        this.log.add(`${workload.id} serves at ${place.id}`);
        this.#passSoon(this.fleet.planEvery);
      },
      failed: (_workload, _place, why) => {
        this.log.add(`${workload.id} fails at ${place.id}: ${why}`);
        workload.state = "waiting";
        this.#passSoon(this.fleet.planEvery);
      },
    });
  }

  #watchCounts(): void {
    this.clock.after(1_000, () => {
      this.checks.counts(this.traffic, this.traffic.waiting());
      this.#watchCounts();
    });
  }
}

function evacueeOf(workload: Workload, now: Instant): Evacuee {
  const { id, of, noticedAt } = workload;
  return {
    id,
    pool: of.name,
    priority: of.priority,
    noticedAt: noticedAt ?? now,
    deadline: workload.isHomeAlive ? (workload.evidence.get("deadline")?.deadline ?? null) : null,
    stateMoveMs: Math.ceil((workload.deltaBytes(now) / of.state.bandwidth) * 1_000),
    warmUpMs: of.warmUp,
    latencyLimitMs: of.latencyLimit,
  };
}
