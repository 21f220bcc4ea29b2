/** What a controller asks of the Kubernetes API over the life of a fleet is what the table of permissions grants (least privilege). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { PERMISSIONS, type Permission } from "../../src/kube/permissions.ts";
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
  const verbs: Partial<Record<Verb, string>> = { replace: "update", patchStatus: "patch", evict: "create" };
  const subresource = verb === "patchStatus" ? "/status" : verb === "evict" ? "/eviction" : "";
  return `${verbs[verb] ?? verb} ${plural}${subresource}`;
}

function granted({ group, resource, subresource, verbs }: Permission): readonly string[] {
  return verbs.map((verb) => `${verb} ${group}/${resource}${subresource === undefined ? "" : `/${subresource}`}`);
}

/** What a fleet whose blueprint is one Deployment, and which nobody applies through the HTTP API, has no use for. */
function isOfOthers(row: string): boolean {
  return /^impersonate |^(get|create|delete) (apps\/statefulsets|\/(configmaps|services|persistentvolumeclaims))$/.test(row);
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
  const { base, instances, disruption, karpenter, events } = PERMISSIONS;
  const table = new Set([base, instances, disruption, karpenter, events].flat().flatMap(granted));
  expect([...calls].filter((call) => !table.has(call)).toSorted()).toEqual([]);
  expect([...table].filter((row) => !calls.has(row) && !isOfOthers(row)).toSorted()).toEqual([]);
});
