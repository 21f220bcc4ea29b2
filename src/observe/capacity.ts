/**
 * Capacity health per site × zone × instance type × capacity type (S2), and what could take over (the supply of the evacuation schedule).
 *
 * 1. Seen are the fate of nodes and NodeClaims, notices, evidence, and candidates that were never ready; each loss of a node counts once, whoever tells it.
 * 2. In memory and bounded: after a restart it is learned anew, evidence that is still in the store first. It advises and never decides.
 * 3. What nobody says is not guessed: without NodePools a site's room is unknown, and a candidate that fails tells that there was none.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import { conditionOf, type KubeNode, type NodeClaim } from "../kube/types.ts";
import type { EvidenceReason } from "../model/evidence.ts";
import { ANYWHERE, type Placement, type Spot, spotId } from "../model/placement.ts";
import { compareText } from "../plan/view.ts";
import { heatOf, LAUNCH_HALF_LIFE_MS, LOSS_HALF_LIFE_MS, placementOf, type SpotHistory } from "../plan/evacuation/heat.ts";
import type { CapacityView, Quota, SpotHealth } from "../plan/evacuation/capacity-view.ts";
import type { NodeFinding, PoolSnapshot } from "../plan/snapshot.ts";
import { NODE_POOL_LABEL, spotOfNode, spotsOfClaim, spotsOfPool } from "./spots.ts";
import type { World } from "./world.ts";

/** What says that capacity is taken, not that somebody tidies up. */
const TAKEN: ReadonlySet<EvidenceReason> = new Set(["spot_interruption", "instance_state_change", "node_lost", "machine_taken"]);
/** The newest of each kind at each spot. */
const MAX_EVENTS = 200;
/** After so many half-lives an event weighs less than a sixtieth. */
const KEPT_HALF_LIVES = 6;
const MAX_KNOWN = 20_000;
/** More names would make pods unwieldy; those nodes are cordoned soon. */
const MAX_AVOIDED_NODES = 50;
/** Heat falls with time alone. */
const REFRESH_MS = 5_000;
const PLACEMENT_FOR_MS = 1_000;
/** Until one was measured: a cloud's node start and a process that boots. */
const FIRST_READY_MS = 60_000;
/** Each may take `disruption.candidates.readyWithin`: made and placed, prepared, validated. */
const PHASES_TO_READY = 3;
/** The weight of the newest measurement. */
const LEARNING = 0.3;

interface Kept {
  readonly spot: Spot;
  readonly losses: Instant[];
  readonly failedLaunches: Instant[];
  readonly launches: Instant[];
  /** Since when, by node UID. */
  readonly running: Map<string, Instant>;
}

export interface CapacityOptions {
  readonly world: Pick<World, "nodes" | "nodeClaims" | "nodePools">;
  /** By node UID. */
  readonly noticed: () => ReadonlyMap<string, readonly NodeFinding[]>;
  readonly clock: Clock;
}

export class CapacityMonitor {
  readonly #options: CapacityOptions;
  readonly #spots = new Map<string, Kept>();
  /** Where each node is or was. */
  readonly #places = new Map<string, Spot>();
  /** Nodes whose loss, and candidates whose failure, was counted. */
  readonly #counted = new Set<string>();
  readonly #measured = new Set<string>();
  #noticed: ReadonlyMap<string, readonly NodeFinding[]> = new Map();
  #readyInMs = FIRST_READY_MS;
  #view: CapacityView | undefined;
  #placement: { readonly placement: Placement; readonly at: Instant; readonly isStale: boolean } | undefined;

