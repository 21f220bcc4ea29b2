/** The commands of kubectl that a user of the embedded cluster has, run by the real kubectl. */
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { systemClock, systemIds } from "../../kernel/system.ts";
import type { KubeObject } from "../../kube/api.ts";
import { NODES, PODS, POOLS } from "../../kube/resources.ts";
import { bootstrapCluster } from "../store/bootstrap.ts";
import { ObjectStore } from "../store/object-store.ts";
import { type EmbeddedApi, startEmbeddedApi } from "./server.ts";

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

let folder: string;
let store: ObjectStore;
let server: EmbeddedApi;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "relevo-kubectl-"));
  store = new ObjectStore({ clock: systemClock, ids: systemIds });
  bootstrapCluster(store);
  for (const name of ["n1", "n2"]) store.create(NODES, aNode(name));
  server = await startEmbeddedApi({
    store,
    clock: systemClock,
    podLogs: {
      async *read(namespace, pod, container, { follow, tailLines, previous }) {
        yield Buffer.from(`${namespace} ${pod} ${container} `);
        yield Buffer.from(`follow=${follow} tail=${tailLines} previous=${previous}\n`);
      },
    },
    validators: {
      "relevo.dev/v1alpha1/pools": (pool) => {
        const size = (pool["spec"] as { size?: { floor?: number; desired?: number } } | undefined)?.size;
        return (size?.floor ?? 0) > (size?.desired ?? 0)
          ? [{ field: "spec.size.floor", message: `${size?.floor}: must not be above desired` }]
          : [];
      },
    },
  });
  const context = { name: "c", context: { cluster: "c", user: "u" } };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: server.url } }],
    contexts: [context],
    users: [{ name: "u", user: {} }],
    "current-context": "c",
  };
  writeFileSync(join(folder, "config"), JSON.stringify(config));
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const flags = (): readonly string[] => ["--kubeconfig", join(folder, "config"), "--cache-dir", join(folder, "cache")];

async function kubectl(...args: readonly string[]): Promise<Ran> {
  try {
    const { stdout, stderr } = await promisify(execFile)("kubectl", [...flags(), ...args], { timeout: 30_000 });
    return { code: 0, out: stdout, error: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { readonly code: number; readonly stdout: string; readonly stderr: string };
    return { code, out: stdout, error: stderr };
  }
}

/** Standard output of a command that must succeed. */
async function ok(...args: readonly string[]): Promise<string> {
  const { code, out, error } = await kubectl(...args);
  expect({ code, error: code === 0 ? "" : error }).toEqual({ code: 0, error: "" });
  return out;
}

/** The rows of a table, with what stands between two cells as one space. */
const rows = (text: string): readonly string[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => line.trim().replaceAll(/ {2,}|\t/g, " | "));

function file(name: string, ...documents: readonly object[]): string {
  const path = join(folder, name);
  writeFileSync(path, documents.map((document) => stringify(document)).join("---\n"));
  return path;
}

const aNode = (name: string) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, labels: { "topology.kubernetes.io/zone": "a" } },
  status: {
    conditions: [{ type: "Ready", status: "True" }],
    allocatable: { cpu: "2", memory: "4Gi", pods: "10" },
    capacity: { cpu: "2", memory: "4Gi", pods: "10" },
  },
});
const aPod = (name: string, nodeName?: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default", labels: { app: "web" } },
  spec: {
    ...(nodeName === undefined ? {} : { nodeName }),
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "main", image: "none", resources: { requests: { cpu: "100m" } } }],
  },
});
const aDeployment = (replicas: number) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "default" },
  spec: {
    replicas,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "main", image: "none", env: [{ name: "A", value: "1" }] }] },
    },
  },
});
const aPool = (floor: number) => ({
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "orders", namespace: "default" },
  spec: { driver: "service", size: { desired: 4, floor, max: 8 }, disruption: { mode: "Act" } },
});

function running(name: string, nodeName: string): KubeObject {
  store.create(PODS, aPod(name, nodeName));
  const status = {
    phase: "Running",
    podIP: "127.0.0.9",
    conditions: [{ type: "Ready", status: "True" }],
    containerStatuses: [{ name: "main", ready: true, restartCount: 2, state: { running: {} } }],
  };
  return store.modify({ type: PODS, namespace: "default", name }, (pod) => ({ ...pod, status }), { part: "status" });
}

/** What a kubelet does: pods that are to go are gone. */
function obeyDeletions(): { close(): void } {
  return store.watch(PODS, { resourceVersion: "0" }, (event) => {
    if (event.type !== "MODIFIED" || event.object.metadata.deletionTimestamp === undefined) return;
    const { namespace, name, uid } = event.object.metadata;
    setImmediate(() => {
      const ref = { type: PODS, namespace, name };
      if (store.find(ref)?.metadata.uid === uid) store.delete(ref, { gracePeriodSeconds: 0, preconditions: { uid } });
    });
  });
}

