import { expect, test } from "vitest";
import { PODS } from "../../kube/resources.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { aRunningMember, aWorld, INSTANCE, MEMBER_HOST } from "../testing/world.ts";
import { drainMember, type DrainMember } from "./drain-member.ts";

const POD = { type: PODS, namespace: "default", name: `${INSTANCE}-worker-pod` };

async function aMember() {
  const world = await aWorld();
  const { pod, containerId } = await aRunningMember(world, "a");
  world.effects.length = 0;
  const { name, uid } = pod.metadata;
  const process = { pod: { namespace: "default", name, uid }, containerId, target: { host: MEMBER_HOST, port: 8080 } };
  const payload = (how: DrainMember["how"]): DrainMember => ({ instance: INSTANCE, evidence: "e1", how, process });
  const ports = { kube: world.kube, driver: world.instances, step: { id: "drain-member/1" } };
  return { ...world, payload, ports };
}

test.for([
  ["reversible", "draining", "member_drains"],
  ["final", "shutting_down", "member_ends"],
] as const)("%s: told again it changes nothing, and what it says itself is the proof (I27)", async ([how, state, code]) => {
  const { payload, ports, instances, effects } = await aMember();

  expect(await drainMember.probe(payload(how), ports)).toEqual({ answer: "not" });
  expect(await drainMember.act(payload(how), ports)).toEqual({ state: "done", code });
  expect(await drainMember.act(payload(how), ports)).toEqual({ state: "done", code });
  expect(await drainMember.probe(payload(how), ports)).toEqual({ answer: "happened", code });
  expect(instances.memberCalls).toEqual([`${MEMBER_HOST} ${state}`]);
  expect(effects).toEqual([]);
});

test("a reversible drain is taken back; one that ends for good is not, and the step says so", async () => {
  const { payload, ports, instances } = await aMember();
  await drainMember.act(payload("reversible"), ports);

  expect(await drainMember.act(payload("back"), ports)).toEqual({ state: "done", code: "member_works" });
  expect(await drainMember.probe(payload("back"), ports)).toEqual({ answer: "happened", code: "member_works" });
  instances.memberStates.set(MEMBER_HOST, "shutting_down");
  expect(await drainMember.act(payload("back"), ports)).toEqual({ state: "superseded", code: "wrong_state" });
});

test("another process in its pod, or none, is not told: it may be another one's address by now", async () => {
  const { payload, ports, instances, kube } = await aMember();
  const container = {
    name: "main",
    image: "worker:1",
    imageID: "",
    ready: true,
    restartCount: 1,
    containerID: "test://worker-2",
    state: { running: {} },
  };
  await kube.patchStatus(POD, { status: { containerStatuses: [container] } });
  expect(await drainMember.act(payload("reversible"), ports)).toEqual({ state: "superseded", code: "process_replaced" });

  await kube.delete(POD, { gracePeriodSeconds: 0 });
  expect(await drainMember.act(payload("reversible"), ports)).toEqual({ state: "superseded", code: "pod_gone" });
  expect(instances.memberCalls).toEqual([]);
});

test("a member that gives no answer is no proof of anything; a refusal is told as it is", async () => {
  const { payload, ports } = await aMember();
  const silent = new RelevoError("instance_timeout", "no answer", { class: "retryable" });
  const driver = Object.assign(Object.create(ports.driver) as typeof ports.driver, { memberState: () => Promise.reject(silent) });
  expect(await drainMember.probe(payload("reversible"), { ...ports, driver })).toEqual({ answer: "not" });

  const forbidden = new RelevoError("trino_shutdown_forbidden", "The worker lets nobody change its state.");
  const strict = Object.assign(Object.create(ports.driver) as typeof ports.driver, { drainMember: () => Promise.reject(forbidden) });
  await expect(drainMember.act(payload("reversible"), { ...ports, driver: strict })).rejects.toBe(forbidden);
});
