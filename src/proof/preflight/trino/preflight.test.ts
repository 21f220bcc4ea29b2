/** The whole table of one pool: from its document, what the API server shows, and what workers answer. */
import { expect, test } from "vitest";
import { KubeApiError, type KubeObject } from "../../../kube/api.ts";
import { type PoolDocument, poolSchema } from "../../../model/pool.ts";
import type { TrinoPreflightParts } from "./ports.ts";
import { preflightTrino } from "./preflight.ts";

const workload = (kind: string, name: string, replicas: number) => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: `$(relevo.instance)${name}` },
  spec: {
    replicas,
    template: {
      spec: {
        terminationGracePeriodSeconds: 60,
        containers: [
          {
            name: "trino",
            resources: { requests: { cpu: "1", memory: "4Gi" }, limits: { cpu: "1", memory: "4Gi" } },
            volumeMounts: [{ name: "etc", mountPath: "/etc/trino" }],
          },
        ],
        volumes: [{ name: "etc", configMap: { name: "$(relevo.instance)-etc" } }],
      },
    },
  },
});

const document = (trino: object = {}): PoolDocument =>
  poolSchema.parse({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "lab" },
    spec: {
      driver: "trino",
      size: { desired: 1 },
      trino,
      blueprint: {
        objects: [
          workload("Deployment", "", 1),
          workload("StatefulSet", "-worker", 2),
          {
            apiVersion: "v1",
            kind: "ConfigMap",
            metadata: { name: "$(relevo.instance)-etc" },
            data: {
              "jvm.config": "-Xmx2g\n",
              "config.properties": "shutdown.grace-period=10s\nquery.remote-task.max-error-duration=10s\nexchange.max-error-duration=10s\n",
            },
          },
        ],
      },
    },
  });

const pod = (name: string, ip: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: "default",
    uid: name,
    resourceVersion: "1",
    creationTimestamp: "2026-11-30T12:00:00Z",
    labels: { "relevo.dev/instance": "lab-a" },
  },
  spec: { containers: [] },
  status: { phase: "Running", podIP: ip, qosClass: "Guaranteed" },
});

const kube = (pods: readonly KubeObject[]): TrinoPreflightParts["kube"] => ({
  list: async () => ({ resourceVersion: "1", items: pods }),
  get: async ({ name }) => {
    throw new KubeApiError({ code: 404, reason: "NotFound" }, `GET ${name}`);
  },
});
const PODS = [pod("lab-a-6f7d9c-x2x4z", "10.0.0.1"), pod("lab-a-worker-0", "10.0.0.2"), pod("lab-a-worker-1", "10.0.0.3")];

const statesOf = async (given: PoolDocument, parts: TrinoPreflightParts) =>
  (await preflightTrino(given, parts)).map(({ check, state }) => `${check} ${state}`);

test("what nobody can find out is held, and the rest is judged", async () => {
  expect(await statesOf(document(), { kube: kube([]) })).toEqual([
    "mounts ok",
    "mounts ok",
    "qos ok",
    "qos ok",
    "heap ok",
    "memory ok",
    "memory ok",
    "detection ok",
    "grace ok",
    "connectors ok",
    "fit held",
    "capability ok",
    "shutdown held",
    "quota held",
    "credential_paths held",
    "exchange held",
  ]);
});

test("the workers themselves are asked whether they may be told, by their own addresses, and who refuses is named", async () => {
  const asked: string[] = [];
  const parts: TrinoPreflightParts = {
    kube: kube(PODS),
    maySetState: async (base, user) => {
      asked.push(`${user} at ${base}`);
      return !base.includes("10.0.0.3");
    },
  };
  const row = (await preflightTrino(document(), parts)).find(({ check }) => check === "shutdown");
  expect(asked).toEqual(["relevo at http://10.0.0.2:8080", "relevo at http://10.0.0.3:8080"]);
  expect([row?.state, row?.message]).toEqual(["refused", "relevo may not change the state of lab-a-worker-1 (403)"]);
});

test("a quota whose use cannot be read is held, and never assumed (T7)", async () => {
  const sizing = {
    machines: [{ name: "m", cpu: "8", memory: "32Gi", disks: [{ type: "pd-ssd", gb: 100 }] }],
    quotas: [{ dimension: "SSD_TOTAL_GB", limit: 250 }],
  };
  const quotaUsed = async () => {
    throw new Error("the provider is away");
  };
  const row = (await preflightTrino(document({ sizing }), { kube: kube([]), quotaUsed })).find(({ check }) => check === "quota");
  expect([row?.state, row?.message]).toEqual(["held", "SSD_TOTAL_GB: how much is used of 250 is not known (the provider is away)"]);
});

test("a pool of another driver has none of these lines", async () => {
  const other = { ...document(), spec: { ...document().spec, driver: "service" as const } };
  expect(await preflightTrino(other, { kube: kube([]) })).toEqual([]);
});
