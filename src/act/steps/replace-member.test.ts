import { expect, test } from "vitest";
import { DEPLOYMENTS, PODS } from "../../kube/resources.ts";
import { aRunningInstance, aRunningMember, aWorld, INSTANCE } from "../testing/world.ts";
import { replaceMember, type ReplaceMember } from "./replace-member.ts";

const POD = { type: PODS, namespace: "default", name: `${INSTANCE}-worker-pod` };

async function aMember() {
  const world = await aWorld();
  const lead = await aRunningInstance(world, "a");
  const { pod, object } = await aRunningMember(world, "b");
  world.effects.length = 0;
  const { name, uid } = pod.metadata;
  const payload: ReplaceMember = {
    instance: INSTANCE,
    evidence: "e1",
    pod: { namespace: "default", name, uid },
    objects: [...lead.objects, object],
  };
  return { ...world, lead, payload, ports: { kube: world.kube, driver: world.instances, step: { id: `replace-member/${uid}` } } };
}

test("the pod goes under its UID, once, and its absence is the proof (I8, I27)", async () => {
  const { payload, ports, effects } = await aMember();

  expect(await replaceMember.probe(payload, ports)).toEqual({ answer: "not" });
  expect(await replaceMember.act(payload, ports)).toEqual({ state: "done", code: "member_deleted" });
  expect(await replaceMember.probe(payload, ports)).toEqual({ answer: "happened", code: "member_deleted" });
  expect((await replaceMember.act(payload, ports)).state).toBe("superseded");
  expect(effects).toEqual([`delete pods/${POD.name}`]);
});

test("another pod of that name is left alone (I8)", async () => {
  const { payload, ports, effects } = await aMember();
  const other = { ...payload, pod: { ...payload.pod, uid: "of-before" } };

  expect(await replaceMember.act(other, ports)).toEqual({ state: "superseded", code: "pod_replaced" });
  expect(await replaceMember.probe(other, ports)).toEqual({ answer: "happened", code: "member_deleted" });
  expect(effects).toEqual([]);
});

test("a pod that nobody of ours made is left alone, and so is one whose workload is another by now (D2)", async () => {
  const { payload, ports, kube, effects } = await aMember();
  const foreign = payload.objects.map((object) => ({ ...object, uid: `${object.uid}-before` }));
  expect(await replaceMember.act({ ...payload, objects: foreign }, ports)).toEqual({ state: "superseded", code: "owner_not_ours" });

  await kube.delete({ type: DEPLOYMENTS, namespace: "default", name: `${INSTANCE}-worker` });
  effects.length = 0;
  expect((await replaceMember.act(payload, ports)).state).toBe("superseded");
  expect(effects).toEqual([]);
});

test("the lead is never a member: its pod is the instance", async () => {
  const { payload, ports, lead, effects } = await aMember();
  const { name, uid } = lead.pod.metadata;

  expect(await replaceMember.act({ ...payload, pod: { namespace: "default", name, uid } }, ports)).toEqual({
    state: "failed",
    code: "is_lead",
  });
  expect(effects).toEqual([]);
});
