/** A small world for the tests of steps and executor: embedded object store, SQLite in memory, fake processes, a virtual clock. */
import { directKubeApi } from "../../embedded/store/direct-api.ts";
import { bootstrapCluster } from "../../embedded/store/bootstrap.ts";
import { ObjectStore } from "../../embedded/store/object-store.ts";
import type { Ids } from "../../kernel/ids.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { KubeApi, KubeObject, KubeObjectDraft, ResourceType } from "../../kube/api.ts";
import { DEPLOYMENTS, NODE_CLAIMS, NODES, PODS, REPLICA_SETS } from "../../kube/resources.ts";
import type { Incarnation, InstanceRecord, OwnedObject } from "../../model/instance.ts";
import type { Phase } from "../../model/phase.ts";
import type { Authority, Change, InstanceFacts, Store } from "../../store/port.ts";
import { openStore } from "../../store/store.ts";
import type { Process } from "../steps/process.ts";
import { FakeInstances } from "./fake-instances.ts";
import { wrapCounted } from "./effects.ts";

export const POOL = "default/orders";
export const INSTANCE = "orders-0000000001";
export const HOST = "127.1.0.1";
export const MEMBER_HOST = "127.1.0.2";

export interface World {
  readonly clock: VirtualClock;
  readonly kube: KubeApi;
  readonly store: Store;
  readonly instances: FakeInstances;
  /** Every write that changed the cluster, `create deployments/x`, in order. */
  readonly effects: string[];
}

export function countingIds(): Ids {
  let count = 0;
  return { next: (prefix) => `${prefix}-${String(++count).padStart(10, "0")}` };
}

export async function aWorld(): Promise<World> {
  const clock = new VirtualClock();
  const cluster = new ObjectStore({ clock, ids: countingIds() });
  bootstrapCluster(cluster);
  const effects: string[] = [];
  return {
    clock,
    kube: wrapCounted(directKubeApi(cluster), effects),
    store: await openStore({ path: ":memory:" }),
    instances: new FakeInstances(),
    effects,
  };
}

export const BLUEPRINT = {
  objects: [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "$(relevo.instance)", labels: { app: "orders" } },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: "orders" } },
        template: {
          metadata: { labels: { app: "orders" } },
          spec: { containers: [{ name: "main", image: "orders:1", env: [{ name: "SITE", value: "$(relevo.site)" }] }] },
        },
      },
    },
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "$(relevo.instance)-settings" }, data: { pool: "$(relevo.pool)" } },
  ],
};

export const NO_INCARNATION: Incarnation = {
  number: 0,
  podName: null,
  podUid: null,
  containerId: null,
  bootId: null,
  nodeName: null,
  nodeUid: null,
  host: null,
  port: null,
};

type Draft = Pick<KubeObjectDraft, "metadata"> & Readonly<Record<string, unknown>>;

export function create(kube: KubeApi, type: ResourceType, object: Draft): Promise<KubeObject> {
  const apiVersion = type.group === "" ? type.version : `${type.group}/${type.version}`;
  return kube.create(type, { apiVersion, kind: type.kind, ...object }, type.namespaced ? { namespace: "default" } : {});
}

export async function aNode(kube: KubeApi, name: string, spec: Readonly<Record<string, unknown>> = {}): Promise<KubeObject> {
  const claim = await create(kube, NODE_CLAIMS, { metadata: { name: `claim-${name}` }, spec: {} });
  const ownerReferences = [
    { apiVersion: "karpenter.sh/v1", kind: "NodeClaim", name: claim.metadata.name, uid: claim.metadata.uid, controller: true },
  ];
  await create(kube, NODES, { metadata: { name, ownerReferences }, spec });
  return kube.patchStatus({ type: NODES, name }, { status: { conditions: [{ type: "Ready", status: "True" }] } });
}

