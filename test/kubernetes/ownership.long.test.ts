/**
 * Whose a pod is, where real controllers make the pods: of Deployments and StatefulSets, by UID, whatever the labels say. No node is there: only objects matter.
 * Level: real API server, no nodes.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { protectPod } from "../../src/act/steps/protect-pod.ts";
import { unprotectPod } from "../../src/act/steps/unprotect-pod.ts";
import { ServiceDriver } from "../../src/drivers/service/service-driver.ts";
import { systemClock } from "../../src/kernel/system.ts";
import type { KubeObject, ResourceType } from "../../src/kube/api.ts";
import { DEPLOYMENTS, PODS, STATEFUL_SETS } from "../../src/kube/resources.ts";
import { PROTECTION_MARKS } from "../../src/model/marks.ts";
import type { OwnedObject } from "../../src/model/instance.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";

const WITHIN = { timeout: 45_000, interval: 200 };

let cluster: RealCluster;
beforeAll(async () => {
  cluster = await startKubernetes({ parts: ["controllers"] });
});
afterAll(() => cluster?.stop());

/** One pod each, labelled as the pods of an instance are. */
async function make(type: ResourceType, name: string): Promise<OwnedObject> {
  const labels = { app: name, "relevo.dev/instance": name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "none" }] } };
  const own = type.kind === "StatefulSet" ? { serviceName: name } : {};
  const spec = { replicas: 1, ...own, selector: { matchLabels: { app: name } }, template };
  const made = await cluster.api.create(
    type,
    { apiVersion: "apps/v1", kind: type.kind, metadata: { name }, spec },
    { namespace: "default" },
  );
  return { apiVersion: "apps/v1", kind: type.kind, namespace: "default", name, uid: made.metadata.uid };
}

async function podsOf(instance: string): Promise<readonly KubeObject[]> {
  const { items } = await cluster.api.list(PODS, { namespace: "default", labelSelector: `relevo.dev/instance=${instance}` });
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

async function onlyPodOf(instance: string): Promise<KubeObject> {
  await expect.poll(async () => (await podsOf(instance)).length, WITHIN).toBe(1);
  return (await podsOf(instance))[0] as KubeObject;
}

async function act(kind: typeof protectPod, pod: KubeObject, object: OwnedObject): Promise<string> {
  const { name, uid } = pod.metadata;
  const ports = { kube: cluster.api, driver: new ServiceDriver({ clock: systemClock }), step: { id: `protect/${uid}` } };
  return (await kind.act({ pod: { namespace: "default", name, uid }, objects: [object] }, ports)).code;
}
const protect = (pod: KubeObject, object: OwnedObject) => act(protectPod, pod, object);
const unprotect = (pod: KubeObject, object: OwnedObject) => act(unprotectPod, pod, object);

async function marksOf(pod: KubeObject): Promise<readonly string[]> {
  const { metadata } = await cluster.api.get({ type: PODS, namespace: "default", name: pod.metadata.name });
  return Object.keys(PROTECTION_MARKS).filter((mark) => metadata.annotations?.[mark] === PROTECTION_MARKS[mark]);
}

const BOTH = Object.keys(PROTECTION_MARKS);

test.each([DEPLOYMENTS, STATEFUL_SETS])(
  "the pod of a $kind is marked by its owners' UIDs; one that borrows its labels is not (D2)",
  async (type) => {
    const name = `ours-${type.plural}`;
    const object = await make(type, name);
    const pod = await onlyPodOf(name);
    const metadata = { name: `stranger-${type.plural}`, labels: { "relevo.dev/instance": name } };
    const spec = { containers: [{ name: "main", image: "none" }] };
    const stranger = await cluster.api.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec }, { namespace: "default" });

    expect([await protect(pod, object), await protect(stranger, object)]).toEqual(["protected", "owner_not_ours"]);
    expect([await marksOf(pod), await marksOf(stranger)]).toEqual([BOTH, []]);
    expect(await protect(pod, object)).toBe("already_protected");
  },
);

test.each([DEPLOYMENTS, STATEFUL_SETS])(
  "a pod that its $kind let go, because its labels were changed, is not ours any more, and loses our marks (D2)",
  async (type) => {
    const name = `let-go-${type.plural}`;
    const object = await make(type, name);
    const pod = await onlyPodOf(name);
    expect([await protect(pod, object), await unprotect(pod, object), await marksOf(pod)]).toEqual(["protected", "owner_ours", BOTH]);
    await cluster.kubectl("label", "pod", pod.metadata.name, "app=taken", "--overwrite");
    const read = () => cluster.api.get({ type: PODS, namespace: "default", name: pod.metadata.name });
    await expect.poll(async () => (await read()).metadata.ownerReferences ?? [], WITHIN).toEqual([]);

    expect([await unprotect(await read(), object), await marksOf(pod)]).toEqual(["unprotected", []]);
    expect([await protect(await read(), object), await marksOf(pod)]).toEqual(["owner_not_ours", []]);
  },
);

test.each([DEPLOYMENTS, STATEFUL_SETS])(
  "a $kind that was made anew under the same name takes over the pod, which is not ours by that name (D2)",
  async (type) => {
    const name = `anew-${type.plural}`;
    const before = await make(type, name);
    const pod = await onlyPodOf(name);
    await cluster.kubectl("delete", type.plural, name, "--cascade=orphan");
    const now = await make(type, name);
    const read = () => cluster.api.get({ type: PODS, namespace: "default", name: pod.metadata.name });
    // Another's: of the new set, or of the ReplicaSet that the new Deployment took over.
    await expect.poll(async () => protect(await read(), now), WITHIN).toBe("protected");

    expect([await unprotect(await read(), now), await unprotect(await read(), before)]).toEqual(["owner_ours", "unprotected"]);
    expect(await protect(await read(), before)).toBe("owner_not_ours");
    expect(await marksOf(pod)).toEqual([]);
  },
);
