/** What a controller asks of the Kubernetes API over the life of a fleet is what the table of permissions grants (least privilege). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { PERMISSIONS, type Permission } from "../../src/kube/permissions.ts";
import { KubeApiError } from "../../src/kube/api.ts";
import * as resources from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";
import type { Call, Verb } from "./observed-kube.ts";

let harness: Harness;
afterEach(() => harness.close());

const PLURALS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.values(resources).flatMap((type) => (typeof type === "object" ? [[type.kind, `${type.group}/${type.plural}`]] : [])),
);

/** As RBAC writes it: `patch relevo.dev/pools/status`. */
function asked({ verb, kind }: Call): string {
  const plural = PLURALS[kind] ?? kind;
  const verbs: Partial<Record<Verb, string>> = { replace: "update", patchStatus: "patch", patchScale: "patch", evict: "create" };
  const subresource = verb === "patchStatus" ? "/status" : verb === "patchScale" ? "/scale" : verb === "evict" ? "/eviction" : "";
  return `${verbs[verb] ?? verb} ${plural}${subresource}`;
}

function granted({ group, resource, subresource, verbs }: Permission): readonly string[] {
  return verbs.map((verb) => `${verb} ${group}/${resource}${subresource === undefined ? "" : `/${subresource}`}`);
}

/** What a fleet whose blueprint is one Deployment, whose pods find their places at once, and which nobody applies through the HTTP API, has no use for. */
function isOfOthers(row: string): boolean {
  // A freeze by ConfigMap is watched for by whoever composes it. The embedded cluster has no autoscalers to watch.
  return (
    /^(get|delete|watch) (autoscaling|keda.sh)\/|^patch apps\/\w+\/scale$/.test(row) ||
    /^impersonate |^(list|watch) \/configmaps$|^list \/events$|^(get|create|delete) (apps\/statefulsets|\/(configmaps|services|persistentvolumeclaims))$/.test(
      row,
    )
  );
}

test("each call of a fleet's life is granted, and each row is needed", async () => {
  harness = await Harness.start({ nodes: 6 });
  const [first] = await harness.serve(ordersPool({ desired: 2 }));
  await harness.drift(first?.incarnation.nodeName ?? "");
  await harness.until("it is replaced", async () => (await harness.phase(first?.id ?? "")) === "deleted");
  await harness.cluster.api.patch({ type: resources.POOLS, namespace: "default", name: "orders" }, { spec: { deletion: "drain" } });
  await harness.cluster.api.delete({ type: resources.POOLS, namespace: "default", name: "orders" });
  await harness.until("the pool is gone", async () => (await harness.cluster.api.list(resources.POOLS, {})).items.length === 0);

  const calls = new Set(harness.kube.calls.map(asked));
  const { base, instances, disruption, karpenter, events, freeze, scaling } = PERMISSIONS;
  const table = new Set([base, instances, disruption, karpenter, events, freeze, scaling].flat().flatMap(granted));
  expect([...calls].filter((call) => !table.has(call)).toSorted()).toEqual([]);
  expect([...table].filter((row) => !calls.has(row) && !isOfOthers(row)).toSorted()).toEqual([]);
});

const refusal = (call: Call): KubeApiError => {
  const message = `User "relevo" cannot ${asked(call)}`;
  return new KubeApiError({ code: 403, reason: "Forbidden", message }, "test");
};

test.each([
  ["the cordon", (call: Call) => asked(call) === "patch /nodes", "step_forbidden"],
  ["the marks of protection", (call: Call) => asked(call) === "patch /pods", "step_forbidden"],
  ["the finalizer", (call: Call) => asked(call) === "patch relevo.dev/pools", "finalizer_forbidden"],
  ["Events", (call: Call) => asked(call) === "create /events", null],
  ["the status", (call: Call) => asked(call) === "patch relevo.dev/pools/status", null],
] as const)("without the permission for %s an instance on a drifting node is replaced all the same (D12)", async (_, isRefused, told) => {
  harness = await Harness.start({ nodes: 6 });
  harness.kube.failing = (call) => (isRefused(call) ? refusal(call) : undefined);
  const [first] = await harness.serve(ordersPool({ desired: 2 }));
  await harness.drift(first?.incarnation.nodeName ?? "");
  await harness.until("it is replaced", async () => (await harness.phase(first?.id ?? "")) === "deleted");
  await harness.pass(20_000);
  expect((await harness.serving()).length).toBe(2);
  if (told !== null) expect((await harness.reasons()).join("\n")).toContain(told);
});

test("a controller that may not read NodeClaims starts, says so, and keeps the fleet at its size (D12)", async () => {
  harness = await Harness.start({ nodes: 6 });
  await harness.serve(ordersPool({ desired: 2 }));
  harness.kube.failing = (call) => (call.kind === "NodeClaim" ? refusal(call) : undefined);
  await harness.restartController(1_000);
  await harness.cluster.api.patch({ type: resources.POOLS, namespace: "default", name: "orders" }, { spec: { size: { desired: 3 } } });
  await harness.until("three serve", async () => (await harness.serving()).length === 3);
  const { checks } = await harness.controlPlane.readiness();
  expect(checks.find(({ name }) => name === "cluster")).toEqual({
    name: "cluster",
    ok: false,
    message: "cannot be read: nodeclaims: kube_forbidden",
  });
});
