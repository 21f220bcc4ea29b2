/**
 * A fleet on a control plane that we did not write, with Karpenter making its machines: what others do to nodes, pods and budgets must end well. Controller and
 * gateway are processes under the accounts of deploy/; the pods' processes are the stand-in's. One fleet for all, so the order counts.
 * Level: real API server with simulated nodes.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Site, startSite } from "../../src/cli/demo/kubernetes/site.ts";
import { systemClock, systemIds } from "../../src/kernel/system.ts";
import type { KubeObject } from "../../src/kube/api.ts";
import { DEPLOYMENTS, NODE_CLAIMS, NODES, PODS } from "../../src/kube/resources.ts";
import { type KubeNode, type KubePod, parseNode, parseNodeClaim, parsePod } from "../../src/kube/types.ts";
import { ANNOTATIONS } from "../../src/model/marks.ts";
import type { EvidenceView, InstanceView, PoolView } from "../../src/server/views.ts";
import { poolView } from "../../src/server/views.ts";

const POOL = "default/orders";
/** Karpenter counts on a node that vanished for up to two minutes. */
const WITHIN = { timeout: 300_000, interval: 250 };
const KARPENTERS_FINALIZER = "karpenter.sh/termination";

const insecure = new Agent({ connect: { rejectUnauthorized: false } });

let site: Site;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relevo-fleet-"));
  process.env["RELEVO_TEST_SKEW"] = join(folder, "skew");
  skew(0);
  site = await startSite({
    clock: systemClock,
    ids: systemIds,
    signal: new AbortController().signal,
    logLevel: "info",
    nodePools: ["fleet"],
    tell: () => undefined,
    controllerNodeFlags: ["--import", join(import.meta.dirname, "skewed-clock.mjs")],
  });
  await site.addPool({ name: "orders", mode: "Act", nodePool: "fleet", desired: 2 });
});

afterAll(async () => {
  await site?.stop();
  await insecure.close();
  delete process.env["RELEVO_TEST_SKEW"];
  rmSync(folder, { recursive: true, force: true });
});

test("a pod that is ours by its owners' UIDs is marked as not to be disrupted; one that only bears our label is not (D2)", async () => {
  const [first] = await serving();
  const metadata = { name: "stranger", namespace: "default", labels: { "relevo.dev/instance": first?.id ?? "" } };
  const containers = [{ name: "main", image: "none" }];
  await site.kube.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec: { containers } }, { namespace: "default" });
  for (const { id } of await serving()) {
    await expect.poll(async () => (await podOf(id))?.metadata.annotations["karpenter.sh/do-not-disrupt"], WITHIN).toBe("true");
  }
  await site.kubectl("annotate", "pod", "stranger", "seen=twice");
  await systemClock.sleep(2_000);
  expect((await pods()).find(({ metadata: { name } }) => name === "stranger")?.metadata.annotations).toEqual({ seen: "twice" });
  await site.kubectl("delete", "pod", "stranger", "--wait=false");
});

test("evictions by others are answered 429 with and without Retry-After and 500 for two budgets; a budget that never allows keeps no replacement, and Relevo evicts nobody", async () => {
  await budget("never");
  await expect.poll(async () => eviction(await somePod()), WITHIN).toEqual({ code: 429, retryAfter: null });
  // Nobody says how the budget stands after its change.
  await without("controllers", async () => {
    await site.kubectl("patch", "pdb", "never", "--type=merge", "-p", '{"spec":{"maxUnavailable":null,"minAvailable":"100%"}}');
    expect(await eviction(await somePod())).toEqual({ code: 429, retryAfter: "10" });
  });
  await budget("second");
  await expect.poll(async () => (await eviction(await somePod())).code, WITHIN).toBe(500);

  const before = (await serving()).map(({ id }) => id);
  await site.kubectl(
    "patch",
    "nodepool",
    "fleet",
    "--type=merge",
    "-p",
    '{"spec":{"template":{"metadata":{"labels":{"demo/revision":"two"}}}}}',
  );
  await expect.poll(async () => phasesOf(before), WITHIN).toEqual(["deleted", "deleted"]);
  await whole();
  expect((await evidence()).map(({ loss, reason }) => `${loss} ${reason}`)).toEqual(["voluntary node_drifted", "voluntary node_drifted"]);
  expect(site.audit().filter(({ objectRef }) => objectRef?.subresource === "eviction")).toEqual([]);
  await site.kubectl("delete", "pdb", "--all");
});

