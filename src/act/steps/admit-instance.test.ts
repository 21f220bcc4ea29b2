import { expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { KubeApiError } from "../../kube/api.ts";
import { NODE_CLAIMS, NODES, PODS } from "../../kube/resources.ts";
import { faulty } from "../testing/fuse.ts";
import { aNode, aRunningInstance, aWorld, HOST, INSTANCE } from "../testing/world.ts";
import { type AdmitInstance, admitInstance } from "./admit-instance.ts";

const STEP = { id: `admit/${INSTANCE}/1` };
const POD = { type: PODS, namespace: "default", name: `${INSTANCE}-pod` };
const ADMITTED = { state: "done", code: "admitted", result: { bootId: "boot-1" } };

async function anAdmission() {
  const world = await aWorld();
  const node = await aNode(world.kube, "a");
  const { process } = await aRunningInstance(world, "a");
  const payload: AdmitInstance = {
    instance: INSTANCE,
    incarnation: 1,
    from: "validating",
    process,
    node: { name: "a", uid: node.metadata.uid },
  };
  const ports = { kube: world.kube, driver: world.instances, step: STEP };
  return { world, payload, ports };
}

test("the very process is told and keeps which step admitted it; the move compares phase and incarnation (D13)", async () => {
  const { world, payload, ports } = await anAdmission();

  expect(await admitInstance.probe(payload, ports)).toEqual({ answer: "not" });
  const outcome = await admitInstance.act(payload, ports);

  expect(outcome).toEqual(ADMITTED);
  expect(world.instances.processes.get(HOST)).toMatchObject({ state: "admitted", admittedBy: STEP.id });
  expect(await admitInstance.probe(payload, ports)).toEqual({ answer: "happened", code: "admitted", result: { bootId: "boot-1" } });
  expect(admitInstance.settle(payload, outcome)).toEqual([
    { kind: "move_instance", instance: INSTANCE, incarnation: 1, from: "validating", to: "admitted", set: { bootId: "boot-1" } },
  ]);
});

test("a lost reply is replayed exactly: the process is admitted once (D13)", async () => {
  const { world, payload, ports } = await anAdmission();
  const driver = faulty(world.instances, ({ method, number }) =>
    method === "admit" && number === 1
      ? { error: new RelevoError("instance_connection_lost", "lost", { class: "retryable" }), side: "after" }
      : undefined,
  );

  await expect(admitInstance.act(payload, { ...ports, driver })).rejects.toThrow("lost");
  expect(await admitInstance.act(payload, { ...ports, driver })).toEqual(ADMITTED);
  expect(world.instances.processes.get(HOST)?.performed).toEqual([`prepare ${STEP.id}/prepare`, `admit ${STEP.id}`]);
});

test("another process behind the same address is not admitted (D13)", async () => {
  const { world, payload, ports } = await anAdmission();
  const other = world.instances.boot(HOST, "boot-2");

  expect(await admitInstance.act(payload, ports)).toEqual({ state: "superseded", code: "process_replaced" });
  expect(await admitInstance.probe(payload, ports)).toEqual({ answer: "not" });
  expect(other.performed).toEqual([]);
});

test("a boot id that was not known yet is read first, and the admission is bound to it", async () => {
  const { payload, ports } = await anAdmission();
  const unknown = { ...payload, process: { ...payload.process, target: { ...payload.process.target, bootId: null } } };

  expect(await admitInstance.act(unknown, ports)).toEqual(ADMITTED);
});

test("an instance without the protocol is admitted by its container id alone", async () => {
  const { world, payload, ports } = await anAdmission();
  const plain = {
    ...payload,
    process: { ...payload.process, target: { ...payload.process.target, bootId: null, protocol: "none" as const } },
  };

  expect(await admitInstance.probe(plain, ports)).toEqual({ answer: "not" });
  expect(await admitInstance.act(plain, ports)).toEqual({ state: "done", code: "admitted", result: { bootId: null } });
  expect(world.instances.processes.get(HOST)?.performed).toEqual([]);
});

test("an instance that drains already is not admitted any more", async () => {
  const { world, payload, ports } = await anAdmission();
  world.instances.boot(HOST, "boot-1").state = "draining";

  expect(await admitInstance.act(payload, ports)).toEqual({ state: "superseded", code: "wrong_state" });
});

test.each([
  ["is not ready", { status: { conditions: [{ type: "Ready", status: "False" }] } }, "pod_not_ready"],
  [
    "runs another container",
    { status: { containerStatuses: [{ name: "main", image: "x", imageID: "", ready: true, restartCount: 1, containerID: "test://2" }] } },
    "process_replaced",
  ],
  [
    "has ended",
    {
      status: {
        containerStatuses: [
          {
            name: "main",
            image: "x",
            imageID: "",
            ready: false,
            restartCount: 0,
            containerID: "test://1",
            state: { terminated: { exitCode: 1 } },
          },
        ],
      },
    },
    "process_ended",
  ],
])("a pod that %s is not admitted (D13)", async (_, status, code) => {
  const { world, payload, ports } = await anAdmission();
  await world.kube.patchStatus(POD, status);

  expect(await admitInstance.act(payload, ports)).toEqual({ state: "superseded", code });
});

test("a pod that goes, or another of its name, is not admitted", async () => {
  const { world, payload, ports } = await anAdmission();
  const replaced = { ...payload, process: { ...payload.process, pod: { ...payload.process.pod, uid: "another" } } };
  expect(await admitInstance.act(replaced, ports)).toEqual({ state: "superseded", code: "pod_replaced" });

  await world.kube.delete(POD);
  expect((await admitInstance.act(payload, ports)).code).toMatch(/^pod_(deleting|gone)$/);
});

test.each([
  ["is cordoned", "node_unschedulable", { spec: { unschedulable: true } }],
  ["has another UID", "node_replaced", {}],
])("a candidate on a node that %s is not admitted (D7)", async (_, code, change) => {
  const { world, payload, ports } = await anAdmission();
  await world.kube.patch({ type: NODES, name: "a" }, change);
  const node = code === "node_replaced" ? { name: "a", uid: "another" } : payload.node;

  expect(await admitInstance.act({ ...payload, node }, ports)).toEqual({ state: "superseded", code });
});

test("a candidate on a node that is not ready, or whose NodeClaim drifts, is not admitted (D7)", async () => {
  const { world, payload, ports } = await anAdmission();
  await world.kube.patchStatus({ type: NODE_CLAIMS, name: "claim-a" }, { status: { conditions: [{ type: "Drifted", status: "True" }] } });
  expect(await admitInstance.act(payload, ports)).toEqual({ state: "superseded", code: "node_drifting" });

  await world.kube.patchStatus({ type: NODES, name: "a" }, { status: { conditions: [{ type: "Ready", status: "Unknown" }] } });
  expect(await admitInstance.act(payload, ports)).toEqual({ state: "superseded", code: "node_not_ready" });
});

test("one whose node was judged already comes back to it (D10)", async () => {
  const { world, payload, ports } = await anAdmission();
  await world.kube.patchStatus({ type: NODE_CLAIMS, name: "claim-a" }, { status: { conditions: [{ type: "Drifted", status: "True" }] } });

  expect(await admitInstance.act({ ...payload, node: null }, ports)).toEqual(ADMITTED);
});

test("a NodeClaim that may not be read does not stand in the way of a recovery (D12)", async () => {
  const { world, payload, ports } = await anAdmission();
  const forbidden = new KubeApiError({ code: 403, reason: "Forbidden" }, "nodeclaims");
  const kube = faulty(world.kube, ({ method, input: [ref] }) =>
    method === "get" && (ref as { type: unknown }).type === NODE_CLAIMS ? { error: forbidden, side: "before" } : undefined,
  );

  expect(await admitInstance.act(payload, { ...ports, kube })).toEqual(ADMITTED);
});

test("an admission by another step proves nothing about this one", async () => {
  const { payload, ports } = await anAdmission();
  await admitInstance.act(payload, { ...ports, step: { id: `admit/${INSTANCE}/1#2` } });

  expect(await admitInstance.probe(payload, ports)).toEqual({ answer: "not" });
});

test("a process that hangs and is not ready any more is given up, not asked for ever", async () => {
  const { world, payload, ports } = await anAdmission();
  world.instances.processes.clear();
  await expect(admitInstance.probe(payload, ports)).rejects.toMatchObject({ code: "instance_unreachable" });

  await world.kube.patchStatus(POD, { status: { conditions: [{ type: "Ready", status: "False" }] } });

  expect(await admitInstance.probe(payload, ports)).toEqual({ answer: "not" });
  expect(await admitInstance.act(payload, ports)).toEqual({ state: "superseded", code: "pod_not_ready" });
});

test("a process that is prepared and not well is not admitted (I11)", async () => {
  const { world, payload, ports } = await anAdmission();
  const process = world.instances.boot(HOST, "boot-1");
  process.isWell = false;

  expect(await admitInstance.act(payload, ports)).toEqual({ state: "superseded", code: "not_healthy" });
  expect(process).toMatchObject({ admittedBy: null, performed: [`prepare ${STEP.id}/prepare`] });
});

const ACCESS = {
  url: "http://127.0.0.1:7070/v1/leases/renew",
  token: "secret of the test",
  pool: "default/orders",
  instance: INSTANCE,
  ttlMs: 10_000,
};

test("with a writer lease the very process that is admitted is told how to renew it; the secret is in no payload and no result", async () => {
  const { world, payload, ports } = await anAdmission();
  const told: unknown[] = [];
  const driver = new Proxy(world.instances, {
    get: (target, name) =>
      name === "admit"
        ? (...call: Parameters<typeof target.admit>) => {
            told.push(call[1]);
            return target.admit(...call);
          }
        : Reflect.get(target, name).bind(target),
  });
  const asked: unknown[] = [];
  const leases = {
    accessFor: (...subject: readonly unknown[]) => {
      asked.push(subject);
      return ACCESS;
    },
  };
  const leased = { ...payload, lease: { pool: "default/orders", ttlMs: 10_000 } };

  const outcome = await admitInstance.act(leased, { ...ports, driver, leases });

  expect(outcome).toEqual(ADMITTED);
  expect(asked).toEqual([["default/orders", INSTANCE, "boot-1", 10_000]]);
  expect(told).toEqual([{ step: STEP.id, bootId: "boot-1", deadline: null, lease: ACCESS }]);
  expect(JSON.stringify([leased, outcome, admitInstance.settle(leased, outcome)])).not.toContain(ACCESS.token);

  expect(await admitInstance.act(payload, { ...ports, driver, leases })).toEqual(ADMITTED);
  expect(told.at(-1), "a pool without a lease hands out none").toEqual({ step: STEP.id, bootId: "boot-1", deadline: null });
});
