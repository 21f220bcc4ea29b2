/** What is in deploy/, on a real API server: it installs, refuses what our schema refuses, and grants what the table of permissions says and no more. */
import { join } from "node:path";
import fc from "fast-check";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parsePool } from "../../src/control/pool-informer.ts";
import { PoolWriter } from "../../src/control/pool-writer.ts";
import { systemClock } from "../../src/kernel/system.ts";
import { asServiceAccount, type KubeApi, KubeApiError, type KubeObject, type ResourceType } from "../../src/kube/api.ts";
import { CAPABILITIES, INSTANCES_ACCOUNT, type PermissionQuestion, questionsOf } from "../../src/kube/permissions.ts";
import { CONFIG_MAPS, DEPLOYMENTS, EVENTS, POOLS } from "../../src/kube/resources.ts";
import { poolSchema } from "../../src/model/pool.ts";
import { planPool } from "../../src/plan/plan.ts";
import { NOON, poolOf } from "../builders/pool.ts";
import { BAD_POOLS, GOOD_POOLS } from "../deploy/bad-pools.ts";
import { apiOfAccount } from "./accounts.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "deploy");
const OWN_NAMESPACE = "relevo-system";
const SUBJECT_ACCESS_REVIEWS: ResourceType = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SubjectAccessReview",
  plural: "subjectaccessreviews",
  namespaced: false,
};

let cluster: RealCluster;
/** As the manifests' own ServiceAccount, by a token of it. */
let controller: KubeApi & { close(): Promise<void> };
const insecure = new Agent({ connect: { rejectUnauthorized: false } });

beforeAll(async () => {
  cluster = await startKubernetes({ parts: [] });
  await cluster.kubectl("apply", "-k", DEPLOY);
  await cluster.kubectl("wait", "--for=condition=Established", "crd/pools.relevo.dev", "--timeout=30s");
  controller = await apiOfAccount(cluster, OWN_NAMESPACE, "relevo-controller");
});

afterAll(async () => {
  await controller?.close();
  await insecure.close();
  await cluster?.stop();
});

test("applied again, nothing changes", async () => {
  const before = await installed();
  const lines = (await cluster.kubectl("apply", "-k", DEPLOY)).trim().split("\n");
  expect(await installed()).toEqual(before);
  expect(before.length).toBe(lines.length);
  // kubectl always sends the selector of a budget anew, and the server finds nothing changed in it.
  expect(lines.filter((line) => !line.endsWith(" unchanged")).map((line) => line.split("/")[0])).toEqual([
    "poddisruptionbudget.policy",
    "poddisruptionbudget.policy",
  ]);
});

/** Each object with its version. */
async function installed(): Promise<readonly string[]> {
  const { items } = JSON.parse(await cluster.kubectl("get", "-k", DEPLOY, "-o", "json")) as { readonly items: readonly KubeObject[] };
  return items.map(({ kind, metadata: { namespace = "", name, resourceVersion } }) => `${kind} ${namespace}/${name} ${resourceVersion}`);
}

describe("a Pool that the schema takes or refuses, the server takes or refuses", () => {
  test.each([...GOOD_POOLS, ...BAD_POOLS])("$what", async ({ pool }) => {
    const answer = await dryRun(pool);
    expect({ taken: answer.code < 300, answer }).toMatchObject({ taken: poolSchema.safeParse(pool).success });
  });

  test("documents with chance values anywhere in the spec", async () => {
    const whole = GOOD_POOLS.find(({ what }) => what === "everything said")?.pool ?? {};
    const places = pathsOf(whole, []).filter(([top]) => top === "spec");
    const change = fc.record({
      place: fc.constantFrom(...places),
      value: fc.oneof(fc.constantFrom(...VALUES), fc.string({ maxLength: 5 }), fc.double({ noNaN: true, noDefaultInfinity: true })),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        const pool = JSON.parse(
          JSON.stringify(changes.reduce<unknown>((at, { place, value }) => withValue(at, place, value), whole)),
        ) as object;
        const answer = await dryRun({ ...pool });
        if (answer.code < 300 !== poolSchema.safeParse(pool).success)
          throw new Error(`${JSON.stringify(pool)}\n${answer.code} ${answer.body}`);
      }),
      { numRuns: 1_000 },
    );
  });

  test("a ClusterRole in the blueprint is refused by its kind", async () => {
    const { pool } = BAD_POOLS.find(({ what }) => what.includes("ClusterRole")) ?? { pool: {} };
    expect(await dryRun(pool)).toMatchObject({
      code: 422,
      body: expect.stringContaining('spec.blueprint.objects[1].kind: Unsupported value: \\"ClusterRole\\"'),
    });
  });
});