test("what an eviction took counts as voluntary and what the kubelet took for want of memory as memory pressure; each instance comes back as another incarnation (T9)", async () => {
  const [first, second] = await serving();
  const evicted = await podOf(first?.id ?? "");
  expect(await eviction(evicted as KubePod)).toEqual({ code: 201, retryAfter: null });
  await expect.poll(async () => (await pool()).podLosses, WITHIN).toMatchObject({ voluntary: 1, memory_pressure: 0 });
  const short = await podOf(second?.id ?? "");
  const status = {
    phase: "Failed",
    reason: "Evicted",
    message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.",
  };
  await site.kubectl("patch", "pod", short?.metadata.name ?? "", "--subresource=status", "--type=merge", "-p", JSON.stringify({ status }));
  await expect.poll(async () => (await pool()).podLosses, WITHIN).toMatchObject({ voluntary: 1, memory_pressure: 1 });
  await whole();
  const metrics = await (await fetch(`${site.addresses.controllerUrl}/metrics`)).text();
  expect(metrics).toContain('relevo_pod_losses_total{pool="default/orders",cause="memory_pressure"} 1');
  expect(await explain()).toMatchObject({ podLosses: { voluntary: 1, memory_pressure: 1 } });
});

test("a node replaced under the same name is another node: what ran on the first is lost, and the second is left alone (D4, I6)", async () => {
  const { instance, node } = await victim();
  const name = node.metadata.name;
  await without("karpenter", async () => {
    await vanish(name);
    const { labels, annotations } = node.metadata;
    // Nobody's, and cordoned, so that no candidate lands there.
    await site.kube.create(NODES, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels, annotations },
      spec: { unschedulable: true },
    });
    await expect.poll(async () => lossesOf(instance.id), WITHIN).toEqual(["forced node_lost"]);
    await expect.poll(async () => phasesOf([instance.id]), WITHIN).toEqual(["deleted"]);
    const second = (await nodes()).find(({ metadata }) => metadata.name === name);
    expect([second?.spec.unschedulable, second?.metadata.annotations[ANNOTATIONS.cordonedBy]]).toEqual([true, undefined]);
    await vanish(name);
  });
  await whole();
});

test("a Node that vanishes while its NodeClaim stays Ready is a loss at once, and nobody waits for the claim", async () => {
  const { instance, node } = await victim();
  await without("karpenter", async () => {
    await vanish(node.metadata.name);
    await expect.poll(async () => lossesOf(instance.id), WITHIN).toEqual(["forced node_lost"]);
    expect(await claimOf(node.metadata.name)).toMatchObject({ isReady: true, isDeleted: false });
  });
  await whole();
});

test("a NodeClaim that hangs on somebody's finalizer is evidence once, its instance is replaced and the claim is left as it is", async () => {
  const { instance, node } = await victim();
  const claim = await claimOf(node.metadata.name);
  await site.kubectl(
    "patch",
    "nodeclaim",
    claim?.name ?? "",
    "--type=json",
    "-p",
    '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/hold"}]',
  );
  await site.kubectl("delete", "nodeclaim", claim?.name ?? "", "--wait=false");
  await expect.poll(async () => phasesOf([instance.id]), WITHIN).toEqual(["deleted"]);
  await whole();
  expect(await lossesOf(instance.id)).toEqual(["voluntary node_deleting"]);
  await expect.poll(async () => finalizersOf(claim?.name ?? ""), WITHIN).toEqual(["example.com/hold"]);
  await site.kubectl("patch", "nodeclaim", claim?.name ?? "", "--type=merge", "-p", '{"metadata":{"finalizers":[]}}');
});

test("a limit of the NodePool that keeps a candidate from its place is the pool's reason, with its name, and goes with it (T7)", async () => {
  await site.kubectl("patch", "nodepool", "fleet", "--type=merge", "-p", '{"spec":{"limits":{"cpu":"1m"}}}');
  await site.kubectl("patch", "pool", "orders", "--type=merge", "-p", '{"spec":{"size":{"desired":3}}}');
  await expect
    .poll(() => statusOf("orders"), WITHIN)
    .toMatchObject({
      phase: "Held",
      reason: "NoCapacity",
      message: "its pods find no place: a limit that somebody set is reached (NodePool fleet)",
    });
  await site.kubectl("patch", "nodepool", "fleet", "--type=merge", "-p", '{"spec":{"limits":null}}');
  await expect.poll(async () => (await pool()).serving, WITHIN).toBe(3);
  await expect.poll(async () => (await statusOf("orders"))["phase"], WITHIN).toBe("Serving");
  await site.kubectl("patch", "pool", "orders", "--type=merge", "-p", '{"spec":{"size":{"desired":2}}}');
  await expect.poll(async () => (await serving()).length, WITHIN).toBe(2);
});

