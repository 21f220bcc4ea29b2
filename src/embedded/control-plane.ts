/** The controllers and the scheduler over one API, wired and started together. */
import { EVENTS } from "../kube/resources.ts";
import type { ClusterAccess } from "./controllers/access.ts";
import { daemonSetController } from "./controllers/daemon-set.ts";
import { deploymentController } from "./controllers/deployment.ts";
import { disruptionBudgetController } from "./controllers/disruption-budget.ts";
import { EventRecorder } from "./controllers/events.ts";
import { garbageCollectionController } from "./controllers/garbage-collection.ts";
import { nodeLifecycleController } from "./controllers/node-lifecycle.ts";
import { podCollectionController } from "./controllers/pod-collection.ts";
import { replicaSetController } from "./controllers/replica-set.ts";
import { statefulSetController } from "./controllers/stateful-set.ts";
import { KINDS } from "./kinds.ts";
import { installTrinoClusters, stackableTrinoOperator } from "./operators/stackable-trino.ts";
import { scheduler } from "./scheduler/scheduler.ts";

export interface ControlPlaneOptions {
  /** Without a lease renewal for this long a node is unreachable. */
  readonly leaseGraceMs: number;
  /** How long pods outlive their Node object. */
  readonly orphanGraceMs: number;
  readonly recordEvents: boolean;
  /** Stand-ins for operators that others install. */
  readonly operators: readonly Operator[];
}

export const OPERATORS = ["stackable-trino"] as const;
type Operator = (typeof OPERATORS)[number];

export const DEFAULT_CONTROL_PLANE_OPTIONS: ControlPlaneOptions = {
  ...{ leaseGraceMs: 4_000, orphanGraceMs: 1_000, recordEvents: true, operators: [] },
};

/** Kinds whose objects own others or are owned: all that are served, but for those that only grow and go by themselves. */
const OWNED_TYPES = KINDS.filter(({ kind }) => kind !== EVENTS.kind);

/** Settles when all caches are filled and all loops run; they end with `access.close()`. */
export async function startControlPlane(access: ClusterAccess, options: ControlPlaneOptions): Promise<void> {
  const hasTrino = options.operators.includes("stackable-trino");
  if (hasTrino) await installTrinoClusters(access);
  const recorder = (component: string): EventRecorder => new EventRecorder(access, component, options.recordEvents);
  const loops = [
    deploymentController(access, recorder("deployment-controller")),
    replicaSetController(access, recorder("replicaset-controller")),
    statefulSetController(access, recorder("statefulset-controller")),
    daemonSetController(access, recorder("daemonset-controller")),
    disruptionBudgetController(access),
    garbageCollectionController(access, OWNED_TYPES),
    nodeLifecycleController(access, recorder("node-controller"), options),
    podCollectionController(access, options),
    scheduler(access, recorder("default-scheduler")),
    ...(hasTrino ? [stackableTrinoOperator(access)] : []),
  ];
  await access.whenSynced();
  for (const loop of loops) loop.start();
}