/** The objects that a create step and the cluster's controllers would have made of one instance, with its pod running. */
export async function aRunningInstance(
  { kube, instances }: World,
  nodeName: string,
): Promise<{ readonly objects: OwnedObject[]; readonly pod: KubeObject; readonly process: Process }> {
  const labels = { app: "orders", "relevo.dev/instance": INSTANCE };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "orders:1" }] } };
  const spec = { selector: { matchLabels: labels }, template };
  const annotations = { "relevo.dev/step": `create/${INSTANCE}` };
  const deployment = await create(kube, DEPLOYMENTS, { metadata: { name: INSTANCE, labels, annotations }, spec });
  const owner = (object: KubeObject) => [
    { apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name, uid: object.metadata.uid, controller: true },
  ];
  const replicaSet = await create(kube, REPLICA_SETS, {
    metadata: { name: `${INSTANCE}-rs`, labels, ownerReferences: owner(deployment) },
    spec,
  });
  const podSpec = { ...template.spec, nodeName };
  await create(kube, PODS, { metadata: { name: `${INSTANCE}-pod`, labels, ownerReferences: owner(replicaSet) }, spec: podSpec });
  const pod = await kube.patchStatus(
    { type: PODS, namespace: "default", name: `${INSTANCE}-pod` },
    {
      status: {
        phase: "Running",
        podIP: HOST,
        conditions: [{ type: "Ready", status: "True" }],
        containerStatuses: [
          { name: "main", image: "orders:1", imageID: "", ready: true, restartCount: 0, containerID: "test://1", state: { running: {} } },
        ],
      },
    },
  );
  instances.boot(HOST, "boot-1");
  const { name, uid } = pod.metadata;
  const object = (seen: KubeObject): OwnedObject => ({
    apiVersion: "apps/v1",
    kind: seen.kind,
    namespace: "default",
    name: seen.metadata.name,
    uid: seen.metadata.uid,
  });
  return {
    objects: [object(deployment)],
    pod,
    process: {
      pod: { namespace: "default", name, uid },
      containerId: "test://1",
      target: { host: HOST, port: 8080, bootId: "boot-1", protocol: "relevo/v1", healthPath: "/relevo/v1/health" },
    },
  };
}

/** A worker beside it, made by a workload of its own, with its pod running. */
export async function aRunningMember(
  { kube, instances }: World,
  nodeName: string,
): Promise<{ readonly object: OwnedObject; readonly pod: KubeObject; readonly containerId: string }> {
  const name = `${INSTANCE}-worker`;
  const labels = { app: "worker", "relevo.dev/instance": INSTANCE };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "worker:1" }] } };
  const spec = { selector: { matchLabels: labels }, template };
  const annotations = { "relevo.dev/step": `create/${INSTANCE}` };
  const deployment = await create(kube, DEPLOYMENTS, { metadata: { name, labels, annotations }, spec });
  const owner = (object: KubeObject) => [
    { apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name, uid: object.metadata.uid, controller: true },
  ];
  const replicaSet = await create(kube, REPLICA_SETS, {
    metadata: { name: `${name}-rs`, labels, ownerReferences: owner(deployment) },
    spec,
  });
  const podSpec = { ...template.spec, nodeName };
  await create(kube, PODS, { metadata: { name: `${name}-pod`, labels, ownerReferences: owner(replicaSet) }, spec: podSpec });
  const containerId = "test://worker-1";
  const status = {
    name: "main",
    image: "worker:1",
    imageID: "",
    ready: true,
    restartCount: 0,
    containerID: containerId,
    state: { running: {} },
  };
  const pod = await kube.patchStatus(
    { type: PODS, namespace: "default", name: `${name}-pod` },
    { status: { phase: "Running", podIP: MEMBER_HOST, conditions: [{ type: "Ready", status: "True" }], containerStatuses: [status] } },
  );
  instances.boot(MEMBER_HOST, "boot-worker");
  const object = { apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name, uid: deployment.metadata.uid };
  return { object, pod, containerId };
}

const PATH: readonly Phase[] = ["pending", "creating", "preparing", "validating", "admitted", "serving", "draining", "sealed"];

/** An instance of the pool that has come as far as `phase` (or failed), with what belongs to it. */
export async function storedInstance(
  store: Store,
  authority: Authority,
  now: number,
  phase: Phase,
  facts: InstanceFacts = {},
): Promise<void> {
  const changes: Change[] = [
    {
      kind: "create_instance",
      instance: { id: INSTANCE, ordinal: 0, purpose: "fill", replaces: null, blueprintHash: "hash", blueprint: BLUEPRINT },
    },
    { kind: "renew_incarnation", instance: INSTANCE, after: 0, incarnation: { ...NO_INCARNATION, number: 1 } },
  ];
  for (let at = 0; PATH[at] !== undefined && PATH[at] !== phase; at++) {
    const from = PATH[at] as Phase;
    const isLast = PATH[at + 1] === phase || (phase === "failed" && from === "creating");
    const to = isLast ? phase : (PATH[at + 1] as Phase);
    changes.push({ kind: "move_instance", instance: INSTANCE, from, to, ...(isLast ? { set: facts } : {}) });
    if (isLast) break;
  }
  await store.commit(authority, changes, now);
}

export async function recordOf(store: Store): Promise<InstanceRecord | undefined> {
  return (await store.readPool(POOL))?.instances.find(({ id }) => id === INSTANCE);
}