test("while the API server is away for ten minutes requests are served and nobody is given up; afterwards the fleet is the same", async () => {
  const before = (await serving()).map(({ id }) => id);
  const known = (await evidence()).length;
  const codes: number[] = [];
  await without("apiserver", async () => {
    for (const end = systemClock.monotonic() + AWAY_MS; systemClock.monotonic() < end; await systemClock.sleep(1_000))
      codes.push(await order());
  });
  expect(new Set(codes)).toEqual(new Set([201]));
  await expect.poll(async () => readiness("cluster"), WITHIN).toBe(true);
  await systemClock.sleep(5_000);
  expect((await serving()).map(({ id }) => id)).toEqual(before);
  expect(await evidence()).toHaveLength(known);
}, 1_500_000);

test.each([300_000, -300_000])("a controller whose clock is off by %i ms replaces what drifts, as ever", async (offMs) => {
  skew(offMs);
  const restarted = site.supervisor.whenRestarted("controller");
  process.kill(site.supervisor.pidOf("controller") ?? 0, "SIGKILL");
  await restarted;
  await whole();
  const before = (await serving()).map(({ id }) => id);
  const labels = { "demo/revision": `off${offMs}` };
  await site.kubectl("patch", "nodepool", "fleet", "--type=merge", "-p", JSON.stringify({ spec: { template: { metadata: { labels } } } }));
  const watch = watchServing();
  await expect.poll(async () => phasesOf(before), WITHIN).toEqual(["deleted", "deleted"]);
  expect(await watch.lowest()).toBe(2);
  await whole();
  for (const id of before) expect(await lossesOf(id)).toEqual(["voluntary node_drifted"]);
});

test("kubectl delete crd with a fleet that serves: it is orphaned, not drained, and goes on serving", async () => {
  const before = (await pods()).map(({ metadata }) => metadata.uid).toSorted();
  expect(before).toHaveLength(2);
  await site.kubectl("delete", "crd", "pools.relevo.dev", "--timeout=60s");
  await systemClock.sleep(10_000);
  expect((await pods()).map(({ metadata }) => metadata.uid).toSorted()).toEqual(before);
  expect((await site.kube.list(DEPLOYMENTS, { labelSelector: "relevo.dev/pool=orders" })).items).toHaveLength(2);
  expect(await order()).toBe(201);
});

/** Longer than what is believed of callers, and than any watch lives. */
const AWAY_MS = 600_000;

/** While `happen` runs, this part of the control plane stands still. */
async function without(piece: string, happen: () => Promise<void>): Promise<void> {
  site.cluster.pieces.pause(piece);
  try {
    await happen();
  } finally {
    site.cluster.pieces.resume(piece);
  }
}

function skew(ms: number): void {
  writeFileSync(join(folder, "skew"), String(ms));
}

async function pool(): Promise<PoolView> {
  return site.client.get(`/v1/pools/${POOL}`, poolView);
}

function evidence(): Promise<readonly EvidenceView[]> {
  return site.world.evidence(POOL);
}

async function lossesOf(instance: string): Promise<readonly string[]> {
  return (await evidence()).filter((each) => each.instance === instance).map(({ loss, reason }) => `${loss} ${reason}`);
}

async function serving(): Promise<readonly InstanceView[]> {
  return (await site.world.instances(POOL)).filter(({ phase }) => phase === "serving");
}

async function phasesOf(ids: readonly string[]): Promise<readonly (string | undefined)[]> {
  const all = await site.world.instances(POOL);
  return ids.map((id) => all.find((each) => each.id === id)?.phase);
}

/** As many as are desired serve, and nothing moves any more. */
async function whole(): Promise<void> {
  await expect
    .poll(async () => {
      const live = (await site.world.instances(POOL).catch(() => [])).filter(({ phase }) => phase !== "deleted");
      return live.map(({ phase }) => phase);
    }, WITHIN)
    .toEqual(["serving", "serving"]);
}

function watchServing(): { lowest(): Promise<number> } {
  let isOver = false;
  let lowest = Number.POSITIVE_INFINITY;
  const done = (async () => {
    while (!isOver) {
      lowest = Math.min(lowest, await site.world.serving(POOL));
      await systemClock.sleep(100);
    }
  })();
  return {
    async lowest() {
      isOver = true;
      await done;
      return lowest;
    },
  };
}

