/** What a controller is made of. */
import type { ClusterSetup } from "../act/draft-step.ts";
import type { Executor } from "../act/executor.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Informer } from "../kube/informer.ts";
import type { CapacityMonitor } from "../observe/capacity.ts";
import type { HealthMonitor } from "../observe/health.ts";
import type { DemandMonitor } from "../observe/demand-monitor.ts";
import type { SlotsMonitor } from "../observe/slots-monitor.ts";
import type { LeaseWatch } from "../observe/lease-watch.ts";
import type { MemberMonitor } from "../observe/member-monitor.ts";
import type { NoticeDesk } from "../observe/notice-desk.ts";
import type { PlacementTroubles } from "../observe/placement-troubles.ts";
import type { Targets } from "../observe/targets.ts";
import type { World } from "../observe/world.ts";
import type { Store } from "../store/port.ts";
import type { GatewayRegistry } from "./gateways.ts";
import type { EvacuationDesk } from "./evacuation-desk.ts";
import type { FreezeSource } from "./freeze-config.ts";
import type { PoolEntry } from "./pool-informer.ts";
import type { Witnesses } from "./rewound.ts";
import type { Members } from "./members.ts";
import type { ControllerLog, Pass } from "./pass.ts";
import type { ProofSource } from "./pass-maker.ts";
import type { PoolWriter } from "./pool-writer.ts";

export interface ControllerParts {
  readonly store: Store;
  /** Asked why a Pool is being deleted, and by name for what is not seen. */
  readonly kube: Pick<KubeApi, "get" | "list">;
  readonly executor: Executor;
  readonly world: World;
  readonly pools: Informer<PoolEntry>;
  readonly gateways: GatewayRegistry;
  readonly witnesses: Witnesses;
  readonly health: HealthMonitor;
  readonly leases: LeaseWatch;
  readonly demand: DemandMonitor;
  readonly slots: SlotsMonitor;
  /** What Pools with a target scale, and who else sets replica counts; absent: nobody looks. */
  readonly targets?: Targets | undefined;
  readonly memberStates: MemberMonitor;
  /** What is proven to be effective in running processes; absent: nothing is. */
  readonly proofs?: ProofSource | undefined;
  readonly notices: NoticeDesk;
  readonly capacity: CapacityMonitor;
  readonly evacuation: EvacuationDesk;
  readonly writer: PoolWriter;
  /** Told what the store's newest stamp is: what was written is not of the future, whatever was done to the wall clock between two lives. */
  readonly clock: Clock & { notBefore?(stamp: Instant): void };
  readonly ids: Ids;
  readonly members: Members;
  /** What is frozen beside the store. */
  readonly freezes?: FreezeSource | undefined;
  readonly log: ControllerLog;
  readonly cluster?: ClusterSetup;
  /** Told after each pass; what metrics are made of. */
  readonly onPass?: (pass: Pass) => void;
  /** Asks why pods find no place; nobody does when absent. */
  readonly placementTroubles?: PlacementTroubles;
  /** Told when a pool is another replica's from now on. */
  readonly onLost?: (pool: string) => void;
}
