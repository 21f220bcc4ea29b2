/**
 * A controller with the permissions of deploy/ and no others, on a real API server: what it makes is made by the account of the Pool's namespace, and a
 * permission that is missing is named while the rest goes on. No node is there, so no instance ever serves: of no matter here.
 */
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ComposedController } from "../../src/cli/processes/controller.ts";
import type { KubeApi, KubeObject } from "../../src/kube/api.ts";
import { INSTANCES_ACCOUNT } from "../../src/kube/permissions.ts";
import { DEPLOYMENTS, PODS, POOLS } from "../../src/kube/resources.ts";
import { apiOfAccount } from "./accounts.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";
import { controllerOver } from "./controller.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "deploy");
const WITHIN = { timeout: 45_000, interval: 200 };

let cluster: RealCluster;
let kube: KubeApi & { close(): Promise<void> };
let composed: ComposedController;
let folder: string;

beforeAll(async () => {
  cluster = await startKubernetes({ parts: ["controllers"] });
  await cluster.kubectl("apply", "-k", DEPLOY);
  await cluster.kubectl("create", "namespace", "shop");
  folder = mkdtempSync(join(tmpdir(), "relevo-permissions-"));
  cpSync(join(DEPLOY, "pool-namespace"), join(folder, "base"), { recursive: true });
  writeFileSync(join(folder, "kustomization.yaml"), "namespace: shop\nresources: [base]\n");
  await cluster.kubectl("apply", "-k", folder);
  // Nothing here is owned by Karpenter, and the role for it is left out: that must not keep anything else.
  await cluster.kubectl("delete", "clusterrolebinding", "relevo-controller-karpenter");
  kube = await apiOfAccount(cluster, "relevo-system", "relevo-controller");
  composed = await controllerOver(kube);
  await composed.controller.start();
});

afterAll(async () => {
  await composed?.close();
  await kube?.close();
  await cluster?.stop();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

test("it starts without the role for Karpenter, and says that NodeClaims cannot be read", async () => {
  const { checks } = await composed.controlPlane.readiness();
  expect(checks.find(({ name }) => name === "cluster")?.message).toBe("cannot be read: nodeclaims: kube_forbidden");
});

test("the account of the namespace makes the instances, and their pods get the class of the pool", async () => {
  await apply(poolOf("orders", "default", { size: { desired: 2 }, priority: "critical" }));
  await expect.poll(() => instancesIn("default", "orders"), WITHIN).toBe(2);
  await expect.poll(async () => (await podsOf("orders")).map(priorityOf), WITHIN).toEqual(["relevo-critical", "relevo-critical"]);
  expect(await canI("system:serviceaccount:relevo-system:relevo-controller", "create", "deployments.apps")).toBe("no");
});

test("an account that lost a permission is the pool's reason, in the server's words; other pools go on; given back, it goes on too", async () => {
  await cluster.kubectl("delete", "rolebinding", INSTANCES_ACCOUNT, "-n", "default");
  await cluster.kubectl("patch", "pool", "orders", "--type=merge", "-p", '{"spec":{"size":{"desired":3,"max":4}}}');
  await expect
    .poll(() => stateOf("default", "orders"), WITHIN)
    .toMatchObject({
      phase: "Held",
      reason: "StepForbidden",
      message: expect.stringMatching(
        /^the API server refuses create\/orders-\w+, which is tried again: deployments\.apps is forbidden: User "system:serviceaccount:default:relevo-instances" cannot create resource "deployments" in API group "apps" in the namespace "default"$/,
      ),
    });

  await apply(poolOf("carts", "shop", { size: { desired: 1 } }));
  await expect.poll(() => instancesIn("shop", "carts"), WITHIN).toBe(1);

  await cluster.kubectl("apply", "-k", join(DEPLOY, "pool-namespace"));
  await expect.poll(() => instancesIn("default", "orders"), WITHIN).toBe(3);
  await expect.poll(async () => (await stateOf("default", "orders"))["reason"], WITHIN).toBe("BelowDesired");
});

test("an account that the controller may not act for is named, and nothing is made by the controller itself instead", async () => {
  await apply(poolOf("strange", "default", { serviceAccountName: "default" }));
  await expect
    .poll(async () => (await stateOf("default", "strange"))["message"], WITHIN)
    .toMatch(
      /serviceaccounts "default" is forbidden: User "system:serviceaccount:relevo-system:relevo-controller" cannot impersonate resource "serviceaccounts"/,
    );
  expect(await instancesIn("default", "strange")).toBe(0);
});

test("a Pool that asks for a ClusterRole in its blueprint is refused before anybody sees it", async () => {
  const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "$(relevo.instance)" } };
  const pool = poolOf("greedy", "default", {});
  const spec = { ...pool.spec, blueprint: { objects: [...pool.spec.blueprint.objects, role] } };
  await expect(apply({ ...pool, spec })).rejects.toThrow(
    'spec.blueprint.objects[1].kind: Unsupported value: "ClusterRole": supported values: "Deployment", "StatefulSet", "Service", "ConfigMap", "PersistentVolumeClaim"',
  );
});