describe("permissions", () => {
  const questions = questionsOf(CAPABILITIES, { ownNamespace: OWN_NAMESPACE, poolNamespaces: ["default"] });

  test("each row of the table is granted", async () => {
    const refused = await Promise.all(questions.map(async (question) => ((await mayDo(question)) ? [] : [lineOf(question)])));
    expect(refused.flat()).toEqual([]);
  });

  test("nothing that would be dangerous is, to any part", async () => {
    const asked = (["controller", "instances", "gateway", "agent"] as const).flatMap((who) => DANGEROUS.map((what) => ({ who, ...what })));
    const granted = await Promise.all(
      asked.map(async ({ who, ...what }) => ((await review(who, what)) ? [`${who}: ${JSON.stringify(what)}`] : [])),
    );
    expect(granted.flat()).toEqual([]);
  });

  test("of ConfigMaps the controller may list those of the one name by which a freeze is said, in all namespaces, and no others", async () => {
    const list = (fieldSelector?: string) => controller.list(CONFIG_MAPS, { fieldSelector }).then(() => "listed", messageOf);
    expect([await list("metadata.name=relevo-freeze"), await list("metadata.name=kube-root-ca.crt"), await list()]).toEqual([
      "listed",
      `configmaps "kube-root-ca.crt" is forbidden: User "system:serviceaccount:relevo-system:relevo-controller" cannot list resource "configmaps" in API group "" at the cluster scope`,
      `configmaps is forbidden: User "system:serviceaccount:relevo-system:relevo-controller" cannot list resource "configmaps" in API group "" at the cluster scope`,
    ]);
  });

  test("the controller makes nothing by itself, and as the account of a namespace with Pools only there", async () => {
    const make = (kube: KubeApi, namespace: string): Promise<unknown> =>
      kube
        .create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "made-" } }, { namespace })
        .then(() => "made", messageOf);
    const instances = asServiceAccount(controller, "default", INSTANCES_ACCOUNT);
    expect([
      await make(controller, "default"),
      await make(instances, "default"),
      await make(instances, OWN_NAMESPACE),
      await make(asServiceAccount(controller, "default", "default"), "default"),
      await make(asServiceAccount(controller, OWN_NAMESPACE, INSTANCES_ACCOUNT), OWN_NAMESPACE),
    ]).toEqual([
      `configmaps is forbidden: User "system:serviceaccount:relevo-system:relevo-controller" cannot create resource "configmaps" in API group "" in the namespace "default"`,
      "made",
      `configmaps is forbidden: User "system:serviceaccount:default:relevo-instances" cannot create resource "configmaps" in API group "" in the namespace "relevo-system"`,
      `serviceaccounts "default" is forbidden: User "system:serviceaccount:relevo-system:relevo-controller" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default"`,
      `serviceaccounts "relevo-instances" is forbidden: User "system:serviceaccount:relevo-system:relevo-controller" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "relevo-system"`,
    ]);
  });

  test("what the account makes carries the mark of the class that its pods get", async () => {
    const instances = asServiceAccount(controller, "default", INSTANCES_ACCOUNT);
    const template = {
      metadata: { labels: { app: "a" } },
      spec: { priorityClassName: "relevo-critical", containers: [{ name: "a", image: "a" }] },
    };
    const made = await instances.create(
      DEPLOYMENTS,
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "a" },
        spec: { replicas: 0, selector: { matchLabels: { app: "a" } }, template },
      },
      { namespace: "default" },
    );
    await instances.delete({ type: DEPLOYMENTS, namespace: "default", name: "a" }, { preconditions: { uid: made.metadata.uid } });
    expect(await cluster.kubectl("get", "priorityclass", "relevo-critical", "-o", "jsonpath={.value} {.preemptionPolicy}")).toBe(
      "100000 Never",
    );
  });
});

test("controller and gateway are pods that Pod Security's restricted takes; the agent asks for its node's network and for nothing else", async () => {
  const namespace = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "restricted", labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
  };
  await cluster.kubectlWith(JSON.stringify(namespace), "apply", "-f", "-");
  const { items } = JSON.parse(await cluster.kubectl("get", "deployments,daemonsets", "-n", OWN_NAMESPACE, "-o", "json")) as {
    readonly items: readonly (KubeObject & { readonly spec: { readonly template: { readonly spec: object } } })[];
  };
  const judged = items.map(async ({ metadata: { name }, spec }) => {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "restricted" }, spec: spec.template.spec };
    return [name, await cluster.kubectlWith(JSON.stringify(pod), "create", "--dry-run=server", "-f", "-").then(() => "taken", String)];
  });
  expect(Object.fromEntries(await Promise.all(judged))).toEqual({
    "relevo-controller": "taken",
    "relevo-gateway": "taken",
    "relevo-agent": expect.stringMatching(/violates PodSecurity "restricted:latest": host namespaces \(hostNetwork=true\)\s*$/),
  });
});

