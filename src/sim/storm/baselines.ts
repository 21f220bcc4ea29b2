/**
 * What is done without Relevo, in the same storm: evictions under a PodDisruptionBudget, and volume snapshots. Each as good as it honestly is:
 * the nearest free place is found at once, a snapshot takes its three minutes however many are taken, and a standby counts as a spare node that runs.
 */
import type { Clock, Instant } from "../../kernel/clock.ts";
import { uniform } from "./draws.ts";
import { TIMES, writesIn } from "./move.ts";
import type { Place } from "./sites.ts";
import type { Approach, Storm } from "./storm.ts";
import type { Workload } from "./workload.ts";

/** State comes back from the newest volume snapshot, which is taken every so often. */
abstract class FromSnapshots implements Approach {
  protected readonly storm: Storm;
  protected readonly clock: Clock;
  readonly #placed = new Set<Workload>();

  constructor(storm: Storm) {
    this.storm = storm;
    this.clock = storm.clock;
    for (const workload of storm.workloads)
      workload.onlyFromSnapshots(
        storm.startedAt - workload.random.next() * storm.fleet.baselines.snapshotEvery,
        storm.fleet.baselines.snapshotEvery,
      );
  }

  abstract noticed(workload: Workload): void;
  abstract lost(workload: Workload): void;

  /** At the nearest free place: the node, beside it the state, then what every start needs. Looked for again until there is one. */
  protected restore(workload: Workload): void {
    if (this.#placed.has(workload)) return;
    const place = this.#nearest();
    if (place === undefined) {
      this.clock.after(this.storm.fleet.baselines.evictionRetry, () => this.restore(workload));
      return;
    }
    this.#placed.add(workload);
    place.taken += 1;
    const { random, of } = workload;
    const node = place.spec.kind === "standby" ? 0 : uniform(random, ...place.spec.nodeStart);
    const readyMs = Math.max(node, this.storm.fleet.baselines.snapshot) + of.boot + uniform(random, ...TIMES.begin);
    this.clock.after(readyMs, () => place.site.land(of.warmUp, () => this.#serve(workload, place)));
  }

  #nearest(): Place | undefined {
    return this.storm.sites.places
      .filter(({ free, spec }) => free > 0 && spec.checkFails < 1)
      .toSorted(
        (a, b) => a.site.spec.latency - b.site.spec.latency || (a.spec.kind === "standby" ? 0 : 1) - (b.spec.kind === "standby" ? 0 : 1),
      )[0];
  }

  #serve(workload: Workload, place: Place): void {
    const { traffic, log, checks } = this.storm;
    if (workload.isHomeAlive) {
      // What it acknowledged since the snapshot is not in the new one.
      workload.lost += writesIn(workload, this.clock.now() - workload.committedAt(this.clock.now()));
      traffic.pause(workload.route);
      workload.loseHome(this.clock.now());
    }
    const epoch = workload.passTo(place.id);
    checks.accepted(workload.id, epoch, place.id, workload.minAccepted);
    traffic.resume(workload.route, place.site.spec.latency, place.site.slowness);
    workload.servingAt = this.clock.now();
    workload.state = "moved";
    log.add(`${workload.id} serves at ${place.id}`);
    this.served(workload);
  }

  protected served(_workload: Workload): void {
    // Not everybody keeps a count.
  }
}

/**
 * Volume snapshots, without surge or pause: at a notice the replacement is made and the newest snapshot that is whole before the node goes is brought back. The
 * old one serves as long as it lives; what it acknowledges after that snapshot is gone.
 */
export class Snapshots extends FromSnapshots {
  override noticed(workload: Workload): void {
    const { snapshot } = this.storm.fleet.baselines;
    const now = this.clock.now();
    const isWhole = workload.doom.lostAt - (now - this.storm.startedAt) >= snapshot;
    if (isWhole) workload.onlyFromSnapshots(now, Number.POSITIVE_INFINITY);
    this.restore(workload);
  }

  override lost(workload: Workload): void {
    this.restore(workload);
  }
}

/**
 * Disruption budgets alone: a node that is noticed is drained, as far as the class's PodDisruptionBudget lets evictions through, tried again every so often; the pod
 * ends, and only then its replacement is made. Who is still there when the node goes is lost with it.
 */
export class Budgets extends FromSnapshots {
  readonly #unavailable = new Map<string, Set<Workload>>();

  override noticed(workload: Workload): void {
    this.#evict(workload);
  }

  override lost(workload: Workload): void {
    this.#unavailableOf(workload).add(workload);
    this.restore(workload);
  }

  protected override served(workload: Workload): void {
    this.#unavailableOf(workload).delete(workload);
  }

  #evict(workload: Workload): void {
    if (!workload.isHomeAlive) return;
    const { maxUnavailable, evictionRetry } = this.storm.fleet.baselines;
    const unavailable = this.#unavailableOf(workload);
    if (unavailable.size >= Math.floor(maxUnavailable * workload.of.count)) {
      this.clock.after(evictionRetry, () => this.#evict(workload));
      return;
    }
    const now: Instant = this.clock.now();
    unavailable.add(workload);
    this.storm.log.add(`${workload.id} is evicted`);
    this.storm.traffic.pause(workload.route); // a graceful end: what is in flight is answered, and its last writes are brought to safety
    workload.loseHome(now);
    workload.fence();
    this.restore(workload);
  }

  #unavailableOf({ of }: Workload): Set<Workload> {
    const known = this.#unavailable.get(of.name) ?? new Set<Workload>();
    this.#unavailable.set(of.name, known);
    return known;
  }
}
