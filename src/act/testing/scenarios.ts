/** One decision of each kind in a world of its own, and what counts at its end. */
import { DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, NODES, PODS } from "../../kube/resources.ts";
import type { InstanceRecord } from "../../model/instance.ts";
import { ANNOTATIONS, PROTECTION_MARKS } from "../../model/marks.ts";
import { reason } from "../../model/reasons.ts";
import type { StepDraft } from "../../model/step.ts";
import { renderBlueprint } from "../render-blueprint.ts";
import { makeHpa, makeWeb, withAutoscalers } from "./autoscalers.ts";
import {
  aNode,
  aRunningInstance,
  aRunningMember,
  BLUEPRINT,
  HOST,
  INSTANCE,
  MEMBER_HOST,
  POOL,
  recordOf,
  storedInstance,
  type World,
} from "./world.ts";

export interface Scenario {
  /** Sets the world up and says what is decided, as long as `record` is as it is. */
  prepare(world: World): Promise<Decide>;
  /** What counts, at the end. */
  picture(world: World): Promise<unknown>;
}

export type Decide = (record: InstanceRecord | undefined) => StepDraft | undefined;

/** The end of a run, whole and comparable. */
export async function pictureOf(
  { picture }: Scenario,
  world: World,
): Promise<{ readonly steps: readonly string[]; readonly effects: readonly string[]; readonly own: unknown }> {
  const steps = await world.store.listSteps(POOL, 100);
  return {
    steps: steps.map(({ id, state, outcome }) => `${id} ${state} ${outcome}`),
    effects: [...world.effects].toSorted(),
    own: await picture(world),
  };
}

const draft = (id: string, kind: string, payload: unknown): StepDraft => ({
  id,
  operation: "op",
  pool: POOL,
  instance: INSTANCE,
  kind,
  payload,
  reason: reason("created"),
});