test("server-side apply takes it too", async () => {
  const said = await cluster.kubectl("apply", "-k", DEPLOY, "--server-side", "--force-conflicts", "--dry-run=server");
  expect(said.split("\n").filter((line) => line !== "" && !line.endsWith(" serverside-applied (server dry run)"))).toEqual([]);
});

test("the controller's account writes finalizer, status and Events that the server takes, and kubectl tells the state in one line", async () => {
  const log: unknown[] = [];
  const writer = new PoolWriter(controller, systemClock, (level, message, fields) => log.push([level, message, String(fields["error"])]));
  await cluster.kubectlWith(JSON.stringify(GOOD_POOLS[0]?.pool), "apply", "-f", "-");
  const pool = await entryOf("orders");

  await writer.keep(pool);
  const snapshot = poolOf({ desired: 2 }, []);
  writer.report(pool, { snapshot, plan: planPool(snapshot, NOON), at: NOON });
  writer.tell(pool, "InstanceServing", "orders-1: validating → serving");
  await expect
    .poll(async () => (await controller.list(POOLS, {})).items[0]?.["status"], { timeout: 10_000 })
    .toMatchObject({ phase: "Below" });
  await expect
    .poll(async () => (await cluster.api.list(EVENTS, { namespace: "default", fieldSelector: "involvedObject.name=orders" })).items, {
      timeout: 10_000,
    })
    .toMatchObject([{ reason: "InstanceServing", type: "Normal", involvedObject: { kind: "Pool" } }]);

  const status = (await entryObject("orders"))["status"] as { readonly conditions: readonly Record<string, unknown>[] };
  expect(status.conditions.map(({ lastTransitionTime: _, ...rest }) => rest)).toEqual([
    { type: "Ready", status: "False", reason: "BelowDesired", message: "0 of 2 instances serve", observedGeneration: 1 },
    { type: "Progressing", status: "False", reason: "Settled", message: "0 candidates, 0 draining", observedGeneration: 1 },
    { type: "Held", status: "False", reason: "NothingHeld", message: "", observedGeneration: 1 },
  ]);
  const [head, line] = (await cluster.kubectl("get", "pools")).trim().split("\n");
  expect(head?.split(/\s+/)).toEqual(["NAME", "PHASE", "DESIRED", "SERVING", "MODE", "REASON", "AGE"]);
  expect(line?.split(/\s+/).slice(0, 6)).toEqual(["orders", "Below", "2", "0", "Act", "BelowDesired"]);
  expect(log).toEqual([]);
  await writer.letGo(await entryOf("orders"));
  await cluster.kubectl("delete", "pool", "orders", "--timeout=10s");
});

/** What stands next to what is allowed. Null is left out: the server drops it, the schema refuses it. */
const VALUES: readonly unknown[] = [
  ...[0, 1, 2, -1, 1.5, 65_536, 10_001, 1e15],
  ...[
    "",
    "a",
    "A",
    "a.b",
    "0s",
    "1ms",
    "1.5s",
    "0.4ms",
    "366d",
    "364d25h",
    "5m5m",
    "relevo/v1",
    "none",
    "Act",
    "Deployment",
    "Service",
    "v1",
  ],
  ...["apps/v1", "x-$(relevo.instance)", "$(relevo.pool)-$(relevo.instance)", "/", "/ä", "/a b", true, [], {}],
  ...[["a", "B"], [""], [{}], { ttl: "10s" }, { desired: 1, floor: 1, max: 1 }, { objects: [] }],
];

type Path = readonly (string | number)[];

function pathsOf(value: unknown, path: Path): readonly Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const parts: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? value.map((each: unknown, at) => [at, each] as const)
    : Object.entries(value);
  return [path, ...parts.flatMap(([key, each]) => pathsOf(each, [...path, key]))];
}

/** A place that an earlier change took away is left alone. */
function withValue(at: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value;
  if (typeof at !== "object" || at === null) return at;
  const before = (at as Readonly<Record<string | number, unknown>>)[key];
  if (Array.isArray(at)) return at.map((each: unknown, index) => (index === key ? withValue(before, rest, value) : each));
  return { ...at, [key]: withValue(before, rest, value) };
}

