import { expect, test } from "vitest";
import { reason } from "../model/reasons.ts";
import type { Effect } from "../plan/decision.ts";
import { draftStep, draftUncordon } from "./draft-step.ts";
import { STEP_KINDS } from "./registry.ts";
import { attemptOf, isAttemptOf, withAttempt } from "./step-id.ts";
import { aSnapshot, INCARNATION } from "./testing/snapshot.ts";
import { BLUEPRINT, INSTANCE, POOL } from "./testing/world.ts";

const WHY = reason("created");
const OBJECTS = [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: INSTANCE, uid: "deployment-uid" }];
const PROCESS = {
  pod: { namespace: "default", name: "pod-1", uid: "pod-uid" },
  containerId: "test://1",
  target: { host: "127.1.0.1", port: 8080, bootId: "boot-1", protocol: "relevo/v1", healthPath: "/relevo/v1/health" },
};
const COMMON = { operation: `instance/${INSTANCE}`, pool: POOL, instance: INSTANCE, reason: WHY };

test("an admission names the very process, and the node of a candidate (D7, D13)", () => {
  const effect: Effect = { kind: "admit_instance", instance: INSTANCE, incarnation: 1, reason: WHY };

  expect(draftStep(effect, aSnapshot(), undefined)).toEqual({
    ...COMMON,
    id: `admit/${INSTANCE}/1`,
    kind: "admit_instance/1",
    payload: { instance: INSTANCE, incarnation: 1, from: "validating", process: PROCESS, node: { name: "a", uid: "node-uid" } },
  });
});

test("a later process of an instance comes back to its node, whatever is held against that (D10)", () => {
  const effect: Effect = { kind: "admit_instance", instance: INSTANCE, incarnation: 2, reason: WHY };
  const snapshot = aSnapshot({ incarnation: { ...INCARNATION, number: 2 } });

  expect(draftStep(effect, snapshot, undefined)).toMatchObject({ id: `admit/${INSTANCE}/2`, payload: { incarnation: 2, node: null } });
});

test("a boot id that only the health check knows yet goes with the admission", () => {
  const effect: Effect = { kind: "admit_instance", instance: INSTANCE, incarnation: 1, reason: WHY };
  const snapshot = aSnapshot(
    { incarnation: { ...INCARNATION, bootId: null } },
    { health: { state: "passing", since: 0, bootId: "boot-9" } },
  );

  expect(draftStep(effect, snapshot, undefined)).toMatchObject({ payload: { process: { target: { bootId: "boot-9" } } } });
});

test("a drain goes from where the instance stands; each class of loss and each deadline is a step of its own", () => {
  const drain = (loss: "voluntary" | "deadline", deadline: number | null): Effect => ({
    kind: "drain_instance",
    instance: INSTANCE,
    incarnation: 1,
    loss,
    deadline,
    reason: WHY,
  });

  expect(draftStep(drain("voluntary", null), aSnapshot({ phase: "serving" }), undefined)).toEqual({
    ...COMMON,
    id: `drain/${INSTANCE}/1/voluntary`,
    kind: "drain_instance/1",
    payload: { instance: INSTANCE, incarnation: 1, from: "serving", loss: "voluntary", deadline: null, process: PROCESS },
  });
  expect(draftStep(drain("deadline", 77), aSnapshot({ phase: "draining" }), undefined)).toMatchObject({
    id: `drain/${INSTANCE}/1/deadline/77`,
    payload: { from: "draining", loss: "deadline", deadline: 77 },
  });
});

test("a create holds what it makes, rendered, without the step's mark", () => {
  const effect: Effect = { kind: "create_instance", instance: INSTANCE, reason: WHY };

  const draft = draftStep(effect, aSnapshot({ phase: "pending", replaces: "orders-old" }), BLUEPRINT);

  expect(draft).toMatchObject({ id: `create/${INSTANCE}`, operation: "replace/orders-old", kind: "create_instance/1" });
  expect(draft.payload).toMatchObject({ instance: INSTANCE, namespace: "default", createdBy: `create/${INSTANCE}` });
  expect(JSON.stringify(draft.payload)).toContain('"value":"north"');
  expect(JSON.stringify(draft.payload)).not.toContain("$(relevo");
});

