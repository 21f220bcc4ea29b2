/** Clusters of one coordinator and two workers, by a modelled driver: what replaces the whole, and what one worker alone (decision 0018). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { KubeObject, KubeObjectDraft } from "../../src/kube/api.ts";
import { DEPLOYMENTS, PODS } from "../../src/kube/resources.ts";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { LABELS } from "../../src/model/marks.ts";
import { Harness, type HarnessOptions, workload } from "./harness.ts";
import { lineOf } from "./observed-kube.ts";

const MINUTE = 60_000;
const LEAD_MS = 120_000;
const POOL = "default/queries";

let harness: Harness;
afterEach(() => harness.close());

function queriesPool({
  desired = 1,
  ...disruption
}: {
  readonly desired?: number;
  readonly [field: string]: unknown;
} = {}): KubeObjectDraft {
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "queries", namespace: "default" },
    spec: {
      driver: "trino",
      size: { desired },
      disruption: { mode: "Act", ...disruption },
      blueprint: { objects: [workload("$(relevo.instance)"), workload("$(relevo.instance)-worker", {}, 2)] },
    },
  };
}

interface Placed {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly host: string;
  readonly isEnding: boolean;
}

async function workersOf({ id }: InstanceRecord): Promise<readonly Placed[]> {
  const { items } = await harness.cluster.api.list(PODS, { namespace: "default", labelSelector: `${LABELS.instance}=${id}` });
  return items.filter(({ metadata }) => metadata.name.startsWith(`${id}-worker`)).map(placed);
}

function placed({ metadata, ...pod }: KubeObject): Placed {
  const { spec, status } = pod as unknown as {
    readonly spec: { readonly nodeName?: string };
    readonly status: { readonly podIP?: string };
  };
  return {
    name: metadata.name,
    uid: metadata.uid,
    node: spec.nodeName ?? "",
    host: status.podIP ?? "",
    isEnding: metadata.deletionTimestamp !== undefined,
  };
}

/** Serves, on three different nodes. */
async function aCluster(options: HarnessOptions = {}): Promise<{ readonly cluster: InstanceRecord; readonly workers: readonly Placed[] }> {
  harness = await Harness.start({ nodes: 7, ...options });
  const [cluster] = await harness.serve(queriesPool());
  if (cluster === undefined) throw new Error("none serves");
  const workers = await workersOf(cluster);
  expect(new Set([cluster.incarnation.nodeName, ...workers.map(({ node }) => node)]).size).toBe(3);
  return { cluster, workers };
}

function first(workers: readonly Placed[]): Placed {
  const [worker] = workers;
  if (worker === undefined) throw new Error("no worker");
  return worker;
}

async function interrupt(node: string): Promise<number> {
  const machine = harness.machineOf(node);
  const { deadline } = harness.cluster.provisioner.interrupt(node, { deadlineMs: LEAD_MS });
  expect((await harness.warn(machine)).status).toBe(202);
  return deadline;
}

const isThere = async (cluster: InstanceRecord, { uid }: Placed): Promise<boolean> =>
  (await workersOf(cluster)).some((pod) => pod.uid === uid);

async function memberSteps(): Promise<readonly string[]> {
  const steps = await harness.steps(POOL);
  return steps.filter(({ kind }) => kind.includes("_member/")).map(({ kind, state, outcome }) => `${kind} ${state} ${outcome}`);
}

test.for(["the coordinator", "a worker"])(
  "drift under %s replaces the cluster: the next one is admitted first, and the old one is sealed by its engine's own word (D3, D5, D6)",
  async (which) => {
    const { cluster, workers } = await aCluster();
    harness.gateways[0]?.hold(cluster.id, { sessions: 1 });
    harness.instances.unfinished.set(cluster.incarnation.host ?? "", 1);
    await harness.drift(which === "a worker" ? first(workers).node : (cluster.incarnation.nodeName ?? ""));
    await harness.until("the old one drains", async () => (await harness.phase(cluster.id, POOL)) === "draining");
    expect((await harness.serving(POOL)).map(({ replaces }) => replaces)).toEqual([cluster.id]);

    harness.gateways[0]?.release(cluster.id);
    await harness.pass(MINUTE);
    expect(await harness.phase(cluster.id, POOL)).toBe("draining");
    expect(await harness.reasons(POOL)).toContain(`${cluster.id} drain_in_progress`);
    harness.instances.unfinished.clear();
    await harness.until("it is gone", async () => (await harness.phase(cluster.id, POOL)) === "deleted");

    expect(await harness.instance(cluster.id, POOL)).toMatchObject({ seal: "confirmed", drainLoss: "voluntary" });
    expect((await harness.evidence(POOL)).map(({ reason, isOfMember }) => [reason, isOfMember])).toEqual([["node_drifted", undefined]]);
    expect(await memberSteps()).toEqual([]);
    expect((await harness.pool(POOL)).losses).toEqual([{ loss: "voluntary", instances: 1, obligations: 0, assumedSeals: 0 }]);
  },
);