test("get shows tables, wide ones, categories, selections and plain JSON", async () => {
  running("p1", "n1");
  store.create(POOLS, aPool(1));

  expect(rows(await ok("get", "pods"))).toEqual([
    "NAME | READY | STATUS | RESTARTS | AGE",
    expect.stringMatching(/^p1 \| 1\/1 \| Running \| 2 \| \d+s$/),
  ]);
  expect(rows(await ok("get", "po", "-A", "-o", "wide", "--no-headers", "-l", "app=web"))).toEqual([
    expect.stringMatching(/^default \| p1 \| 1\/1 \| Running \| 2 \| \d+s \| 127\.0\.0\.9 \| n1 \| <none>$/),
  ]);
  expect(rows(await ok("get", "nodes", "--no-headers"))).toEqual([
    expect.stringMatching(/^n1 \| Ready \| <none> \| <none> \| \d+s$/),
    expect.stringMatching(/^n2 \| Ready/),
  ]);
  expect(rows(await ok("get", "pools"))).toEqual([
    "NAME | PHASE | DESIRED | SERVING | MODE | REASON | AGE",
    expect.stringMatching(/^orders \| <none> \| <none> \| 0 \| <none> \| <none> \| \d+s$/),
  ]);
  expect(await ok("get", "all", "-o", "name")).toBe("pod/p1\n");
  expect(JSON.parse(await ok("get", "pool", "orders", "-o", "json"))).toMatchObject({ kind: "Pool", spec: { size: { desired: 4 } } });
  expect(await ok("get", "pods", "--field-selector", "spec.nodeName=n2")).toBe("");
  expect(await kubectl("get", "pod", "nobody")).toEqual({
    code: 1,
    out: "",
    error: 'Error from server (NotFound): pods "nobody" not found\n',
  });
});

test("get -w follows", async () => {
  running("p1", "n1");
  const watching = spawn("kubectl", [
    ...flags(),
    "get",
    "pods",
    "-w",
    "--no-headers",
    "-o",
    "custom-columns=N:.metadata.name,P:.status.phase",
  ]);
  const table = spawn("kubectl", [...flags(), "get", "pods", "-w", "--no-headers"]);
  const heard = { custom: "", table: "" };
  watching.stdout.on("data", (chunk: Buffer) => (heard.custom += chunk.toString()));
  table.stdout.on("data", (chunk: Buffer) => (heard.table += chunk.toString()));
  try {
    await expect
      .poll(() => [rows(heard.custom).length, rows(heard.table).length, store.watcherCount], { timeout: 10_000 })
      .toEqual([1, 1, 2]);
    store.modify({ type: PODS, namespace: "default", name: "p1" }, (pod) => ({ ...pod, status: { phase: "Failed" } }), { part: "status" });
    store.create(PODS, aPod("p2"));

    await expect.poll(() => rows(heard.custom), { timeout: 10_000 }).toEqual(["p1 | Running", "p1 | Failed", "p2 | Pending"]);
    await expect
      .poll(() => rows(heard.table).map((row) => row.split(" | ").slice(0, 3)), { timeout: 10_000 })
      .toEqual([
        ["p1", "1/1", "Running"],
        ["p1", "0/1", "Failed"],
        ["p2", "0/1", "Pending"],
      ]);
  } finally {
    watching.kill();
    table.kill();
  }
});

test("describe shows a pod, a node with its pods, and a custom resource", async () => {
  running("p1", "n1");
  store.create(POOLS, aPool(1));

  expect(rows(await ok("describe", "pod", "p1"))).toEqual(expect.arrayContaining(["Name: | p1", "Status: | Running", "IP: | 127.0.0.9"]));
  expect(await ok("describe", "node", "n1")).toMatch(/Non-terminated Pods: +\(1 in total\)[\s\S]*p1 +100m \(5%\)/);
  expect(await ok("describe", "pool", "orders")).toContain("Desired:  4");
});

test("apply on the client's side creates, merges by name, and leaves alone what has not changed", async () => {
  const first = aDeployment(2);
  expect(await ok("apply", "-f", file("a.yaml", first, aPool(1)))).toBe("deployment.apps/web created\npool.relevo.dev/orders created\n");
  const second = aDeployment(3);
  second.spec.template.spec.containers.push({ name: "side", image: "none", env: [] });
  expect(await ok("apply", "-f", file("b.yaml", second, aPool(2)))).toBe(
    "deployment.apps/web configured\npool.relevo.dev/orders configured\n",
  );
  expect(await ok("apply", "-f", file("b.yaml", second, aPool(2)))).toBe(
    "deployment.apps/web unchanged\npool.relevo.dev/orders unchanged\n",
  );
  await ok("apply", "-f", file("a.yaml", first));

  expect(await ok("get", "deploy", "web", "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[*].name}")).toBe("2 main");
  expect(await ok("diff", "-f", file("a.yaml", first))).toBe("");
});