async function pods(): Promise<readonly KubePod[]> {
  return parsed((await site.kube.list(PODS, { labelSelector: "relevo.dev/instance" })).items, parsePod);
}

async function podOf(instance: string): Promise<KubePod | undefined> {
  return (await pods()).find(({ metadata }) => metadata.name.startsWith(`${instance}-`) && metadata.deletionTimestamp === null);
}

async function somePod(): Promise<KubePod> {
  const [first] = await serving();
  return (await podOf(first?.id ?? "")) as KubePod;
}

async function nodes(): Promise<readonly KubeNode[]> {
  return parsed((await site.kube.list(NODES, {})).items, parseNode);
}

async function victim(): Promise<{ readonly instance: InstanceView; readonly node: KubeNode }> {
  const [instance] = await serving();
  const node = (await nodes()).find(({ metadata }) => metadata.name === instance?.node);
  if (!instance || !node) throw new Error("nothing serves on a node");
  return { instance, node };
}

function parsed<T>(
  objects: readonly KubeObject[],
  parse: (object: KubeObject) => { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string },
): readonly T[] {
  return objects.map((object) => {
    const result = parse(object);
    if (!result.ok) throw new Error(result.problem);
    return result.value;
  });
}

async function claimOf(
  node: string,
): Promise<{ readonly name: string; readonly isReady: boolean; readonly isDeleted: boolean } | undefined> {
  const claims = parsed((await site.kube.list(NODE_CLAIMS, {})).items, parseNodeClaim);
  const claim = claims.find(({ status }) => status.nodeName === node);
  return (
    claim && {
      name: claim.metadata.name,
      isReady: claim.status.conditions.some(({ type, status }) => type === "Ready" && status === "True"),
      isDeleted: claim.metadata.deletionTimestamp !== null,
    }
  );
}

async function finalizersOf(claim: string): Promise<readonly string[]> {
  return JSON.parse(await site.kubectl("get", "nodeclaim", claim, "-o", "jsonpath={.metadata.finalizers}")) as readonly string[];
}

/** As a machine that its cloud took: nobody asks Karpenter. */
async function vanish(node: string): Promise<void> {
  const finalizers = ((await site.kube.get({ type: NODES, name: node })).metadata["finalizers"] ?? []) as readonly string[];
  if (finalizers.includes(KARPENTERS_FINALIZER))
    await site.kubectl("patch", "node", node, "--type=merge", "-p", '{"metadata":{"finalizers":[]}}');
  await site.kubectl("delete", "node", node, "--wait=false");
}

async function budget(name: string): Promise<void> {
  await site.kubectl("create", "pdb", name, "--selector=app=orders", "--max-unavailable=0");
}

/** By plain HTTP: our own client would wait as it is told. */
async function eviction({ metadata }: KubePod): Promise<{ readonly code: number; readonly retryAfter: string | null }> {
  const { namespace, name } = metadata;
  const response = await request(`${site.cluster.url}/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
    method: "POST",
    dispatcher: insecure,
    headers: { authorization: "Bearer admin-token", "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: { namespace, name } }),
  });
  await response.body.dump();
  const { "retry-after": retryAfter } = response.headers;
  return { code: response.statusCode, retryAfter: typeof retryAfter === "string" ? retryAfter : null };
}

async function statusOf(name: string): Promise<Readonly<Record<string, unknown>>> {
  return JSON.parse(await site.kubectl("get", "pool", name, "-o", "jsonpath={.status}")) as Readonly<Record<string, unknown>>;
}

async function explain(): Promise<unknown> {
  return (await fetch(`${site.addresses.controllerUrl}/v1/explain?subject=${encodeURIComponent(POOL)}`)).json();
}

async function readiness(part: string): Promise<boolean | undefined> {
  const answer = (await (await fetch(`${site.addresses.controllerUrl}/readyz`)).json()) as {
    readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
  };
  return answer.checks.find(({ name }) => name === part)?.ok;
}

let orders = 0;
/** One request through the gateway, as a client sends it. */
async function order(): Promise<number> {
  const { url, host } = site.load("orders");
  const response = await request(`${url}/orders`, {
    method: "POST",
    headers: { host, "content-type": "application/json" },
    body: JSON.stringify({ id: `test-${orders++}` }),
  });
  await response.body.dump();
  return response.statusCode;
}