test("a spot notice for a worker's node drains that worker and makes it anew elsewhere; the cluster serves on as the same process (S3, D4, T14)", async () => {
  const { cluster, workers } = await aCluster();
  const [worker, other] = [first(workers), workers[1]];
  const deadline = await interrupt(worker.node);
  await harness.until("it drains", async () => (await harness.instances.memberState({ host: worker.host, port: 8080 })) === "draining");
  await harness.pass(MINUTE);
  expect(await isThere(cluster, worker)).toBe(true);
  expect(await harness.reasons(POOL)).toEqual([`${cluster.id} member_finishes`, `${cluster.id} serving`]);

  harness.instances.memberStates.set(worker.host, "drained");
  await harness.until("its pod is gone", async () => !(await isThere(cluster, worker)));
  await harness.until("the cluster is whole", async () => (await harness.reasons(POOL)).join() === `nothing_to_do,${cluster.id} serving`);
  expect(harness.clock.now()).toBeLessThan(deadline);

  const now = await workersOf(cluster);
  const back = now.find(({ uid }) => workers.every((former) => former.uid !== uid));
  expect(now).toHaveLength(2);
  expect(back?.node).not.toBe(worker.node);
  expect(await harness.instances.memberState({ host: back?.host ?? "", port: 8080 })).toBe("active");
  expect(await harness.instance(cluster.id, POOL)).toMatchObject({ phase: "serving", incarnation: cluster.incarnation });
  expect((await harness.node(worker.node))["spec"]).toMatchObject({ unschedulable: true });
  expect(await memberSteps()).toEqual(["replace_member/1 done member_deleted", "drain_member/1 done member_drains"]);
  expect(harness.kube.calls.filter(({ verb, kind }) => verb === "delete" && kind === "Pod").map(({ name, body }) => [name, body])).toEqual([
    [worker.name, { preconditions: { uid: worker.uid }, propagationPolicy: "Background" }],
  ]);

  // Evidence is first-write-wins for each pod: the notice of another one's node is served as well.
  await interrupt(other?.node ?? "");
  await harness.until("the second one drains", async () => harness.instances.memberCalls.includes(`${other?.host} draining`));
  harness.instances.memberStates.set(other?.host ?? "", "drained");
  await harness.until("it is gone too", async () => (await workersOf(cluster)).every(({ uid }) => uid !== other?.uid));
  expect((await harness.evidence(POOL)).map(({ podUid, isOfMember }) => [podUid, isOfMember])).toEqual([
    [other?.uid, true],
    [worker.uid, true],
  ]);
  await harness.pass(5 * MINUTE);
  expect((await harness.store.listInstances(POOL, 10)).length).toBe(1);
  expect((await harness.pool(POOL)).losses).toEqual([]);
});

test("a worker that does not finish is deleted before its node goes, and not sooner (S4)", async () => {
  const { cluster, workers } = await aCluster();
  const worker = first(workers);
  const deadline = await interrupt(worker.node);
  await harness.pass(deadline - harness.clock.now() - 16_000);
  expect(await isThere(cluster, worker)).toBe(true);

  await harness.until("its pod is gone", async () => !(await isThere(cluster, worker)), 10_000);
  expect(await harness.phase(cluster.id, POOL)).toBe("serving");
});

test("a notice that is taken back lets the worker work again, and the next one counts anew", async () => {
  const { workers } = await aCluster();
  const worker = first(workers);
  const machines = [harness.machineOf(worker.node)];
  const say = (notice: object) => harness.notify(JSON.stringify(notice), "webhook");
  const announce = (id: string, inMs: number) =>
    say({ id, kind: "interruption", machines, deadline: new Date(harness.clock.now() + inMs).toISOString() });
  const told = (state: string) => harness.instances.memberCalls.filter((call) => call === `${worker.host} ${state}`).length;

  expect((await announce("first", 10 * MINUTE)).status).toBe(202);
  await harness.until("it drains", () => told("draining") === 1);
  expect((await say({ id: "second", kind: "cancelled", subject: "first" })).status).toBe(202);
  await harness.until("it works again", () => told("active") === 1);
  expect((await announce("third", 20 * MINUTE)).status).toBe(202);
  await harness.until("it drains again", () => told("draining") === 2);
  expect((await harness.evidence(POOL)).length).toBe(1);
});

