import { expect, test } from "vitest";
import { CONFIG_MAPS, EVENTS, PODS } from "../../kube/resources.ts";
import type { ContainerStatus, PodSpec, PodView } from "../controllers/views.ts";
import { testCluster, type TestCluster } from "../testing/cluster.ts";

const RUN = { name: "main", image: "example", command: ["run"] };

async function run(cluster: TestCluster, spec: Partial<PodSpec>): Promise<void> {
  await cluster.api.create(
    PODS,
    { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers: [RUN], ...spec } },
    { namespace: "default" },
  );
}

const pod = (cluster: TestCluster): PodView | undefined => cluster.find(PODS, "p") as PodView | undefined;
const main = (cluster: TestCluster): ContainerStatus | undefined => pod(cluster)?.status?.containerStatuses?.[0];
const reasons = (cluster: TestCluster): readonly string[] =>
  cluster.store
    .list(EVENTS)
    .items.filter((event) => (event["involvedObject"] as { readonly kind: string }).kind === "Pod")
    .toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
    .map((event) => String(event["reason"]));
const remove = (cluster: TestCluster, gracePeriodSeconds?: number): Promise<void> =>
  cluster.api.delete({ type: PODS, namespace: "default", name: "p" }, { gracePeriodSeconds });

test("init containers run in order, each to its end, before the containers start", async () => {
  const started: string[] = [];
  const cluster = await testCluster({
    nodes: 1,
    model: ({ container }) => {
      started.push(container);
      return container === "main" ? {} : { exits: { afterMs: 300, code: 0 } };
    },
  });
  await run(cluster, {
    initContainers: [
      { ...RUN, name: "first" },
      { ...RUN, name: "second" },
    ],
  });
  await cluster.until("the first has ended", () => started.length === 2);
  expect(pod(cluster)?.status).toMatchObject({
    phase: "Pending",
    conditions: expect.arrayContaining([expect.objectContaining({ type: "Initialized", status: "False" })]),
  });
  await cluster.until("it runs", () => pod(cluster)?.status?.phase === "Running");

  expect(started).toEqual(["first", "second", "main"]);
  expect(pod(cluster)?.status?.initContainerStatuses?.map(({ state }) => state.terminated?.reason)).toEqual(["Completed", "Completed"]);
  await cluster.close();
});

test("a container that ends starts again with a new id, at once and then after growing delays", async () => {
  const starts: number[] = [];
  const cluster = await testCluster({
    nodes: 1,
    model: () => {
      starts.push(cluster.clock.monotonic());
      return { startMs: 0, exits: { afterMs: 100, code: 7 } };
    },
    kubelet: { restartBackoff: { firstMs: 1_000, maxMs: 3_000, resetAfterMs: 60_000 } },
  });
  await run(cluster, {});
  await cluster.until("it started", () => main(cluster)?.state.running !== undefined);
  const first = main(cluster)?.containerID;
  await cluster.until("it waits", () => main(cluster)?.state.waiting?.reason === "CrashLoopBackOff" && main(cluster)?.restartCount === 1);
  expect(main(cluster)?.lastState.terminated).toMatchObject({ exitCode: 7, reason: "Error" });
  await cluster.until("five starts", () => starts.length === 5);

  expect(starts.slice(1).map((at, index) => at - (starts[index] ?? 0))).toEqual([100, 1_100, 2_100, 3_100]);
  expect(main(cluster)?.containerID).not.toBe(first);
  expect(pod(cluster)?.status?.phase).toBe("Running");
  expect(reasons(cluster)).toContain("BackOff");
  await cluster.close();
});

test.each([
  ["Never", 0, "Succeeded"],
  ["Never", 3, "Failed"],
  ["OnFailure", 0, "Succeeded"],
] as const)("with restartPolicy %s an exit with %i makes the pod %s", async (restartPolicy, code, phase) => {
  const cluster = await testCluster({ nodes: 1, model: () => ({ exits: { afterMs: 100, code } }) });
  await run(cluster, { restartPolicy });
  await cluster.until("it has ended", () => pod(cluster)?.status?.phase === phase);
  await cluster.clock.advance(5_000);

  expect(main(cluster)).toMatchObject({ restartCount: 0, ready: false, state: { terminated: { exitCode: code } } });
  expect(cluster.runtime.containers()).toEqual([]);
  await remove(cluster);
  await cluster.until("it goes at once", () => pod(cluster) === undefined, 1_000);
  await cluster.close();
});

test("readiness follows its probe both ways and restarts nothing", async () => {
  const cluster = await testCluster({ nodes: 1 });
  await run(cluster, { containers: [{ ...RUN, readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 1, failureThreshold: 2 } }] });
  await cluster.until("it is ready", () => main(cluster)?.ready === true);
  const [container] = cluster.runtime.containers();
  cluster.runtime.setHealthy(container?.start.id ?? "", false);
  await cluster.until("it is not ready", () => main(cluster)?.ready === false, 5_000);
  cluster.runtime.setHealthy(container?.start.id ?? "", true);
  await cluster.until("it is ready again", () => main(cluster)?.ready === true, 5_000);

  expect(main(cluster)?.restartCount).toBe(0);
  expect(reasons(cluster)).toContain("Unhealthy");
  await cluster.close();
});

