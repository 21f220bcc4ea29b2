/** One look at a pool: what is seen of it, and what the planner makes of that. */
import type { Clock, Instant } from "../kernel/clock.ts";
import type { PlacementTrouble } from "../model/pod-loss.ts";
import { hasRoute, routeOf } from "../model/pool.ts";
import { reason } from "../model/reasons.ts";
import type { CapacityMonitor } from "../observe/capacity.ts";
import type { DemandMonitor } from "../observe/demand-monitor.ts";
import type { SlotsMonitor } from "../observe/slots-monitor.ts";
import type { HealthMonitor } from "../observe/health.ts";
import type { LeaseWatch } from "../observe/lease-watch.ts";
import type { NoticeDesk } from "../observe/notice-desk.ts";
import type { MemberMonitor } from "../observe/member-monitor.ts";
import type { NamedReads } from "../observe/named-reads.ts";
import { nodeViews } from "../observe/node-views.ts";
import type { PlacementTroubles, WaitingPod } from "../observe/placement-troubles.ts";
import { Placements } from "../observe/placements.ts";
import { type SeenPool, snapshotPool } from "../observe/snapshot.ts";
import type { Targets } from "../observe/targets.ts";
import type { World } from "../observe/world.ts";
import { planPool } from "../plan/plan.ts";
import { roomToMake } from "../plan/preemption.ts";
import type { PoolSnapshot, Proofs, Rewound } from "../plan/snapshot.ts";
import type { PoolRows } from "../store/port.ts";
import { HealthBrake, LeaseBrake } from "./brake.ts";
import type { EvacuationDesk } from "./evacuation-desk.ts";
import type { DeletionCause } from "./deletion-cause.ts";
import type { FixedServices } from "./fixed-service.ts";
import { type FreezeSource, joinFreezes } from "./freeze-config.ts";
import type { GatewayRegistry } from "./gateways.ts";
import type { Leftovers } from "./leftovers.ts";
import { type Members, olderReplica } from "./members.ts";
import type { Pass } from "./pass.ts";
import { withHolds } from "./pass-notes.ts";
import type { PoolEntry } from "./pool-informer.ts";
import type { RoutePublisher } from "./route-publisher.ts";
import { withoutRoute } from "./routes.ts";
import type { StoreTrust } from "./store-trust.ts";

export interface MakeOptions {
  readonly rewound?: Rewound | null;
  /** Of a Pool that is being deleted. */
  readonly cause?: DeletionCause | null;
  readonly isPass?: boolean;
}

/** What was proven of the running processes of a pool, by its key. */
export interface ProofSource {
  of(pool: string): Proofs | null;
}

export interface PassMakerParts {
  readonly world: World;
  readonly gateways: GatewayRegistry;
  readonly health: HealthMonitor;
  readonly demand: DemandMonitor;
  readonly slots: SlotsMonitor;
  readonly targets?: Targets | undefined;
  readonly memberStates: Pick<MemberMonitor, "stateOf">;
  readonly services: Pick<FixedServices, "clusterOf">;
  /** What is proven to be effective; absent: nothing is. */
  readonly proofs?: ProofSource | undefined;
  readonly leases: LeaseWatch;
  readonly notices: NoticeDesk;
  readonly capacity: CapacityMonitor;
  readonly evacuation: EvacuationDesk;
  readonly clock: Clock;
  readonly routes: RoutePublisher;
  readonly trust: StoreTrust;
  readonly leftovers: Leftovers;
  readonly namedReads: NamedReads;
  readonly freezes?: FreezeSource | undefined;
  readonly members: Members;
  /** Asks why pods find no place; nobody does when absent. */
  readonly placementTroubles?: PlacementTroubles;
  /** The last one over each pool of this controller. */
  readonly passes: ReadonlyMap<string, Pass>;
  /** When the silence of gateway replicas begins to count. */
  readonly settledAt: () => Instant;
}

const NOTHING_KNOWN: ReadonlyMap<string, PlacementTrouble> = new Map();

/** Of instances that come: only those wait for a place that are to be there. */
function waitingPods({ pool, namespace, instances }: PoolSnapshot): readonly WaitingPod[] {
  return instances.flatMap(({ record, pods }) =>
    record.phase === "preparing"
      ? pods.filter(({ scheduledAt }) => scheduledAt === null).map(({ name, uid }) => ({ pool, namespace, name, uid }))
      : [],
  );
}

/** What one look at a pool begins with. */
interface Look {
  readonly entry: PoolEntry;
  readonly rows: PoolRows;
  readonly rewound: Rewound | null;
  readonly now: Instant;
  /** No other pool holds its route. */
  readonly isRouted: boolean;
}

export class PassMaker {
  readonly #parts: PassMakerParts;
  readonly #brake: HealthBrake;
  readonly #leaseBrake: LeaseBrake;
  readonly #placements: Placements;
  #hasBegunAnew = false;