test("who may edit the workloads of a namespace may write its Pools, who may view them may see them", async () => {
  for (const role of ["view", "edit"])
    await cluster.kubectl("create", "rolebinding", `for-${role}`, `--clusterrole=${role}`, `--user=${role}er`, "-n", "default");
  const may = async (user: string) =>
    (await Promise.all(["get", "create", "delete"].map((verb) => canI(user, verb, "pools.relevo.dev")))).join(" ");
  await expect
    .poll(async () => [await may("viewer"), await may("editer"), await may("nobody")], WITHIN)
    .toEqual(["yes no no", "yes yes yes", "no no no"]);
});

test("what was made is deleted by the same account when the pool goes", async () => {
  await cluster.kubectl("patch", "pool", "orders", "--type=merge", "-p", '{"spec":{"deletion":"drain"}}');
  await cluster.kubectl("delete", "pool", "orders", "--timeout=60s");
  expect(await instancesIn("default", "orders")).toBe(0);
  const events = await cluster.kubectl(
    "get",
    "events",
    "--field-selector",
    "involvedObject.kind=Pool",
    "-o",
    "jsonpath={.items[*].reason}",
  );
  expect(events.split(" ")).toEqual(expect.arrayContaining(["InstanceCreating", "InstancePreparing", "InstanceDeleted"]));
});

function poolOf(name: string, namespace: string, spec: object) {
  const template = { metadata: { labels: { app: name } }, spec: { containers: [{ name: "main", image: "none" }] } };
  const lead = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "$(relevo.instance)" },
    spec: { selector: { matchLabels: { app: name } }, template },
  };
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name, namespace },
    spec: { driver: "service", size: { desired: 1 }, blueprint: { objects: [lead] }, ...spec },
  };
}

async function apply(pool: object): Promise<void> {
  await cluster.kubectlWith(JSON.stringify(pool), "apply", "-f", "-");
}

async function instancesIn(namespace: string, pool: string): Promise<number> {
  return (await cluster.api.list(DEPLOYMENTS, { namespace, labelSelector: `relevo.dev/pool=${pool}` })).items.length;
}

async function podsOf(pool: string): Promise<readonly KubeObject[]> {
  return (await cluster.api.list(PODS, { labelSelector: `relevo.dev/pool=${pool}` })).items;
}

function priorityOf(pod: KubeObject): string | undefined {
  return (pod["spec"] as { readonly priorityClassName?: string }).priorityClassName;
}

async function stateOf(namespace: string, name: string): Promise<Readonly<Record<string, unknown>>> {
  return ((await cluster.api.get({ type: POOLS, namespace, name }))["status"] ?? {}) as Readonly<Record<string, unknown>>;
}

/** kubectl's own question, in the namespace `default`. */
async function canI(user: string, verb: string, resource: string): Promise<string> {
  const { stdout } = await promisify(execFile)("kubectl", [
    "--kubeconfig",
    cluster.kubeconfig,
    "auth",
    "can-i",
    verb,
    resource,
    "--as",
    user,
  ]).catch(
    (error: unknown) => error as { readonly stdout: string }, // it ends with 1 for "no"
  );
  return stdout.trim();
}
