/** Moves by a schedule: the production one, or another policy in its place. What it is told is what Relevo would see; what it grants is begun, nothing else. */
import type { Instant } from "../../kernel/clock.ts";
import { beginningsOf, isPaced } from "../../plan/evacuation/beginnings.ts";
import { Exposure } from "../../plan/evacuation/exposure.ts";
import { heatOf } from "../../plan/evacuation/heat.ts";
import type { EvacuationPolicy } from "../../plan/evacuation/policy.ts";
import type { EvacuationInput, Evacuee, Exposed, Grant, Reservation } from "../../plan/evacuation/types.ts";
import { Move } from "./move.ts";
import { type Place, supplyOf } from "./sites.ts";
import type { Approach, Storm } from "./storm.ts";
import type { Workload } from "./workload.ts";

export interface ScheduledOptions {
  readonly policy: EvacuationPolicy;
  /** Whether the rules of the schedule are checked: a baseline follows others. */
  readonly isJudged: boolean;
}

/** How long the machines of the fleet have run before the storm. */
const AGE_MS = 24 * 3_600_000;

interface History {
  readonly losses: Instant[];
  readonly failedLaunches: Instant[];
  readonly launches: Instant[];
  readonly running: Instant[];
}

export class Scheduled implements Approach {
  readonly #storm: Storm;
  readonly #options: ScheduledOptions;
  readonly #boots: number;
  readonly #waiting = new Map<string, Workload>();
  readonly #places: ReadonlyMap<string, Place>;
  /** By `site/zone/type`. */
  readonly #history = new Map<string, History>();
  /** By class. */
  readonly #exposures = new Map<string, Exposure>();
  #dueAt = Number.POSITIVE_INFINITY;
  #planned = 0;
  passes = 0;

  constructor(storm: Storm, options: ScheduledOptions) {
    this.#storm = storm;
    this.#options = options;
    this.#boots = Math.max(...storm.fleet.classes.map(({ boot }) => boot));
    this.#places = new Map(storm.sites.places.map((place) => [place.id, place]));
    for (const workload of storm.workloads) this.#historyOf(homeSpot(workload)).running.push(storm.startedAt - AGE_MS);
  }