test("apply on the server's side owns fields, refuses those of others, and drops what is left out", async () => {
  const path = file("a.yaml", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: { a: "1", b: "2" } });
  expect(await ok("apply", "--server-side", "-f", path)).toBe("configmap/c serverside-applied\n");
  const other = file("b.yaml", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: { a: "9" } });
  const refused = await kubectl("apply", "--server-side", "--field-manager=other", "-f", other);
  expect([refused.code, refused.error]).toEqual([1, expect.stringContaining('conflict with "kubectl": .data.a')]);
  await ok("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", other);
  await ok("apply", "--server-side", "-f", file("a.yaml", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: {} }));

  expect(await ok("get", "cm", "c", "-o", "jsonpath={.data}")).toBe('{"a":"9"}');
});

test("a mistake is refused with the field: unknown to the server, or wrong by the kind's validator", async () => {
  const unknown = { ...aDeployment(1), spec: { ...aDeployment(1).spec, replcas: 1 } };
  expect((await kubectl("apply", "-f", file("a.yaml", unknown))).error).toContain('unknown field "spec.replcas"');
  expect((await kubectl("apply", "-f", file("b.yaml", aPool(5)))).error).toBe(
    'The Pool "orders" is invalid: spec.size.floor: Invalid value: 5: must not be above desired\n',
  );
  expect((await kubectl("create", "configmap", "x")).error).toMatch(/takes no protobuf bodies.*use `kubectl apply -f`/);
  expect((await kubectl("exec", "p1", "--", "ls")).code).toBe(1);
});

test("apply takes a List, as `get -o yaml` writes it", async () => {
  const items = ["a", "b"].map((name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } }));
  expect(await ok("apply", "-f", file("list.yaml", { apiVersion: "v1", kind: "List", items: [...items, aPool(1)] }))).toBe(
    "configmap/a created\nconfigmap/b created\npool.relevo.dev/orders created\n",
  );
  expect((await kubectl("apply", "-f", file("wrong.yaml", { apiVersion: "v1", kind: "List", items: [aPool(5)] }))).error).toContain(
    "spec.size.floor",
  );
});

test("dry runs on the server keep nothing", async () => {
  expect(await ok("apply", "--dry-run=server", "-f", file("a.yaml", aDeployment(2)))).toBe(
    "deployment.apps/web created (server dry run)\n",
  );
  expect(await ok("get", "deploy")).toBe("");
});

test("logs, with follow and tail", async () => {
  running("p1", "n1");

  expect(await ok("logs", "p1")).toBe("default p1 main follow=false tail=undefined previous=false\n");
  expect(await ok("logs", "-f", "--tail=5", "-p", "p1", "-c", "main")).toBe("default p1 main follow=true tail=5 previous=true\n");
  expect((await kubectl("logs", "p1", "-c", "other")).error).toMatch(/container other is not valid for pod p1/);
});

test("label, annotate, patch of all three types, scale, taint", async () => {
  store.create(POOLS, aPool(1));
  await ok("apply", "-f", file("a.yaml", aDeployment(2)));
  await ok("label", "node", "n1", "a=b");
  await ok("annotate", "node", "n1", "c=d");
  await ok("patch", "deploy", "web", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"other"}]}}}}');
  await ok("patch", "pool", "orders", "--type=merge", "-p", '{"spec":{"size":{"desired":5}}}');
  await ok(
    "patch",
    "pool",
    "orders",
    "--type=json",
    "-p",
    '[{"op":"test","path":"/spec/size/desired","value":5},{"op":"replace","path":"/spec/size/max","value":9}]',
  );
  await ok("scale", "deploy", "web", "--replicas=5");
  await ok("taint", "node", "n1", "k=v:NoSchedule");

  expect(await ok("get", "node", "n1", "-o", "jsonpath={.metadata.labels.a} {.metadata.annotations.c} {.spec.taints[0].key}")).toBe(
    "b d k",
  );
  expect(
    await ok(
      "get",
      "deploy",
      "web",
      "-o",
      "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[0].name}",
    ),
  ).toBe("5 other A");
  expect(await ok("get", "pool", "orders", "-o", "jsonpath={.spec.size}")).toBe('{"desired":5,"floor":1,"max":9}');
  expect((await kubectl("patch", "pool", "orders", "-p", "{}")).error).toMatch(/application\/strategic-merge-patch\+json is not supported/);
});