async function claimed(world: World) {
  return world.store.claim(POOL, "before", world.clock.now());
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  create: {
    async prepare(world) {
      await storedInstance(world.store, await claimed(world), 0, "pending");
      const createdBy = `create/${INSTANCE}`;
      const objects = renderBlueprint(BLUEPRINT, { instance: INSTANCE, pool: "orders", site: "local", namespace: "default" });
      return (record) =>
        record?.phase === "pending"
          ? draft(createdBy, "create_instance/1", { instance: INSTANCE, namespace: "default", createdBy, objects })
          : undefined;
    },
    async picture({ store }) {
      const record = await recordOf(store);
      return { phase: record?.phase, objects: record?.objects.map(({ kind, name }) => `${kind} ${name}`) };
    },
  },
  cordon: {
    async prepare(world) {
      await claimed(world);
      const { uid } = (await aNode(world.kube, "a")).metadata;
      return () => draft(`cordon/${uid}/e1`, "cordon_node/1", { node: { name: "a", uid }, evidence: "e1" });
    },
    async picture({ kube }) {
      const node = await kube.get({ type: NODES, name: "a" });
      return { spec: node["spec"], by: node.metadata.annotations?.[ANNOTATIONS.cordonedBy] };
    },
  },
  protect: {
    async prepare(world) {
      await claimed(world);
      const { pod, objects } = await aRunningInstance(world, "a");
      const { name, uid } = pod.metadata;
      return () => draft(`protect/${uid}`, "protect_pod/1", { pod: { namespace: "default", name, uid }, objects });
    },
    picture: async () => null,
  },
  unprotect: {
    async prepare(world) {
      await claimed(world);
      const { pod, objects } = await aRunningInstance(world, "a");
      const { name, uid } = pod.metadata;
      const annotations = {
        ...PROTECTION_MARKS,
        [ANNOTATIONS.protectedBy]: JSON.stringify({ step: "protect/x", set: Object.keys(PROTECTION_MARKS) }),
      };
      await world.kube.patch({ type: PODS, namespace: "default", name }, { metadata: { ownerReferences: null, annotations } });
      return () => draft(`unprotect/${uid}`, "unprotect_pod/1", { pod: { namespace: "default", name, uid }, objects });
    },
    async picture({ kube }) {
      return (await kube.get({ type: PODS, namespace: "default", name: `${INSTANCE}-pod` })).metadata.annotations;
    },
  },
  standby: {
    async prepare(world) {
      const { process } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "validating");
      const payload = { instance: INSTANCE, incarnation: 1, process };
      return (record) => (record?.phase === "validating" ? draft(`prepare/${INSTANCE}/1`, "prepare_instance/1", payload) : undefined);
    },
    async picture({ store, instances }) {
      const record = await recordOf(store);
      const { performed, state } = instances.processes.get(HOST) ?? {};
      return { phase: record?.phase, performed, state };
    },
  },
  admit: {
    async prepare(world) {
      const node = await aNode(world.kube, "a");
      const { process } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "validating");
      const payload = { instance: INSTANCE, incarnation: 1, from: "validating", process, node: { name: "a", uid: node.metadata.uid } };
      return (record) => (record?.phase === "validating" ? draft(`admit/${INSTANCE}/1`, "admit_instance/1", payload) : undefined);
    },
    async picture({ store, instances }) {
      const record = await recordOf(store);
      const { performed, state } = instances.processes.get(HOST) ?? {};
      return { phase: record?.phase, bootId: record?.incarnation.bootId, performed, state };
    },
  },
  drain: {
    async prepare(world) {
      const { process } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "serving");
      const payload = { instance: INSTANCE, incarnation: 1, from: "serving", loss: "deadline", deadline: 1e15, process };
      return (record) =>
        record?.phase === "serving" ? draft(`drain/${INSTANCE}/1/deadline/1e15`, "drain_instance/1", payload) : undefined;
    },
    async picture({ store, instances }) {
      const record = await recordOf(store);
      const { performed, state, deadline } = instances.processes.get(HOST) ?? {};
      return { phase: record?.phase, loss: record?.drainLoss, generation: record?.drainGeneration, performed, state, deadline };
    },
  },
  close: {
    async prepare(world) {
      const { process } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "draining", { drainLoss: "voluntary" });
      const payload = { instance: INSTANCE, incarnation: 1, loss: "voluntary", process };
      return (record) => (record?.phase === "draining" ? draft(`close/${INSTANCE}/1`, "close_instance/1", payload) : undefined);
    },
    async picture({ store, instances }) {
      const record = await recordOf(store);
      return {
        phase: record?.phase,
        seal: record?.seal,
        performed: instances.processes.get(HOST)?.performed,
        losses: await store.countLosses(POOL),
      };
    },
  },
  drain_member: {
    async prepare(world) {
      await claimed(world);
      const { pod, containerId } = await aRunningMember(world, "a");
      const { name, uid } = pod.metadata;
      const target = { host: MEMBER_HOST, port: 8080, trino: { user: "relevo", workers: 1 } };
      const process = { pod: { namespace: "default", name, uid }, containerId, target };
      const payload = { instance: INSTANCE, evidence: "e1", how: "reversible", process };
      return () => draft(`drain-member/${uid}/reversible/1`, "drain_member/1", payload);
    },
    picture: async ({ instances }) => instances.memberCalls,
  },
  replace_member: {
    async prepare(world) {
      await claimed(world);
      const { objects } = await aRunningInstance(world, "a");
      const { pod, object } = await aRunningMember(world, "b");
      const { name, uid } = pod.metadata;
      const payload = { instance: INSTANCE, evidence: "e1", pod: { namespace: "default", name, uid }, objects: [...objects, object] };
      return () => draft(`replace-member/${uid}`, "replace_member/1", payload);
    },
    async picture({ kube }) {
      const { items } = await kube.list(PODS, { namespace: "default" });
      return items.map(({ metadata }) => `${metadata.name}${metadata.deletionTimestamp === undefined ? "" : " ends"}`);
    },
  },
  delete: {
    async prepare(world) {
      const { objects } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "sealed", { seal: "confirmed" });
      const payload = { instance: INSTANCE, namespace: "default", from: "sealed", objects, createdBy: `create/${INSTANCE}` };
      return (record) => (record?.phase === "sealed" ? draft(`delete/${INSTANCE}`, "delete_instance/1", payload) : undefined);
    },
    async picture({ store }) {
      return { phase: (await recordOf(store))?.phase };
    },
  },
  stranger: {
    async prepare(world) {
      await claimed(world);
      const { objects } = await aRunningInstance(world, "a");
      const payload = { instance: INSTANCE, namespace: "default", objects, createdBy: `create/${INSTANCE}` };
      return () => ({ ...draft(`delete-stranger/${INSTANCE}`, "delete_stranger/1", payload), instance: null });
    },
    async picture({ kube }) {
      return (await kube.list(DEPLOYMENTS, { namespace: "default" })).items.length;
    },
  },
  scale: {
    async prepare(world) {
      await claimed(world);
      await withAutoscalers(world.kube);
      const { uid } = (await makeWeb(world.kube)).metadata;
      const payload = { target: { kind: "Deployment", namespace: "default", name: "web", uid }, from: 3, to: 5, managers: [] };
      return () => ({ ...draft(`scale/${uid}/1/3-5`, "scale_target/1", payload), instance: null });
    },
    async picture({ kube }) {
      return (await kube.get({ type: DEPLOYMENTS, namespace: "default", name: "web" }))["spec"];
    },
  },
  remove_owner: {
    async prepare(world) {
      await claimed(world);
      await withAutoscalers(world.kube);
      const web = (await makeWeb(world.kube)).metadata;
      const { uid } = (await makeHpa(world.kube)).metadata;
      const target = { kind: "Deployment", namespace: "default", name: "web", uid: web.uid };
      const payload = { kind: "HorizontalPodAutoscaler", name: "web", uid, target };
      return () => ({ ...draft(`remove-owner/${uid}`, "remove_scale_owner/1", payload), instance: null });
    },
    async picture({ kube }) {
      return (await kube.list(HORIZONTAL_POD_AUTOSCALERS, { namespace: "default" })).items.length;
    },
  },
  uncordon: {
    async prepare(world) {
      await claimed(world);
      const { uid } = (await aNode(world.kube, "a", { unschedulable: true })).metadata;
      await world.kube.patch({ type: NODES, name: "a" }, { metadata: { annotations: { [ANNOTATIONS.cordonedBy]: "mark" } } });
      return () => draft(`uncordon/${uid}/mark`, "uncordon_node/1", { node: { name: "a", uid }, cordonedBy: "mark" });
    },
    async picture({ kube }) {
      const node = await kube.get({ type: NODES, name: "a" });
      return { spec: node["spec"], annotations: node.metadata.annotations };
    },
  },
};