const DANGEROUS: readonly Attributes[] = [
  { verb: "delete", resource: "nodes" },
  { verb: "create", resource: "nodes" },
  { verb: "update", resource: "nodes", subresource: "status" },
  { verb: "create", resource: "pods", subresource: "eviction", namespace: "default" },
  { verb: "create", resource: "pods", subresource: "exec", namespace: "default" },
  { verb: "delete", resource: "pods", namespace: "default" },
  { verb: "create", resource: "pods", namespace: "default" },
  { verb: "patch", resource: "pods", namespace: "kube-system" },
  { verb: "get", resource: "secrets", namespace: OWN_NAMESPACE },
  { verb: "list", resource: "secrets" },
  { verb: "list", resource: "secrets", namespace: "default" },
  { verb: "create", resource: "serviceaccounts", subresource: "token", namespace: "default" },
  { verb: "create", resource: "serviceaccounts", namespace: "default" },
  { verb: "impersonate", resource: "users" },
  { verb: "impersonate", resource: "groups" },
  { verb: "impersonate", resource: "serviceaccounts", name: "default", namespace: "kube-system" },
  { verb: "impersonate", resource: "serviceaccounts", name: INSTANCES_ACCOUNT, namespace: "kube-system" },
  { verb: "impersonate", resource: "serviceaccounts", name: "anybody", namespace: "default" },
  { verb: "create", resource: "deployments", group: "apps", namespace: "kube-system" },
  { verb: "create", resource: "daemonsets", group: "apps", namespace: "default" },
  { verb: "update", resource: "deployments", group: "apps", subresource: "scale", namespace: "default" },
  { verb: "delete", resource: "nodeclaims", group: "karpenter.sh" },
  { verb: "patch", resource: "nodepools", group: "karpenter.sh" },
  { verb: "create", resource: "clusterroles", group: "rbac.authorization.k8s.io" },
  { verb: "bind", resource: "clusterroles", group: "rbac.authorization.k8s.io" },
  { verb: "escalate", resource: "roles", group: "rbac.authorization.k8s.io", namespace: "default" },
  { verb: "delete", resource: "customresourcedefinitions", group: "apiextensions.k8s.io" },
  { verb: "delete", resource: "pools", group: "relevo.dev", namespace: "default" },
  { verb: "delete", resource: "namespaces" },
  { verb: "create", resource: "mutatingwebhookconfigurations", group: "admissionregistration.k8s.io" },
  { verb: "update", resource: "leases", group: "coordination.k8s.io", namespace: "kube-node-lease" },
];

interface Attributes {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

type Who = "controller" | "instances" | "gateway" | "agent";

function mayDo({ as: who, group, resource, subresource, verb, namespace, name }: PermissionQuestion): Promise<boolean> {
  return review(who, {
    verb,
    group,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
  });
}

async function review(who: Who, resourceAttributes: Attributes): Promise<boolean> {
  const namespace = who === "instances" ? "default" : OWN_NAMESPACE;
  const user = `system:serviceaccount:${namespace}:relevo-${who}`;
  const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
  const answer = await cluster.api.create(SUBJECT_ACCESS_REVIEWS, {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    metadata: {},
    spec: { user, groups, resourceAttributes },
  });
  return (answer["status"] as { readonly allowed: boolean }).allowed;
}

function lineOf({ as: who, verb, group, resource, subresource, namespace }: PermissionQuestion): string {
  return `${who} ${verb} ${group}/${resource}${subresource === undefined ? "" : `/${subresource}`} in ${namespace ?? "the cluster"}`;
}

/** As kubectl asks it: fields that nobody knows are refused. */
async function dryRun(pool: Readonly<Record<string, unknown>>): Promise<{ readonly code: number; readonly body: string }> {
  const response = await request(`${cluster.url}/apis/relevo.dev/v1alpha1/namespaces/default/pools?dryRun=All&fieldValidation=Strict`, {
    method: "POST",
    dispatcher: insecure,
    headers: { authorization: "Bearer admin-token", "content-type": "application/json" },
    body: JSON.stringify(pool),
  });
  return { code: response.statusCode, body: await response.body.text() };
}

function messageOf(error: unknown): string {
  return error instanceof KubeApiError ? (error.status.message ?? error.message) : String(error);
}

function entryObject(name: string): Promise<KubeObject> {
  return controller.get({ type: POOLS, namespace: "default", name });
}

async function entryOf(name: string) {
  const parsed = parsePool(await entryObject(name));
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}