test("a worker that is killed ends nothing but itself: no evidence, no loss, the same incarnation (D12, D13)", async () => {
  const { cluster, workers } = await aCluster();
  harness.gateways[0]?.hold(cluster.id, { sessions: 2 });
  harness.crash(first(workers).host);
  await harness.pass(5 * MINUTE);

  expect(await harness.instance(cluster.id, POOL)).toMatchObject({ phase: "serving", trust: "ok", incarnation: cluster.incarnation });
  expect(await harness.evidence(POOL)).toEqual([]);
  expect((await harness.pool(POOL)).losses).toEqual([]);
  expect(await harness.reasons(POOL)).toEqual(["nothing_to_do", `${cluster.id} serving`]);
});

test("a worker whose machine dies is made anew by its own workload; the cluster stays", async () => {
  const { cluster, workers } = await aCluster({ provisioner: { vanishAfterMs: 5_000 } });
  const worker = first(workers);
  harness.cluster.provisioner.interrupt(worker.node, { deadlineMs: 1_000 });
  await harness.until(
    "it is elsewhere",
    async () => {
      const now = await workersOf(cluster);
      return now.length === 2 && now.every(({ node, uid }) => node !== "" && node !== worker.node && uid !== worker.uid);
    },
    10 * MINUTE,
  );
  await harness.pass(MINUTE);
  expect(await harness.instance(cluster.id, POOL)).toMatchObject({ phase: "serving", incarnation: cluster.incarnation });
});

test("a coordinator that is killed loses what ran, once counted for each query; its next process is admitted when all workers are there (D13, D18, T8)", async () => {
  const { cluster } = await aCluster();
  // Two queries, one of them polled right now.
  harness.gateways[0]?.hold(cluster.id, { sessions: 2, requests: 1 });
  const host = cluster.incarnation.host ?? "";
  harness.instances.unprepared.add(host);
  harness.crash(host);
  await harness.until("it is prepared anew", async () => (await harness.phase(cluster.id, POOL)) === "validating");
  expect((await harness.pool(POOL)).losses).toEqual([{ loss: "forced", instances: 1, obligations: 2, assumedSeals: 0 }]);
  harness.gateways[0]?.release(cluster.id);
  await harness.pass(5 * MINUTE);
  expect(await harness.phase(cluster.id, POOL)).toBe("validating");
  expect(await harness.reasons(POOL)).toContain(`${cluster.id} step_retry`);

  harness.instances.unprepared.clear();
  await harness.until("it serves again", async () => (await harness.phase(cluster.id, POOL)) === "serving");
  const { incarnation } = await harness.instance(cluster.id, POOL);
  expect(incarnation.podUid).toBe(cluster.incarnation.podUid);
  expect(incarnation.bootId).not.toBe(cluster.incarnation.bootId);
  expect((await harness.pool(POOL)).losses).toEqual([{ loss: "forced", instances: 1, obligations: 2, assumedSeals: 0 }]);
});

test("a cluster that needs six minutes until its workers have announced themselves is no failed candidate (T8)", async () => {
  harness = await Harness.start({ nodes: 7 });
  const prepare = harness.instances.prepare.bind(harness.instances);
  const wholeAt = harness.clock.now() + 6 * MINUTE;
  const targets: unknown[] = [];
  harness.instances.prepare = (target, call) => {
    targets.push(target.trino);
    if (harness.clock.now() < wholeAt) harness.instances.unprepared.add(target.host);
    else harness.instances.unprepared.clear();
    return prepare(target, call);
  };
  await harness.apply(queriesPool());
  await harness.untilServing(1, POOL, 8 * MINUTE);

  expect((await harness.store.listInstances(POOL, 10)).length).toBe(1);
  const [cluster] = await harness.serving(POOL);
  const members = cluster && (await workersOf(cluster)).map(({ host }) => ({ host, port: 8080 }));
  expect(targets.at(-1)).toEqual({ user: "relevo", workers: 2, members: expect.arrayContaining(members ?? []) });
});

test("an owner that sets the workers' replicas back is left alone: nothing of Relevo's writes them, and the cluster stays (T18, I20)", async () => {
  const { cluster } = await aCluster();
  const ref = { type: DEPLOYMENTS, namespace: "default", name: `${cluster.id}-worker` };
  harness.kube.calls.length = 0;
  for (const replicas of [0, 2, 0, 3]) {
    await harness.cluster.api.patch(ref, { spec: { replicas } });
    await harness.pass(30_000);
    expect(await harness.phase(cluster.id, POOL)).toBe("serving");
  }
  expect(await workersOf(cluster)).toHaveLength(3);
  const writes = harness.kube.writes().map(lineOf);
  expect(writes.filter((line) => /Deployment|delete/.test(line))).toEqual([]);
  expect((await harness.store.listInstances(POOL, 10)).length).toBe(1);
});