  constructor(parts: PassMakerParts) {
    this.#parts = parts;
    const { health, leases } = parts;
    this.#brake = new HealthBrake({
      healthOf: (instance, incarnation) => health.healthOf(instance, incarnation),
      beginAnew: (instance) => {
        health.beginAnew(instance);
        this.#hasBegunAnew = true;
      },
    });
    this.#leaseBrake = new LeaseBrake({
      get isWatching() {
        return leases.isWatching;
      },
      stateOf: (pool, instance, incarnation) => leases.stateOf(pool, instance, incarnation),
      beginAnew: (pool, instance) => {
        leases.beginAnew(pool, instance);
        this.#hasBegunAnew = true;
      },
    });
    this.#placements = new Placements(parts.clock);
  }

  forgetPod(uid: string): void {
    this.#placements.forget(uid);
  }

  /** With `isPass` false nobody acts on it, so nothing is promised for it either. */
  make(entry: PoolEntry, rows: PoolRows, { rewound = null, cause = null, isPass = true }: MakeOptions = {}): Pass {
    const now = this.#parts.clock.now();
    this.#parts.leases.observe(rows.pool, rows.workloads, entry.document.spec.state.lease?.ttl ?? null);
    const holder = this.#parts.routes.holderOf(entry);
    const lastLooks = [...this.#parts.passes.values()].map((pass) => pass.snapshot);
    const seen = this.#see({ entry, rows, rewound, now, isRouted: holder === undefined && hasRoute(entry.document) }, lastLooks);
    const { evacuation } = this.#parts;
    const advice = isPass && rewound === null ? evacuation.look(seen, now) : evacuation.adviceFor(seen.pool, now);
    const noPlace = this.#parts.placementTroubles?.look(seen.pool, waitingPods(seen)) ?? NOTHING_KNOWN;
    const older = notYetActive(seen) ? olderReplica(this.#parts.members) : undefined;
    const unknown = cause?.kind === "unknown" ? { deletionCauseUnknown: cause.found } : {};
    const made = { ...seen, ...unknown, ...advice, noPlace, makesRoom: Math.max(advice.makesRoom, roomToMake(seen, lastLooks, now)) };
    const snapshot = older === undefined ? made : observing(made);
    const pass = { snapshot, plan: planPool(snapshot, now), at: now };
    return withHolds(pass, [
      ...(holder === undefined
        ? []
        : [{ kind: "hold" as const, subject: "", reason: reason("route_taken", { route: routeOf(entry.document), pool: holder }) }]),
      ...(older === undefined ? [] : [{ kind: "hold" as const, subject: "", reason: reason("older_replica", { replica: older }) }]),
    ]);
  }

  /** The brakes are looked at with what is seen now, of this pool, and what was seen last of the others: one alone is news that is as old as its pass. */
  #see(look: Look, lastLooks: readonly PoolSnapshot[]): PoolSnapshot {
    const others = lastLooks.filter(({ pool }) => pool !== look.rows.pool);
    const seen = this.#snapshot(look);
    this.#hasBegunAnew = false;
    const brake = this.#brake.look([...others, seen]);
    const leaseBrake = this.#leaseBrake.look([...others, seen]);
    // Whose silence begins anew was seen as silent for long.
    return { ...(this.#hasBegunAnew ? this.#snapshot(look) : seen), brake, leaseBrake };
  }

  #snapshot({ entry, rows, rewound, now, isRouted }: Look): SeenPool {
    const { world, gateways, health, leases, notices, demand, slots } = this.#parts;
    const joined = joinFreezes(rows.freeze, this.#parts.freezes?.freezeOf(rows.pool, now) ?? null);
    return snapshotPool({
      document: entry.document,
      isDeleting: entry.isDeleting,
      blueprintHash: entry.blueprintHash,
      rows: joined === rows.freeze ? rows : { ...rows, freeze: joined },
      world,
      gateways: isRouted ? gateways.views() : withoutRoute(gateways.views(), rows),
      nodeView: nodeViews({ world, noticed: notices.findings(), now }),
      health: (instance, incarnation) => health.healthOf(instance, incarnation),
      ownObligations: (instance, incarnation) => health.obligationsOf(instance, incarnation),
      lease: (instance, incarnation) => leases.stateOf(rows.pool, instance, incarnation),
      confirm: (record, absence) => this.#parts.namedReads.confirm(record, absence),
      placement: this.#parts.capacity.placement(),
      placedSince: (podUid) => this.#placements.since(podUid),
      settledAt: this.#parts.settledAt(),
      rewound,
      witnessesAwaitedUntil: this.#parts.trust.witnessesAwaitedUntil(rows, isRouted),
      recoveredAt: this.#parts.trust.recoveredAt,
      leftovers: this.#parts.leftovers.of(rows.pool),
      demand: demand.viewOf(rows.pool),
      slots: (instance, incarnation) => slots.slotsOf(instance, incarnation),
      isSlotsAwaited: (instance, incarnation) => slots.isAwaited(rows.pool, instance, incarnation),
      slotsTogether: (serving, finishing) => slots.together(rows.pool, serving, finishing),
      recommended: demand.recommendedOf(rows.pool),
      ...this.#scaledBy(entry, rows),
      cluster: (record) => this.#parts.services.clusterOf(entry, record),
      memberState: (podUid) => this.#parts.memberStates.stateOf(podUid),
      proofs: this.#parts.proofs?.of(rows.pool) ?? null,
      now,
    });
  }

  /** Nothing where nobody else sets anything: most pools. */
  #scaledBy({ document }: PoolEntry, { pool, instances }: PoolRows): Pick<SeenPool, "target" | "scaleOwners"> {
    const { targets } = this.#parts;
    if (targets === undefined) return {};
    const scaleOwners = targets.ownersOf(instances);
    return {
      ...(document.spec.target === undefined ? {} : { target: targets.viewOf(pool) }),
      ...(scaleOwners.length === 0 ? {} : { scaleOwners }),
    };
  }
}

/** D17: its mode says Act and nothing was done for it yet: no pod of it carries our marks. One that is active stays so while replicas are exchanged. */
function notYetActive({ spec, instances }: PoolSnapshot): boolean {
  return spec.disruption.mode === "Act" && !instances.some(({ pods }) => pods.some(({ protectedByUs }) => protectedByUs));
}

function observing(snapshot: PoolSnapshot): PoolSnapshot {
  const { spec } = snapshot;
  return { ...snapshot, spec: { ...spec, disruption: { ...spec.disruption, mode: "Observe" } } };
}