  constructor(options: CapacityOptions) {
    this.#options = options;
    const { nodes, nodeClaims, nodePools } = options.world;
    nodes.onChange(({ uid, before, after, gone }) => this.#nodeChanged(uid, before, after, gone));
    nodeClaims.onChange(({ before, after, gone }) => this.#claimChanged(before, after, gone));
    nodePools.onChange(() => this.#changed());
  }

  /** What a pass over a pool saw. */
  note({ instances, spec }: PoolSnapshot): void {
    for (const { record, evidence } of instances) {
      for (const { reason, nodeUid, firstSeen } of evidence) if (nodeUid !== null && TAKEN.has(reason)) this.#lose(nodeUid, firstSeen);
      if (record.phase === "failed" && record.failure === "not_ready_in_time") this.#failedCandidate(record);
      const isFirstReady = record.phase === "admitted" || (record.phase === "standby" && record.purpose === "standby");
      const tookMs = record.phaseSince - record.createdAt;
      // One that waited as a standby before this controller began, or whose clock was set, tells nothing: made, prepared and validated, no candidate takes longer.
      const isMeasure = tookMs >= 0 && tookMs <= PHASES_TO_READY * spec.disruption.candidates.readyWithin;
      if (isFirstReady && isMeasure && record.incarnation.number === 1) this.#measure(record.id, tookMs);
    }
  }

  /** Where what is made now shall rather go. Asked in each pass: while nothing was lost or refused it costs nothing, else it is made anew once a second. */
  placement(): Placement {
    const now = this.#options.clock.now();
    this.#readNotices(now);
    const known = this.#placement;
    if (known !== undefined && !known.isStale && now >= known.at && now < known.at + PLACEMENT_FOR_MS) return known.placement;
    if (this.#hasTrouble()) this.#forget(now);
    const placement = this.#hasTrouble() ? placementOf(this.#histories(), this.#offered(), now, this.#going()) : ANYWHERE;
    this.#placement = { placement, at: now, isStale: false };
    return placement;
  }

  view(): CapacityView {
    const now = this.#options.clock.now();
    this.#readNotices(now);
    if (this.#view === undefined || now >= this.#view.at + REFRESH_MS || now < this.#view.at) this.#view = this.#look(now);
    return this.#view;
  }

  #look(now: Instant): CapacityView {
    this.#forget(now);
    return {
      at: now,
      spots: this.#histories()
        .map((history) => healthOf(history, now))
        .toSorted((a, b) => compareText(spotId(a.spot), spotId(b.spot))),
      placement: this.placement(),
      quotas: this.#quotas(),
      readyInMs: this.#readyInMs,
    };
  }

  #histories(): readonly SpotHistory[] {
    return [...this.#spots.values()].map(({ running, ...kept }) => ({ ...kept, running: [...running.values()] }));
  }

  #hasTrouble(): boolean {
    for (const { losses, failedLaunches } of this.#spots.values()) if (losses.length + failedLaunches.length > 0) return true;
    return false;
  }

  #offered(): readonly Spot[] {
    return this.#quotas().flatMap(({ spots, limit, machines }) => (limit === null || machines < limit ? spots : []));
  }

  /** By name: announced to be taken, and still there. */
  #going(): readonly string[] {
    if (this.#noticed.size === 0) return [];
    return this.#options.world.nodes
      .list()
      .filter(({ metadata }) => this.#noticed.get(metadata.uid)?.some(({ reason }) => TAKEN.has(reason)))
      .map(({ metadata }) => metadata.labels["kubernetes.io/hostname"] ?? metadata.name)
      .toSorted(compareText)
      .slice(0, MAX_AVOIDED_NODES);
  }

  #quotas(): readonly Quota[] {
    const { nodePools, nodeClaims } = this.#options.world;
    const counts = new Map<string, number>();
    for (const { metadata } of nodeClaims.list()) {
      const pool = metadata.labels[NODE_POOL_LABEL] ?? "";
      counts.set(pool, (counts.get(pool) ?? 0) + 1);
    }
    return nodePools
      .list()
      .map((pool): Quota => {
        const limit = Number(pool.spec.limits["nodes"] ?? Number.NaN);
        return {
          nodePool: pool.metadata.name,
          limit: Number.isFinite(limit) ? limit : null,
          machines: counts.get(pool.metadata.name) ?? 0,
          spots: this.#completed(spotsOfPool(pool)),
        };
      })
      .toSorted((a, b) => compareText(a.nodePool, b.nodePool));
  }

  /** Zones and types that a pool leaves open are those that were seen. */
  #completed(spots: readonly Spot[]): readonly Spot[] {
    return spots.flatMap((spot) => {
      if (spot.zone !== "" && spot.instanceType !== "") return [spot];
      const seen = [...this.#spots.values()].map((kept) => kept.spot);
      const zones = spot.zone !== "" ? [spot.zone] : namesOf(seen.map(({ zone }) => zone));
      const types = spot.instanceType !== "" ? [spot.instanceType] : namesOf(seen.map(({ instanceType }) => instanceType));
      return zones.flatMap((zone) => types.map((instanceType) => ({ ...spot, zone, instanceType })));
    });
  }

  #nodeChanged(uid: string, before: KubeNode | undefined, after: KubeNode | undefined, gone: boolean): void {
    if (after !== undefined) {
      const spot = spotOfNode(after);
      const known = this.#places.get(uid);
      if (known !== undefined && spotId(known) === spotId(spot)) return;
      if (known !== undefined) this.#spots.get(spotId(known))?.running.delete(uid);
      bounded(this.#places, uid, spot);
      if (!this.#counted.has(uid)) this.#at(spot).running.set(uid, after.metadata.creationTimestamp);
      return this.#changed();
    }
    if (!gone || before === undefined) return;
    // One that was asked to go was tidied up; one that is just gone was lost.
    if (before.metadata.deletionTimestamp === null) this.#lose(uid, this.#options.clock.now());
    this.#at(spotOfNode(before)).running.delete(uid);
    this.#changed();
  }

  #claimChanged(before: NodeClaim | undefined, after: NodeClaim | undefined, gone: boolean): void {
    const isRegistered = (claim: NodeClaim): boolean => conditionOf(claim.status.conditions, "Registered")?.status === "True";
    if (after !== undefined && isRegistered(after) && !(before !== undefined && isRegistered(before))) {
      for (const spot of spotsOfClaim(after)) this.#push(spot, "launches", this.#options.clock.now());
    }
    if (gone && before !== undefined && !isRegistered(before)) {
      for (const spot of spotsOfClaim(before)) this.#push(spot, "failedLaunches", this.#options.clock.now());
    }
    if (gone || before === undefined) this.#changed();
  }

  /** A notice counts when it comes, for a node that carries nothing too. */
  #readNotices(now: Instant): void {
    const noticed = this.#options.noticed();
    if (noticed === this.#noticed) return;
    this.#noticed = noticed;
    this.#changed();
    let isNews = false;
    for (const [uid, findings] of noticed) if (findings.some(({ reason }) => TAKEN.has(reason))) isNews = this.#lose(uid, now) || isNews;
    if (isNews && this.#placement) this.#placement = { ...this.#placement, isStale: true };
  }

  /** False when it was counted before, or nobody knows where it was. */
  #lose(nodeUid: string, at: Instant): boolean {
    const spot = this.#places.get(nodeUid);
    if (spot === undefined || this.#counted.has(nodeUid)) return false;
    remember(this.#counted, nodeUid);
    this.#at(spot).running.delete(nodeUid);
    this.#push(spot, "losses", at);
    return true;
  }

  #failedCandidate({ id, incarnation, failedAt }: PoolSnapshot["instances"][number]["record"]): void {
    const spot = incarnation.nodeUid === null ? undefined : this.#places.get(incarnation.nodeUid);
    if (spot === undefined || failedAt === null || this.#counted.has(id)) return;
    remember(this.#counted, id);
    this.#push(spot, "failedLaunches", failedAt);
  }

  #measure(instance: string, tookMs: number): void {
    if (this.#measured.has(instance)) return;
    this.#readyInMs = this.#measured.size === 0 ? tookMs : Math.round(this.#readyInMs * (1 - LEARNING) + tookMs * LEARNING);
    remember(this.#measured, instance);
  }

  #push(spot: Spot, kind: "losses" | "failedLaunches" | "launches", at: Instant): void {
    const events = this.#at(spot)[kind];
    events.push(at);
    if (events.length > MAX_EVENTS) events.shift();
    this.#changed();
  }

  #at(spot: Spot): Kept {
    const id = spotId(spot);
    let kept = this.#spots.get(id);
    if (kept === undefined) {
      kept = { spot, losses: [], failedLaunches: [], launches: [], running: new Map() };
      this.#spots.set(id, kept);
    }
    return kept;
  }

  #forget(now: Instant): void {
    for (const [id, kept] of this.#spots) {
      expire(kept.losses, now - KEPT_HALF_LIVES * LOSS_HALF_LIFE_MS);
      expire(kept.failedLaunches, now - KEPT_HALF_LIVES * LAUNCH_HALF_LIFE_MS);
      expire(kept.launches, now - KEPT_HALF_LIVES * LAUNCH_HALF_LIFE_MS);
      if (kept.running.size + kept.losses.length + kept.failedLaunches.length + kept.launches.length === 0) this.#spots.delete(id);
    }
  }

  #changed(): void {
    this.#view = undefined;
  }
}

function healthOf(history: SpotHistory, now: Instant): SpotHealth {
  const { spot, losses, failedLaunches, launches, running } = history;
  return {
    spot,
    heat: heatOf(history, now),
    machines: running.length,
    losses: losses.length,
    failedLaunches: failedLaunches.length,
    launches: launches.length,
    lastLossAt: losses.length === 0 ? null : Math.max(...losses),
    lastFailureAt: failedLaunches.length === 0 ? null : Math.max(...failedLaunches),
  };
}

function namesOf(all: readonly string[]): readonly string[] {
  return [...new Set(all)].filter((name) => name !== "").toSorted(compareText);
}

function expire(times: Instant[], before: Instant): void {
  while (times.length > 0 && (times[0] ?? before) < before) times.shift();
}

function remember(set: Set<string>, value: string): void {
  set.add(value);
  if (set.size > MAX_KNOWN) for (const oldest of set) if (set.delete(oldest)) break;
}

function bounded<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value);
  if (map.size > MAX_KNOWN) for (const oldest of map.keys()) if (map.delete(oldest)) break;
}
