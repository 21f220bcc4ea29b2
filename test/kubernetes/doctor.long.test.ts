/** What a controller with the permissions of deploy/ finds wrong in a real cluster. Level: real API server, no nodes but those that are written down. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ComposedController } from "../../src/cli/processes/controller.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { INSTANCES_ACCOUNT } from "../../src/kube/permissions.ts";
import { apiOfAccount } from "./accounts.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";
import { controllerOver } from "./controller.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "deploy");
const WITHIN = { timeout: 45_000, interval: 500 };

let cluster: RealCluster;
let kube: KubeApi & { close(): Promise<void> };
let composed: ComposedController;

beforeAll(async () => {
  cluster = await startKubernetes({ parts: ["controllers", "karpenter"] });
  await cluster.kubectl("apply", "-k", DEPLOY);
  kube = await apiOfAccount(cluster, "relevo-system", "relevo-controller");
  composed = await controllerOver(kube, {
    capabilities: ["events", "apply", "election", "access_review", "freeze", "doctor"],
    ownNamespace: "relevo-system",
  });
  await composed.controller.start();
  await apply(pool());
});

afterAll(async () => {
  await composed?.close();
  await kube?.close();
  await cluster?.stop();
});

/** All that is not ok. */
async function trouble(): Promise<readonly string[]> {
  return (await composed.controlPlane.examine())
    .filter(({ state, check }) => state !== "ok" && check !== "store kind" && check !== "nodes")
    .map(({ check, state, message }) => `${state} ${check}: ${message}`);
}

test("with the roles of deploy/ all that was asked about is granted, and nothing else is wrong", async () => {
  await expect.poll(async () => (await composed.controlPlane.listPools()).length, WITHIN).toBe(1);
  const findings = await composed.controlPlane.examine();
  expect(findings.find(({ check }) => check === "permissions")?.message).toMatch(/^all \d+ that were asked about are granted$/);
  expect(findings.find(({ check }) => check === "karpenter")?.message).toMatch(/^karpenter\.sh\/v1 is served/);
  expect(findings.find(({ check }) => check === "server clock")?.state).toBe("ok");
  expect(findings.find(({ check }) => check === "definition pools.relevo.dev")?.state).toBe("ok");
  expect(await trouble()).toEqual([]);
});

test("a verb that is missing is named with its account, and the rest goes on", async () => {
  await cluster.kubectl("delete", "clusterrolebinding", "relevo-controller-disruption");
  await cluster.kubectl("delete", "rolebinding", INSTANCES_ACCOUNT, "-n", "default");
  await expect
    .poll(async () => (await trouble()).map((line) => line.replace(/: missing: .*/, "")), WITHIN)
    .toEqual(["refused permissions for instances", "refused permissions for disruption"]);
  const [ofInstances, ofDisruption] = await trouble();
  expect(ofInstances).toContain(`create deployments.apps in default as ${INSTANCES_ACCOUNT}`);
  expect(ofDisruption).toContain("patch nodes");
  await cluster.kubectl("apply", "-k", DEPLOY);
  await expect.poll(trouble, WITHIN).toEqual([]);
});

test("who bounds protection, who else acts, who else scales, whose nodes, and where Relevo runs are told from real objects", async () => {
  await apply(nodePool());
  await apply(descheduler());
  await apply({ apiVersion: "v1", kind: "Node", metadata: { name: "stray", labels: { "karpenter.sh/capacity-type": "spot" } } });
  await apply(ownPod());
  const [lead] = JSON.parse(await cluster.kubectl("get", "deployments", "-n", "default", "-l", "relevo.dev/pool=orders", "-o", "json"))
    .items as {
    metadata: { name: string };
  }[];
  await cluster.kubectl("autoscale", "deployment", lead?.metadata.name ?? "", "-n", "default", "--min=1", "--max=3", "--name=strange");
  await expect.poll(async () => (await trouble()).length, WITHIN).toBe(5);
  expect(await trouble()).toEqual([
    "warning NodePool bounded: terminationGracePeriod is 10m: its nodes end then, with what is protected on them; such losses are counted as deadline",
    "refused nodes for default/orders: belong to no declared provisioner (karpenter): stray (none)",
    "refused own place: runs on capacity that it evacuates: relevo-controller-0 on stray (karpenter.sh/capacity-type=spot)",
    expect.stringMatching(/^warning other actors: descheduler \(Deployment kube-system\/descheduler\)/),
    expect.stringMatching(
      /^refused other scalers: HorizontalPodAutoscaler default\/strange sets the replicas of Deployment default\/orders-\w+/,
    ),
  ]);
});

async function apply(object: object): Promise<void> {
  await cluster.kubectlWith(JSON.stringify(object), "apply", "-f", "-");
}

function pool(): object {
  const template = { metadata: { labels: { app: "orders" } }, spec: { containers: [{ name: "main", image: "none" }] } };
  const spec = { selector: { matchLabels: { app: "orders" } }, template };
  const lead = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" }, spec };
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "orders", namespace: "default" },
    spec: { driver: "service", size: { desired: 1 }, blueprint: { objects: [lead] }, disruption: { mode: "Act" } },
  };
}

function nodePool(): object {
  const nodeClassRef = { group: "karpenter.kwok.sh", kind: "KWOKNodeClass", name: "default" };
  const requirements = [{ key: "kubernetes.io/arch", operator: "In", values: ["amd64"] }];
  return {
    apiVersion: "karpenter.sh/v1",
    kind: "NodePool",
    metadata: { name: "bounded" },
    spec: { limits: { cpu: "0" }, template: { spec: { nodeClassRef, requirements, terminationGracePeriod: "10m" } } },
  };
}

function descheduler(): object {
  const labels = { app: "descheduler" };
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: "main", image: "registry.k8s.io/descheduler/descheduler:v0.33.0" }] },
  };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "descheduler", namespace: "kube-system" },
    spec: { selector: { matchLabels: labels }, template },
  };
}

function ownPod(): object {
  const labels = { "app.kubernetes.io/part-of": "relevo", "app.kubernetes.io/component": "controller" };
  const securityContext = {
    runAsNonRoot: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ["ALL"] },
    seccompProfile: { type: "RuntimeDefault" },
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "relevo-controller-0", namespace: "relevo-system", labels },
    spec: { nodeName: "stray", automountServiceAccountToken: false, containers: [{ name: "main", image: "none", securityContext }] },
  };
}