test("cordon, drain past a budget, uncordon", async () => {
  running("p1", "n1");
  running("p2", "n2");
  const kubelet = obeyDeletions();
  store.create(
    { group: "policy", version: "v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets", namespaced: true },
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "web", namespace: "default" },
      spec: { selector: { matchLabels: { app: "web" } } },
    },
  );
  await ok(
    "patch",
    "pdb",
    "web",
    "--subresource=status",
    "--type=merge",
    "-p",
    '{"status":{"observedGeneration":1,"disruptionsAllowed":0,"desiredHealthy":3,"currentHealthy":2}}',
  );
  const refused = await kubectl("drain", "n1", "--force", "--timeout=2s");
  expect([refused.code, refused.error]).toEqual([
    1,
    expect.stringContaining("Cannot evict pod as it would violate the pod's disruption budget"),
  ]);
  expect(rows(await ok("get", "node", "n1", "--no-headers"))).toEqual([expect.stringMatching(/^n1 \| Ready,SchedulingDisabled/)]);
  await ok("patch", "pdb", "web", "--subresource=status", "--type=merge", "-p", '{"status":{"disruptionsAllowed":1}}');

  expect(await ok("drain", "n1", "--force", "--timeout=20s")).toContain("node/n1 drained");
  expect(await ok("get", "pods", "-o", "name")).toBe("pod/p2\n");
  expect(await ok("uncordon", "n1")).toBe("node/n1 uncordoned\n");
  kubelet.close();
});

test("delete waits for what is held, wait for a condition and for the end", async () => {
  running("p1", "n1");
  store.create(POOLS, { ...aPool(1), metadata: { ...aPool(1).metadata, finalizers: ["relevo.dev/hold"] } });
  expect(await ok("wait", "--for=condition=Ready", "pod/p1", "--timeout=10s")).toBe("pod/p1 condition met\n");
  const kubelet = obeyDeletions();
  expect(await ok("delete", "pod", "p1", "--timeout=10s")).toBe('pod "p1" deleted\n');
  expect(await ok("delete", "pool", "orders", "--wait=false")).toBe('pool.relevo.dev "orders" deleted\n');
  const waiting = ok("wait", "--for=delete", "pool/orders", "--timeout=10s");
  await expect.poll(() => store.watcherCount, { timeout: 10_000 }).toBe(2);
  await ok("patch", "pool", "orders", "--type=merge", "-p", '{"metadata":{"finalizers":null}}');
  expect(await waiting).toBe("pool.relevo.dev/orders condition met\n");
  kubelet.close();
});

test("a namespace goes with everything in it", async () => {
  const documents = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } },
    { ...aPool(1), metadata: { name: "orders", namespace: "team" } },
  ];
  await ok("apply", "-f", file("a.yaml", ...documents));
  expect(await ok("delete", "namespace", "team", "--timeout=10s")).toBe('namespace "team" deleted\n');
  expect(await ok("get", "pools", "-A")).toBe("");
});

test("explain, api-resources, api-versions and version", async () => {
  expect(await ok("explain", "pool")).toMatch(/GROUP: +relevo\.dev\nKIND: +Pool\nVERSION: +v1alpha1/);
  expect(await ok("explain", "deployment.spec.replicas")).toContain("FIELD: replicas");
  expect(rows(await ok("api-resources", "--no-headers"))).toEqual(
    expect.arrayContaining([
      "pods | po | v1 | true | Pod",
      "pools | relevo.dev/v1alpha1 | true | Pool",
      "nodeclaims | karpenter.sh/v1 | false | NodeClaim",
    ]),
  );
  expect(await ok("api-versions")).toContain("policy/v1\n");
  expect(await ok("version", "-o", "json")).toContain("+relevo");
});

test("a CustomResourceDefinition adds a kind, with its columns, until it is deleted", async () => {
  const definition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "shops.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { kind: "Shop", plural: "shops", singular: "shop", shortNames: ["sh"] },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: {},
          additionalPrinterColumns: [{ name: "Street", type: "string", jsonPath: ".spec.street" }],
        },
      ],
    },
  };
  await ok("apply", "-f", file("crd.yaml", definition));
  await ok("wait", "--for=condition=Established", "crd/shops.example.com", "--timeout=10s");
  await ok(
    "apply",
    "-f",
    file("shop.yaml", { apiVersion: "example.com/v1", kind: "Shop", metadata: { name: "one" }, spec: { street: "Main" } }),
  );
  expect(rows(await ok("get", "sh"))).toEqual(["NAME | STREET", "one | Main"]);
  await ok("delete", "crd", "shops.example.com", "--timeout=10s");
  expect((await kubectl("get", "shops.v1.example.com")).code).toBe(1);
});
