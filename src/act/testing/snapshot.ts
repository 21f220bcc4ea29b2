/** A snapshot with one instance, as far as drafts and moves read it. */
import { epoch } from "../../kernel/epoch.ts";
import type { InstanceRecord } from "../../model/instance.ts";
import { ANYWHERE } from "../../model/placement.ts";
import { poolSpecSchema } from "../../model/pool.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../../plan/snapshot.ts";
import { BLUEPRINT, INSTANCE, POOL } from "./world.ts";

export const INCARNATION = {
  number: 1,
  podName: "pod-1",
  podUid: "pod-uid",
  containerId: "test://1",
  bootId: "boot-1",
  nodeName: "a",
  nodeUid: "node-uid",
  host: "127.1.0.1",
  port: 8080,
};

export function aSnapshot(record: Partial<InstanceRecord> = {}, instance: Partial<InstanceSnapshot> = {}): PoolSnapshot {
  const known: InstanceRecord = {
    id: INSTANCE,
    pool: POOL,
    ordinal: 0,
    purpose: "fill",
    replaces: null,
    phase: "validating",
    phaseSince: 0,
    createdAt: 0,
    trust: "ok",
    incarnation: INCARNATION,
    blueprintHash: "hash-1",
    objects: [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: INSTANCE, uid: "deployment-uid" }],
    admittedGeneration: null,
    drainGeneration: null,
    drainLoss: null,
    drainSince: null,
    drainDeadline: null,
    seal: null,
    failure: null,
    failedAt: null,
    ...record,
  };
  const seen: InstanceSnapshot = {
    record: known,
    evidence: [],
    pods: [],
    podsWanted: 1,
    newIncarnation: null,
    health: { state: "unknown" },
    lost: null,
    witnessed: false,
    unreached: false,
    lease: { state: "none" },
    obligations: null,
    ownObligations: null,
    appliedEverywhere: false,
    drainAppliedEverywhere: false,
    slots: null,
    objectsGone: false,
    ...instance,
  };
  return {
    pool: POOL,
    namespace: "default",
    name: "orders",
    spec: poolSpecSchema.parse({
      driver: "service",
      sites: ["north"],
      size: { desired: 1 },
      disruption: { mode: "Act" },
      blueprint: BLUEPRINT,
    }),
    blueprintHash: "hash-1",
    deleting: false,
    authorityEpoch: epoch(0, 1),
    generation: epoch(0, 1),
    freeze: null,
    instances: [seen],
    openSteps: [],
    failures: [],
    reasons: [],
    inventory: { state: "complete" },
    placement: ANYWHERE,
    evacuation: new Map(),
    makesRoom: 0,
    gateways: [],
    settledAt: 0,
    brake: null,
    workloads: [],
    leaseBrake: null,
    rewound: null,
    witnessesAwaitedUntil: null,
    recoveredAt: null,
    strangers: [],
    demand: null,
    slots: null,
    scale: null,
    proven: null,
    recommended: [],
  };
}