test("cordon, protection and deletion name objects by UID", () => {
  const snapshot = aSnapshot({ phase: "sealed" });
  const node = { name: "a", uid: "node-uid" };

  expect(draftStep({ kind: "cordon_node", instance: INSTANCE, node, evidence: "evidence-1", reason: WHY }, snapshot, undefined)).toEqual({
    ...COMMON,
    id: "cordon/node-uid/evidence-1",
    kind: "cordon_node/1",
    payload: { node, evidence: "evidence-1" },
  });
  expect(
    draftStep({ kind: "protect_pod", instance: INSTANCE, pod: { name: "pod-1", uid: "pod-uid" }, reason: WHY }, snapshot, undefined),
  ).toEqual({
    ...COMMON,
    id: "protect/pod-uid",
    kind: "protect_pod/1",
    payload: { pod: { namespace: "default", name: "pod-1", uid: "pod-uid" }, objects: OBJECTS },
  });
  expect(draftStep({ kind: "delete_instance", instance: INSTANCE, reason: WHY }, snapshot, undefined)).toEqual({
    ...COMMON,
    id: `delete/${INSTANCE}`,
    kind: "delete_instance/1",
    payload: { instance: INSTANCE, namespace: "default", from: "sealed", objects: OBJECTS, createdBy: `create/${INSTANCE}` },
  });
});

test("a door is shut under the loss of the drain", () => {
  const effect: Effect = { kind: "close_instance", instance: INSTANCE, incarnation: 1, reason: WHY };

  expect(draftStep(effect, aSnapshot({ phase: "draining", drainLoss: "deadline" }), undefined)).toEqual({
    ...COMMON,
    id: `close/${INSTANCE}/1`,
    kind: "close_instance/1",
    payload: { instance: INSTANCE, incarnation: 1, loss: "deadline", process: PROCESS },
  });
});

test("every draft is what its kind takes", () => {
  const drafts = [
    draftStep({ kind: "create_instance", instance: INSTANCE, reason: WHY }, aSnapshot({ phase: "pending" }), BLUEPRINT),
    draftStep({ kind: "admit_instance", instance: INSTANCE, incarnation: 1, reason: WHY }, aSnapshot(), undefined),
    draftStep(
      { kind: "drain_instance", instance: INSTANCE, incarnation: 1, loss: "forced", deadline: null, reason: WHY },
      aSnapshot({ phase: "serving" }),
      undefined,
    ),
    draftStep({ kind: "delete_instance", instance: INSTANCE, reason: WHY }, aSnapshot({ phase: "failed" }), undefined),
    draftUncordon({ pool: POOL, node: { name: "a", uid: "u" }, cordonedBy: "cordon/u/e#2", by: "ops" }),
  ];

  for (const { kind, payload } of drafts) expect(STEP_KINDS.get(kind)?.bind(payload).kind).toBe(kind);
});

test("what the snapshot does not allow is a fault of the planner and is refused", () => {
  expect(() => draftStep({ kind: "delete_instance", instance: INSTANCE, reason: WHY }, aSnapshot({ phase: "serving" }), undefined)).toThrow(
    "its phase is serving",
  );
  expect(() => draftStep({ kind: "delete_instance", instance: "other", reason: WHY }, aSnapshot(), undefined)).toThrow("no such instance");
  expect(() =>
    draftStep(
      { kind: "admit_instance", instance: INSTANCE, incarnation: 1, reason: WHY },
      aSnapshot({ incarnation: { ...INCARNATION, host: null } }),
      undefined,
    ),
  ).toThrow("no process of it was seen");
});

test("attempts are counted behind the base, also where the base names another step's attempt", () => {
  const { id } = draftUncordon({ pool: POOL, node: { name: "a", uid: "u" }, cordonedBy: "cordon/u/e#2", by: "ops" });

  expect(id).toBe("uncordon/u/cordon/u/e.2");
  expect([withAttempt(id, 1), withAttempt(id, 3)]).toEqual([id, `${id}#3`]);
  expect([attemptOf(id, id), attemptOf(id, `${id}#3`), attemptOf("create/a", "create/ab"), attemptOf("create/a", "create/a#x")]).toEqual([
    1,
    3,
    undefined,
    undefined,
  ]);
  expect([isAttemptOf("create/a", "create/a#2"), isAttemptOf("create/a", undefined)]).toEqual([true, false]);
});
