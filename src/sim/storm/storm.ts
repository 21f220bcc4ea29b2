/**
 * A storm: a modelled fleet loses its machines, and an approach moves what runs on them. What is decided is decided by the production schedule (or by the
 * baseline that stands in its place) from what Relevo would see; sites, machines, state and requests are modelled. The same fleet, seed and approach give the
 * same run.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { EventLog } from "../event-log.ts";
import { seededRandom } from "../seeded.ts";
import { StormChecks } from "./checks.ts";
import { uniform } from "./draws.ts";
import type { Fleet } from "./fleet.ts";
import { TIMES, writesIn } from "./move.ts";
import { drawDooms, membersOf } from "./notices.ts";
import { buildSites, type Sites } from "./sites.ts";
import { Traffic } from "./traffic.ts";
import { Workload } from "./workload.ts";

/** What is done about it. */
export interface Approach {
  /** Its first notice, while its home lives. */
  noticed(workload: Workload): void;
  /** Its home is gone, that is known, and the workload is fenced. */
  lost(workload: Workload): void;
}

export class Storm {
  readonly fleet: Fleet;
  readonly seed: number;
  readonly clock = new VirtualClock();
  readonly log = new EventLog(this.clock);
  readonly checks = new StormChecks(this.clock);
  readonly sites: Sites;
  readonly traffic: Traffic;
  readonly workloads: readonly Workload[];
  readonly startedAt: Instant;
  /** Results that were rejected: of an epoch below the tombstone. */
  staleResults = 0;
  readonly #random: Random;
  readonly #approach: Approach;

  constructor(fleet: Fleet, seed: number, approach: (storm: Storm) => Approach) {
    this.fleet = fleet;
    this.seed = seed;
    this.startedAt = this.clock.now();
    this.#random = seededRandom(seed, "storm");
    this.sites = buildSites(fleet, this.clock);
    this.traffic = new Traffic(this.clock, fleet.gatewayQueue, fleet.measureFor);
    const members = membersOf(fleet, seededRandom(seed, "members"));
    const dooms = drawDooms(fleet, members, seededRandom(seed, "notices"));
    this.workloads = dooms.map((doom) => {
      const { id, of } = doom.member;
      const latencyMs = this.sites.byName.get(of.runsOn.site)?.spec.latency ?? 0;
      const route = this.traffic.open(id, of, latencyMs, seededRandom(seed, `requests of ${id}`));
      return new Workload(doom, route, seededRandom(seed, `move of ${id}`), this.startedAt);
    });
    this.#approach = approach(this);
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

  #plant(workload: Workload): void {
    const { noticesAt, lostAt } = workload.doom;
    for (const at of noticesAt) this.clock.after(at, () => this.#notice(workload, this.startedAt + lostAt));
    this.clock.after(lostAt, () => this.#lose(workload));
  }

  #notice(workload: Workload, deadline: Instant): void {
    if (!workload.isHomeAlive || !workload.record("deadline", this.clock.now(), deadline)) return;
    this.log.add(`${workload.id} is noticed`);
    this.#approach.noticed(workload);
  }

  #lose(workload: Workload): void {
    const now = this.clock.now();
    const { lingersMs } = workload.doom;
    this.log.add(`the home of ${workload.id} goes`);
    if (lingersMs > 0) this.#linger(workload, now + lingersMs);
    if (!workload.isHomeAlive) return;
    workload.loseHome(now);
    if (workload.servingAt !== null) return;
    this.traffic.lose(workload.route);
    workload.lost += writesIn(workload, now - workload.committedAt(now));
    this.clock.after(uniform(this.#random, ...TIMES.noticeLoss), () => {
      if (workload.servingAt !== null) return;
      workload.fence();
      workload.record("forced", this.clock.now(), null);
      this.log.add(`${workload.id} is fenced`);
      this.#approach.lost(workload);
    });
  }

  /** Cut off, and writing on under the epoch that it had. */
  #linger(workload: Workload, until: Instant): void {
    if (this.clock.now() > until) return;
    const { id, homeEpoch, minAccepted } = workload;
    if (workload.lands(homeEpoch)) this.checks.accepted(id, homeEpoch, "home", minAccepted);
    else this.staleResults += 1;
    this.clock.after(LINGERING_WRITES_MS, () => this.#linger(workload, until));
  }

  #watchCounts(): void {
    this.clock.after(COUNTED_EVERY_MS, () => {
      this.checks.counts(this.traffic, this.traffic.waiting());
      this.#watchCounts();
    });
  }
}

const LINGERING_WRITES_MS = 500;
const COUNTED_EVERY_MS = 1_000;