  noticed(workload: Workload): void {
    const { losses, running } = this.#historyOf(homeSpot(workload));
    losses.push(this.#storm.clock.now());
    running.pop();
    const { name } = workload.of;
    const exposure = this.#exposures.get(name) ?? new Exposure();
    this.#exposures.set(name, exposure);
    exposure.note(evacueeOf(workload, this.#storm.clock.now()));
    this.#storm.checks.noticed(name, this.#storm.clock.now());
    this.#want(workload);
  }

  lost(workload: Workload): void {
    if (workload.state === "home") this.#want(workload);
  }

  /** What Relevo sees now. */
  input(): EvacuationInput {
    const now = this.#storm.clock.now();
    return {
      now,
      evacuees: [...this.#waiting.values()].map((workload) => evacueeOf(workload, now)),
      supplies: this.#storm.sites.places.map((place) => supplyOf(place, now, this.#boots, this.#heatAt(place, now))),
      reservations: [],
      exposed: this.#exposed(now),
    };
  }

  /** Of the classes that were hit: who is still at home and was not told of. */
  #exposed(now: Instant): readonly Exposed[] {
    const atHome = this.#atHome();
    return [...this.#exposures].flatMap(([name, exposure]) => exposure.exposed(atHome.get(name) ?? 0, now) ?? []);
  }

  #atHome(): ReadonlyMap<string, number> {
    const atHome = new Map<string, number>();
    for (const { state, isHomeAlive, of } of this.#storm.workloads)
      if (state === "home" && isHomeAlive) atHome.set(of.name, (atHome.get(of.name) ?? 0) + 1);
    return atHome;
  }

  #want(workload: Workload): void {
    workload.state = "waiting";
    this.#waiting.set(workload.id, workload);
    this.#passSoon();
  }

  /** What changes meanwhile is taken together. */
  #passSoon(at = 0): void {
    const { clock, fleet } = this.#storm;
    const due = Math.max(at, this.#planned + fleet.planEvery, clock.now());
    if (due >= this.#dueAt) return;
    this.#dueAt = due;
    clock.after(due - clock.now(), () => {
      if (due !== this.#dueAt) return;
      this.#dueAt = Number.POSITIVE_INFINITY;
      this.#pass();
    });
  }

  #pass(): void {
    const { checks, clock, sites } = this.#storm;
    this.#planned = clock.now();
    const input = this.input();
    for (const { absorption } of input.supplies) checks.looked(absorption, input.now);
    if (input.evacuees.length === 0) return;
    this.passes += 1;
    const plan = this.#options.policy(input);
    if (this.#options.isJudged) {
      checks.plan(input, plan.grants);
      checks.expected(input, this.#atHome());
    }
    for (const grant of plan.grants) this.#hear(grant);
    if (isPaced(plan)) this.#waited(plan.grants);
    for (const beginning of beginningsOf(plan, () => false)) this.#start(beginning);
    checks.places(sites.places);
    if (plan.nextLookAt !== null) this.#passSoon(plan.nextLookAt);
  }

  #hear(grant: Grant): void {
    const workload = this.#waiting.get(grant.evacuee);
    if (workload === undefined) return;
    const why = grant.kind === "unsavable" ? grant.why : null;
    if (why !== null && workload.unsavable !== why && grant.kind === "unsavable")
      this.#storm.log.add(`${workload.id} cannot be saved in time: ${why}, ${grant.missing}`);
    // Once its home is gone there is no deadline any more: that takes nothing back of what was said before.
    if (workload.isHomeAlive || why !== null) workload.unsavable = why;
  }

  /** Each site at which somebody waits hears it. */
  #waited(grants: readonly Grant[]): void {
    const now = this.#storm.clock.now();
    const sites = new Set(grants.flatMap((grant) => (grant.kind === "wait" ? (this.#places.get(grant.supply)?.site ?? []) : [])));
    for (const { bucket } of sites) bucket.waited(now);
  }

  #start({ evacuee, supply, preempts }: Required<Reservation>): void {
    const { clock, checks, log, traffic } = this.#storm;
    const workload = this.#waiting.get(evacuee);
    const place = this.#places.get(supply);
    if (workload === undefined || place === undefined) return;
    const now = clock.now();
    if (this.#options.isJudged) checks.started(place.site.bucket.view(now), now);
    place.site.bucket.take(now);
    workload.state = "moving";
    this.#waiting.delete(workload.id);
    log.add(`${workload.id} goes to ${place.id}`);
    const history = this.#historyOf(spotOf(place));
    new Move(workload, place, preempts, {
      clock,
      traffic,
      checks,
      launched: (isThere) => void (isThere ? history.launches : history.failedLaunches).push(clock.now()),
      served: () => {
        log.add(`${workload.id} serves at ${place.id}`);
        this.#passSoon();
      },
      failed: (why) => {
        log.add(`${workload.id} fails at ${place.id}: ${why}`);
        this.#want(workload);
      },
    });
  }

  #heatAt(place: Place, now: Instant): number {
    const history = this.#history.get(spotOf(place));
    return history === undefined ? 0 : heatOf(history, now);
  }

  #historyOf(spot: string): History {
    const known = this.#history.get(spot) ?? { losses: [], failedLaunches: [], launches: [], running: [] };
    this.#history.set(spot, known);
    return known;
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

function homeSpot({ doom: { member } }: Workload): string {
  return `${member.of.runsOn.site}/${member.zone}/${member.of.runsOn.type}`;
}

function spotOf({ spec }: Place): string {
  return `${spec.site}/${spec.zone}/${spec.type}`;
}