test("a failed liveness probe restarts the container", async () => {
  const cluster = await testCluster({ nodes: 1, model: () => ({ readyAfterMs: 0 }) });
  await run(cluster, { containers: [{ ...RUN, livenessProbe: { httpGet: { port: 80 }, periodSeconds: 1, failureThreshold: 2 } }] });
  await cluster.until("it runs", () => main(cluster)?.state.running !== undefined);
  await cluster.clock.advance(3_000);
  const [container] = cluster.runtime.containers();
  cluster.runtime.setHealthy(container?.start.id ?? "", false);
  await cluster.until("it was restarted", () => main(cluster)?.restartCount === 1 && main(cluster)?.state.running !== undefined, 10_000);

  expect(reasons(cluster)).toContain("Killing");
  await cluster.close();
});

test("other probes wait for the startup probe", async () => {
  const cluster = await testCluster({ nodes: 1, model: () => ({ readyAfterMs: 4_000 }) });
  const probe = { httpGet: { port: 80 }, periodSeconds: 1 };
  await run(cluster, {
    containers: [{ ...RUN, startupProbe: { ...probe, failureThreshold: 10 }, livenessProbe: { ...probe, failureThreshold: 1 } }],
  });
  await cluster.clock.advance(3_000);
  expect(main(cluster)).toMatchObject({ started: false, ready: false, restartCount: 0 });
  await cluster.until("it has started", () => main(cluster)?.started === true);

  expect(main(cluster)).toMatchObject({ ready: true, restartCount: 0 });
  await cluster.close();
});

test("a deleted pod gets SIGTERM after its preStop, SIGKILL when the grace is over, and goes only when nothing of it runs", async () => {
  const cluster = await testCluster({ nodes: 1, model: () => ({ startMs: 0, termMs: undefined }) });
  await run(cluster, { terminationGracePeriodSeconds: 5, containers: [{ ...RUN, lifecycle: { preStop: { sleep: { seconds: 2 } } } }] });
  await cluster.until("it runs", () => main(cluster)?.state.running !== undefined);
  const deletedAt = cluster.clock.monotonic();
  await remove(cluster);
  await cluster.clock.advance(4_900);
  expect(cluster.runtime.containers()).toHaveLength(1);
  await cluster.until("it is gone", () => pod(cluster) === undefined);

  expect(cluster.clock.monotonic() - deletedAt).toBe(5_000);
  expect(cluster.runtime.containers()).toEqual([]);
  await cluster.close();
});

test("a second delete may shorten the grace, also in the middle of it", async () => {
  const cluster = await testCluster({ nodes: 1, model: () => ({ startMs: 0, termMs: undefined }) });
  await run(cluster, { terminationGracePeriodSeconds: 600 });
  await cluster.until("it runs", () => main(cluster)?.state.running !== undefined);
  await remove(cluster);
  await cluster.clock.advance(1_000);
  await remove(cluster, 1);
  await cluster.until("it is gone", () => pod(cluster) === undefined, 2_000);
  await cluster.close();
});

test("a pod that is deleted by force is ended at once", async () => {
  const cluster = await testCluster({ nodes: 1, model: () => ({ startMs: 0, termMs: undefined }) });
  await run(cluster, { terminationGracePeriodSeconds: 600 });
  await cluster.until("it runs", () => main(cluster)?.state.running !== undefined);
  await remove(cluster, 0);
  await cluster.clock.settle();

  expect(cluster.runtime.containers()).toEqual([]);
  await cluster.close();
});

test("a pod that is deleted while it starts leaves nothing behind", async () => {
  const cluster = await testCluster({ nodes: 1, model: () => ({ startMs: 1_000 }) });
  await run(cluster, {});
  await cluster.clock.advance(500);
  await remove(cluster);
  await cluster.until("it is gone", () => pod(cluster) === undefined, 5_000);
  await cluster.clock.advance(5_000);

  expect(cluster.runtime.containers()).toEqual([]);
  await cluster.close();
});

test("a missing config map holds the container with a reason until it is there", async () => {
  const seen: Readonly<Record<string, string>>[] = [];
  const cluster = await testCluster({
    nodes: 1,
    model: ({ env }) => {
      seen.push(env);
      return {};
    },
  });
  await run(cluster, {
    containers: [{ ...RUN, env: [{ name: "LEVEL", valueFrom: { configMapKeyRef: { name: "config", key: "level" } } }] }],
  });
  await cluster.until("it waits", () => main(cluster)?.state.waiting?.reason === "CreateContainerConfigError");
  await cluster.api.create(
    CONFIG_MAPS,
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "config" }, data: { level: "debug" } },
    { namespace: "default" },
  );
  await cluster.until("it runs", () => main(cluster)?.state.running !== undefined);

  expect(seen.map((env) => env["LEVEL"])).toEqual(["debug"]);
  await cluster.close();
});

test("a container without a command is told what this cluster runs", async () => {
  const cluster = await testCluster({ nodes: 1 });
  await run(cluster, { containers: [{ name: "main", image: "nginx" }] });
  await cluster.until("it waits", () => main(cluster)?.state.waiting?.reason === "CreateContainerError");

  expect(main(cluster)?.state.waiting?.message).toBe(
    "Container main names an image only; this cluster runs processes (container_without_command); found: nginx; allowed: spec.containers[].command; Give the container a command.",
  );
  await cluster.close();
});

test("after its machine died a pod's status is no longer written", async () => {
  const cluster = await testCluster({ nodes: 1, provisioner: { vanishAfterMs: 600_000 }, controlPlane: { leaseGraceMs: 600_000 } });
  await run(cluster, {});
  await cluster.until("it runs", () => main(cluster)?.state.running !== undefined);
  const before = pod(cluster);
  await cluster.provisioner.kill("node-a1");
  await cluster.clock.advance(60_000);

  expect(pod(cluster)).toEqual(before);
  await cluster.close();
});
