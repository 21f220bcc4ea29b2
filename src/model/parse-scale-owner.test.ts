import { expect, test } from "vitest";
import { autoscalerOf, replicaManagersOf, targetObjectOf } from "./parse-scale-owner.ts";
import { deedOf, roleOf } from "./scale-owner.ts";

const metadata = { name: "web", namespace: "shop", uid: "u1" };
const hpa = (spec: object, more: object = {}) => ({ kind: "HorizontalPodAutoscaler", metadata: { ...metadata, ...more }, spec });
const scaled = (spec: object, more: object = {}) => ({ kind: "ScaledObject", metadata: { ...metadata, ...more }, spec });
const REF = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
const TARGET = { namespace: "shop", kind: "Deployment", name: "web" };

test("an HPA with what it keeps the count between, and the ScaledObject that makes it again (K3)", () => {
  expect(autoscalerOf(hpa({ scaleTargetRef: REF, maxReplicas: 9 }))).toEqual({
    target: TARGET,
    owner: { kind: "HorizontalPodAutoscaler", name: "web", uid: "u1", min: 1, max: 9, madeBy: null },
  });
  const ownerReferences = [{ apiVersion: "keda.sh/v1alpha1", kind: "ScaledObject", name: "web", uid: "s1" }];
  expect(autoscalerOf(hpa({ scaleTargetRef: REF, minReplicas: 2, maxReplicas: 9 }, { ownerReferences }))?.owner).toMatchObject({
    min: 2,
    madeBy: "web",
  });
});

test("a ScaledObject scales a Deployment unless it says otherwise, between 0 and 100 (K3)", () => {
  expect(autoscalerOf(scaled({ scaleTargetRef: { name: "web" }, triggers: [{ type: "redis" }, { type: "cron" }] }))).toEqual({
    target: TARGET,
    owner: { kind: "ScaledObject", name: "web", uid: "u1", min: 0, max: 100, triggers: ["redis", "cron"], isPaused: false, asks: null },
  });
});

test.each([
  ["our scaler alone", [{ type: "external-push", metadata: { pool: "shop/web" } }], "shop/web"],
  ["our scaler beside another trigger", [{ type: "external", metadata: { pool: "shop/web" } }, { type: "cpu" }], null],
  ["another scaler", [{ type: "external", metadata: { scalerAddress: "x:1" } }], null],
  ["a pool that is no text", [{ type: "external", metadata: { pool: 7 } }], null],
])("whom a ScaledObject asks: %s", (_what, triggers, asks) => {
  expect(autoscalerOf(scaled({ scaleTargetRef: { name: "web" }, triggers }))?.owner).toMatchObject({ asks });
});

test("what it does when it is deleted, and that it is paused, are told", () => {
  const spec = {
    scaleTargetRef: { name: "web" },
    maxReplicaCount: 9,
    advanced: { restoreToOriginalReplicaCount: true },
    triggers: [{ type: "redis" }],
  };
  const paused = { annotations: { "autoscaling.keda.sh/paused-replicas": "2" } };
  const found = autoscalerOf({ ...scaled(spec, paused), status: { originalReplicaCount: 4 } })?.owner;
  expect(found && deedOf(found)).toBe(
    "keeps it between 0 and 9 by redis through a HorizontalPodAutoscaler of its own, paused at present, and puts it back to 4 when it is deleted",
  );
  for (const [annotations, isPaused] of [
    [{ "autoscaling.keda.sh/paused": "true" }, true],
    [{ "autoscaling.keda.sh/paused": "false" }, false],
  ] as const)
    expect(autoscalerOf(scaled(spec, { annotations }))?.owner).toMatchObject({ isPaused });
});

test("what scales no workload of apps is of no concern, and what names nothing is malformed", () => {
  expect([
    autoscalerOf(hpa({ scaleTargetRef: { apiVersion: "argoproj.io/v1alpha1", kind: "Rollout", name: "web" }, maxReplicas: 2 })),
    autoscalerOf(hpa({ scaleTargetRef: { name: "web" }, maxReplicas: 2 })),
    autoscalerOf(hpa({})),
    autoscalerOf(scaled({ triggers: [] })),
    autoscalerOf(null),
  ]).toEqual([null, null, undefined, undefined, undefined]);
});

const entry = (manager: string, fields: unknown, more: object = {}) => ({
  ...{ manager, operation: "Update", apiVersion: "apps/v1", time: "2030-01-01T12:00:00Z", fieldsType: "FieldsV1", fieldsV1: fields },
  ...more,
});
const REPLICAS = { "f:spec": { "f:replicas": {} } };

test("who owns spec.replicas is read of managedFields, and what is malformed owns nothing (K3)", () => {
  const managedFields = [
    entry("helm", { "f:spec": { "f:replicas": {}, "f:template": {} } }),
    entry("kube-controller-manager", REPLICAS, { subresource: "scale" }),
    entry("kube-controller-manager", { "f:status": { "f:replicas": {} } }, { subresource: "status" }),
    entry("kubectl-edit", { "f:spec": { "f:template": {} } }),
    ...[null, 7, "x", {}, entry("odd", "f:spec"), entry("odd", null)],
  ];
  expect(replicaManagersOf({ metadata: { managedFields } })).toEqual([
    { manager: "helm", operation: "Update", subresource: "", at: Date.UTC(2030, 0, 1, 12) },
    { manager: "kube-controller-manager", operation: "Update", subresource: "scale", at: Date.UTC(2030, 0, 1, 12) },
  ]);
  for (const odd of [undefined, null, {}, { metadata: {} }, { metadata: { managedFields: "x" } }])
    expect(replicaManagersOf(odd)).toEqual([]);
});

test("a workload's count is 1 where it says none, and one without spec or UID is malformed", () => {
  expect(targetObjectOf({ metadata: { uid: "u1" }, spec: {} })).toEqual({
    ...{ uid: "u1", replicas: 1, readyReplicas: 0, isPaused: false, isDeleting: false, managers: [] },
  });
  for (const odd of [
    {},
    { metadata: { uid: "u1" } },
    { metadata: { uid: "" }, spec: {} },
    { metadata: { uid: "u1" }, spec: { replicas: -1 } },
  ])
    expect(targetObjectOf(odd)).toBeUndefined();
});

test.each([
  ["argocd-controller", "gitops"],
  ["argocd-application-controller", "gitops"],
  ["kustomize-controller", "gitops"],
  ["helm-controller", "gitops"],
  ["configsync", "gitops"],
  ["kube-controller-manager", "autoscaler"],
  ["keda", "autoscaler"],
  ["helm", "writer"],
  ["kubectl-client-side-apply", "writer"],
  ["Terraform", "writer"],
  ["", "writer"],
])("the manager %s is taken for %s", (manager, role) => {
  expect(roleOf(manager)).toBe(role);
});
