/**
 * The replica count of a workload passes to a Pool and stays its own, on a real API server with its built-in autoscaler kind; KEDA is the test itself, with the
 * shapes of its definition. Level: real API server.
 */
import { credentials, makeGenericClientConstructor } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { ComposedController } from "../../src/cli/processes/controller.ts";
import { externalScalerService, type GetMetricsResponse } from "../../src/demand/keda/contract.ts";
import { startKedaScaler } from "../../src/demand/keda/server.ts";
import { systemClock } from "../../src/kernel/system.ts";
import { isNotFound, type KubeObject, type ObjectRef } from "../../src/kube/api.ts";
import { DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, POOLS, SCALED_OBJECTS } from "../../src/kube/resources.ts";
import type { AdoptCommand } from "../../src/server/adoption-state.ts";
import { sentenceOf } from "../../src/model/reasons.ts";
import { until as holds } from "../../src/gateway/testing/gateway.ts";
import { scaleTarget } from "../../src/act/steps/scale-target.ts";
import { ServiceDriver } from "../../src/drivers/service/service-driver.ts";
import { replicaManagersOf } from "../../src/model/parse-scale-owner.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";
import { controllerOver } from "./controller.ts";

let cluster: RealCluster;
let accounts: string;
let composed: ComposedController | undefined;
/** What the source says; throws when it is an error. */
let backlog: number | Error = 0;

beforeAll(async () => {
  cluster = await startKubernetes({ parts: [] });
  await cluster.kubectl("apply", "-k", "deploy/crds");
  accounts = await cluster.kubectl("kustomize", "deploy/pool-namespace");
  await cluster.kubectlWith(JSON.stringify(SCALED_OBJECT_DEFINITION), "apply", "-f", "-");
  await cluster.kubectl("wait", "--for=condition=Established", "crd/pools.relevo.dev", "crd/scaledobjects.keda.sh", "--timeout=30s");
});
afterAll(() => cluster?.stop());
afterEach(async () => {
  await composed?.close();
  composed = undefined;
});

const SCALED_OBJECT_DEFINITION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "scaledobjects.keda.sh" },
  spec: {
    group: "keda.sh",
    scope: "Namespaced",
    names: { kind: "ScaledObject", plural: "scaledobjects", singular: "scaledobject", listKind: "ScaledObjectList" },
    versions: [
      {
        ...{ name: "v1alpha1", served: true, storage: true },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

async function start(): Promise<ComposedController> {
  composed = await controllerOver(cluster.api, {
    connections: { find: (name) => ({ name, kind: "queue", url: "http://queue.invalid", token: "t" }) },
    demandAdapters: {
      queue: {
        kind: "queue",
        needs: { infrastructure: "relevo queue", permissions: [] },
        flowOf: ({ queue }) => `queue/${queue}`,
        open: ({ queue }) => ({
          read: async () => {
            if (backlog instanceof Error) throw backlog;
            return { backlog, inFlight: 0, oldestAgeMs: null, flow: `queue/${queue}`, valueAt: null, sourceNow: null };
          },
          close: async () => undefined,
        }),
      },
    },
  });
  await composed.controller.start();
  return composed;
}

const labels = { app: "web" };
const deploymentIn = (namespace: string) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace },
  spec: {
    replicas: 3,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "web:1" }] } },
  },
});

let made = 0;
/** A namespace with a Deployment `web` of three replicas, as kubectl makes one, and a Pool that has it as target. */
async function aWorkload({ by = "kubectl" }: { readonly by?: string } = {}): Promise<string> {
  const namespace = `adoption-${(made += 1)}`;
  await cluster.kubectl("create", "namespace", namespace);
  // What the account of a namespace may do is all that a Pool of it gets.
  await cluster.kubectlWith(accounts.replaceAll("namespace: default", `namespace: ${namespace}`), "apply", "-n", namespace, "-f", "-");
  await cluster.kubectlWith(JSON.stringify(deploymentIn(namespace)), "apply", "--server-side", `--field-manager=${by}`, "-f", "-");
  const pool = {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "web", namespace },
    spec: {
      driver: "worker",
      size: { desired: 3, floor: 1, max: 20 },
      target: { kind: "Deployment", name: "web" },
      worker: { flow: "queue/captures" },
      scale: {
        signal: { kind: "queue", connection: "main", queue: "captures" },
        ...{ target: 10, pollEvery: "100ms", cooldown: "0s" },
        down: { window: "0s", step: { instances: 100, percent: 100, per: "1s" } },
        up: { step: { instances: 100, percent: 1000, per: "1s" } },
      },
    },
  };
  await cluster.api.create(POOLS, pool, { namespace });
  return namespace;
}

const target = (namespace: string): ObjectRef => ({ type: DEPLOYMENTS, namespace, name: "web" });
const replicas = async (namespace: string): Promise<unknown> =>
  ((await cluster.api.get(target(namespace)))["spec"] as { replicas?: number }).replicas;

async function makeHpa(namespace: string, name = "web", madeBy?: KubeObject): Promise<KubeObject> {
  const ownerReferences =
    madeBy === undefined
      ? []
      : [{ apiVersion: "keda.sh/v1alpha1", kind: "ScaledObject", name: madeBy.metadata.name, uid: madeBy.metadata.uid }];
  return cluster.api.create(HORIZONTAL_POD_AUTOSCALERS, {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name, namespace, ownerReferences },
    spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, minReplicas: 2, maxReplicas: 9 },
  });
}

async function hpaCount(namespace: string): Promise<number> {
  return (await cluster.api.list(HORIZONTAL_POD_AUTOSCALERS, { namespace })).items.length;
}

const command = (namespace: string, more: Partial<AdoptCommand> = {}): AdoptCommand => ({
  ...{ pool: `${namespace}/web`, by: "alice", removeOwner: null, acceptManagers: ["kubectl"], dryRun: false },
  ...more,
});

async function reasons(namespace: string): Promise<readonly string[]> {
  const pass = composed?.controller.lastPass(`${namespace}/web`);
  return (pass?.plan.holds ?? []).map(({ reason }) => reason.code);
}

const until = (what: string, isSo: () => Promise<boolean>) => holds(what, isSo, 20_000);
const untilHeld = (namespace: string, code: string) =>
  until(`it is held as ${code}`, async () => (await reasons(namespace)).includes(code));

async function refusal(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(
    () => "it was done",
    (error: { readonly code?: string }) => error.code ?? error,
  );
}

test("an HPA is named, removed by its UID alone, none is left, and the replicas survive the hand-over (K3)", async () => {
  backlog = 30;
  const namespace = await aWorkload();
  const hpa = await makeHpa(namespace);
  const { controlPlane, controller } = await start();
  await untilHeld(namespace, "scale_other_owner");
  expect(sentenceOf(controller.lastPass(`${namespace}/web`)?.plan.holds[0]?.reason ?? { code: "gone", params: {} })).toBe(
    "HorizontalPodAutoscaler/web sets the replicas of Deployment/web too (keeps it between 2 and 9 by metrics of its own): two owners of one count, so nothing is written",
  );
  expect(await refusal(controlPlane.adopt(command(namespace)))).toBe("adopt_other_owners");
  const other = { kind: "HorizontalPodAutoscaler", name: "web", uid: "another" };
  expect(await refusal(controlPlane.adopt(command(namespace, { removeOwner: other })))).toBe("adopt_owner_refused");
  expect(await hpaCount(namespace)).toBe(1);

  const removeOwner = { kind: "hpa", name: "web", uid: hpa.metadata.uid };
  expect(await controlPlane.adopt(command(namespace, { removeOwner, dryRun: true }))).toMatchObject({ outcome: "would_adopt" });
  expect(await hpaCount(namespace)).toBe(1);
  expect(await controlPlane.adopt(command(namespace, { removeOwner }))).toMatchObject({
    ...{ outcome: "adopted", replicas: 3, removed: "HorizontalPodAutoscaler/web", owners: [] },
  });
  expect([await hpaCount(namespace), await replicas(namespace)]).toEqual([0, 3]);
  await untilHeld(namespace, "target_follows");

  backlog = 75;
  await until("it follows the demand", async () => (await replicas(namespace)) === 8);
  const managed = (await cluster.api.get(target(namespace))).metadata as unknown as {
    managedFields: readonly { manager: string; subresource?: string; fieldsV1: object }[];
  };
  expect(
    managed.managedFields
      .filter(({ fieldsV1 }) => JSON.stringify(fieldsV1).includes('f:replicas":{}'))
      .map(({ manager, subresource }) => [manager, subresource]),
  ).toEqual([["relevo", "scale"]]);
  expect(await controlPlane.adopt(command(namespace))).toMatchObject({
    outcome: "already_adopted",
    removed: "HorizontalPodAutoscaler/web",
  });
  const changes = await controlPlane.listScaleChanges({ pool: `${namespace}/web`, limit: 10 });
  expect(changes.map(({ from, to, reason }) => [from, to, reason])).toEqual([
    [3, 8, "scale_up"],
    [3, 3, "scale_adopted"],
  ]);
});

test("an HPA that comes back is noticed, nothing more is written, and adopting anew goes on (I20)", async () => {
  backlog = 30;
  const namespace = await aWorkload();
  const { controlPlane } = await start();
  await untilHeld(namespace, "scale_not_adopted");
  await controlPlane.adopt(command(namespace));
  await untilHeld(namespace, "target_follows");
  const hpa = await makeHpa(namespace);
  backlog = 120;
  await untilHeld(namespace, "scale_other_owner");
  expect(await replicas(namespace)).toBe(3);
  await controlPlane.adopt(command(namespace, { removeOwner: { kind: "HorizontalPodAutoscaler", name: "web", uid: hpa.metadata.uid } }));
  await until("it follows the demand again", async () => (await replicas(namespace)) === 12);
});

test("an HPA of which the controller has not heard yet stops the write all the same: it is read before each (I20)", async () => {
  backlog = 30;
  const namespace = await aWorkload();
  const seen = await cluster.api.get(target(namespace));
  const payload = {
    target: { kind: "Deployment" as const, namespace, name: "web", uid: seen.metadata.uid },
    ...{ from: 3, to: 5, managers: [...replicaManagersOf(seen)] },
  };
  const ports = { kube: cluster.api, driver: new ServiceDriver({ clock: systemClock }), step: { id: "s" } };
  await makeHpa(namespace);
  expect(await scaleTarget.act(payload, ports)).toEqual({ state: "superseded", code: "other_owner" });
  expect(await replicas(namespace)).toBe(3);
});

test("who writes the count by hand has taken it back: it stays as that one wrote it (K3)", async () => {
  backlog = 30;
  const namespace = await aWorkload();
  const { controlPlane } = await start();
  await untilHeld(namespace, "scale_not_adopted");
  await controlPlane.adopt(command(namespace));
  backlog = 50;
  await until("it follows the demand", async () => (await replicas(namespace)) === 5);
  await cluster.kubectl("scale", "deployment/web", "-n", namespace, "--replicas=7");
  await untilHeld(namespace, "scale_other_owner");
  backlog = 90;
  await systemClock.sleep(500);
  expect(await replicas(namespace)).toBe(7);
  await controlPlane.adopt(command(namespace));
  await until("it follows the demand again", async () => (await replicas(namespace)) === 9);
});

test("GitOps is named with what is to be changed there, and once it writes again it is not fought (K3)", async () => {
  backlog = 30;
  const namespace = await aWorkload({ by: "argocd-controller" });
  const { controlPlane } = await start();
  await untilHeld(namespace, "scale_other_owner");
  await expect(controlPlane.adopt(command(namespace))).rejects.toMatchObject({
    code: "adopt_other_owners",
    found: "Manager/argocd-controller writes what its repository says, and again at each reconciliation",
    todo: "in its Application ignore it (ignoreDifferences: jsonPointers /spec/replicas, syncOptions RespectIgnoreDifferences=true), then --accept-manager argocd-controller",
  });
  await controlPlane.adopt(command(namespace, { acceptManagers: ["argocd-controller"] }));
  backlog = 60;
  await until("it follows the demand", async () => (await replicas(namespace)) === 6);
  await cluster.kubectlWith(
    JSON.stringify(deploymentIn(namespace)),
    "apply",
    "--server-side",
    "--force-conflicts",
    "--field-manager=argocd-controller",
    "-f",
    "-",
  );
  await untilHeld(namespace, "scale_other_owner");
  await systemClock.sleep(500);
  expect(await replicas(namespace)).toBe(3);
});

test("a ScaledObject goes with the HPA that KEDA made for it; one that resets the count is refused first (K3)", async () => {
  backlog = 40;
  const namespace = await aWorkload();
  const ref: ObjectRef = { type: SCALED_OBJECTS, namespace, name: "web" };
  const made = await cluster.api.create(SCALED_OBJECTS, {
    apiVersion: "keda.sh/v1alpha1",
    kind: "ScaledObject",
    metadata: { name: "web", namespace, finalizers: ["finalizer.keda.sh"] },
    spec: {
      scaleTargetRef: { name: "web" },
      ...{ minReplicaCount: 1, maxReplicaCount: 9, advanced: { restoreToOriginalReplicaCount: true } },
      triggers: [{ type: "redis", metadata: {} }],
    },
  });
  const hpa = await makeHpa(namespace, "keda-hpa-web", made);
  const { controlPlane } = await start();
  await untilHeld(namespace, "scale_other_owner");
  const itsHpa = { kind: "HorizontalPodAutoscaler", name: "keda-hpa-web", uid: hpa.metadata.uid };
  await expect(controlPlane.adopt(command(namespace, { removeOwner: itsHpa }))).rejects.toMatchObject({
    todo: "remove the ScaledObject: KEDA takes it away then",
  });
  const removeOwner = { kind: "ScaledObject", name: "web", uid: made.metadata.uid };
  expect(await refusal(controlPlane.adopt(command(namespace, { removeOwner })))).toBe("adopt_owner_refused");
  await cluster.api.patch(ref, { spec: { advanced: { restoreToOriginalReplicaCount: false } } });

  const adopting = controlPlane.adopt(command(namespace, { removeOwner }));
  // KEDA's own part.
  await until("it is asked to go", async () => (await cluster.api.get(ref)).metadata.deletionTimestamp !== undefined);
  expect(await hpaCount(namespace)).toBe(1);
  await cluster.api.delete({ type: HORIZONTAL_POD_AUTOSCALERS, namespace, name: "keda-hpa-web" });
  await cluster.api.patch(target(namespace), { spec: { replicas: 1 } });
  await cluster.api.patch(ref, { metadata: { finalizers: null } });

  expect(await adopting).toMatchObject({ outcome: "adopted", removed: "ScaledObject/web", replicas: 3, resetTo: 1, owners: [] });
  expect([await hpaCount(namespace), await gone(ref)]).toEqual([0, true]);
  await until("what was reset is put back, and the demand followed", async () => (await replicas(namespace)) === 4);
});

test("a signal that is not valid is no reason to take anything over (K2, K8)", async () => {
  backlog = new Error("no route to the queue");
  const namespace = await aWorkload();
  const hpa = await makeHpa(namespace);
  const { controlPlane } = await start();
  await untilHeld(namespace, "scale_other_owner");
  const removeOwner = { kind: "HorizontalPodAutoscaler", name: "web", uid: hpa.metadata.uid };
  expect(await refusal(controlPlane.adopt(command(namespace, { removeOwner })))).toBe("adopt_signal_invalid");
  expect(await hpaCount(namespace)).toBe(1);
});

test("a target that is paused, recreated or gone stays as it is; given back it is only watched (K3)", async () => {
  backlog = 30;
  const namespace = await aWorkload();
  const { controlPlane } = await start();
  await untilHeld(namespace, "scale_not_adopted");
  await controlPlane.adopt(command(namespace));
  await untilHeld(namespace, "target_follows");
  await cluster.api.patch(target(namespace), { spec: { paused: true } });
  await untilHeld(namespace, "scale_target_paused");
  backlog = 60;
  await systemClock.sleep(500);
  expect(await replicas(namespace)).toBe(3);
  await cluster.api.patch(target(namespace), { spec: { paused: false } });
  await until("it follows the demand", async () => (await replicas(namespace)) === 6);
  expect(await controlPlane.releaseTarget(`${namespace}/web`, "alice")).toMatchObject({ outcome: "released", replicas: 6 });
  backlog = 100;
  await untilHeld(namespace, "scale_not_adopted");
  expect(await replicas(namespace)).toBe(6);
  await controlPlane.adopt(command(namespace));
  await until("it follows the demand again", async () => (await replicas(namespace)) === 10);
  await cluster.kubectl("get", "deployment/web", "-n", namespace, "-o", "json").then(async (text) => {
    await cluster.kubectl("delete", "deployment/web", "-n", namespace, "--wait=false");
    await until("it is gone", () => gone(target(namespace)));
    await untilHeld(namespace, "scale_target_gone");
    const { metadata: _, status: __, ...rest } = JSON.parse(text) as Record<string, unknown>;
    await cluster.kubectlWith(JSON.stringify({ ...rest, metadata: { name: "web", namespace } }), "create", "-f", "-");
  });
  await untilHeld(namespace, "scale_target_replaced");
});

test("a ScaledObject that asks this Pool is its hand: KEDA is told the size and writes it, Relevo writes nothing (K11, I20)", async () => {
  backlog = 40;
  const namespace = await aWorkload();
  const made = await cluster.api.create(SCALED_OBJECTS, {
    apiVersion: "keda.sh/v1alpha1",
    kind: "ScaledObject",
    metadata: { name: "web", namespace },
    spec: {
      scaleTargetRef: { name: "web" },
      triggers: [{ type: "external-push", metadata: { scalerAddress: "relevo:6000", pool: `${namespace}/web` } }],
    },
  });
  await makeHpa(namespace, "keda-hpa-web", made);
  const { sizes, controller } = await start();
  await untilHeld(namespace, "scale_through_keda");
  const scaler = await startKedaScaler({ host: "127.0.0.1", port: 0, sizes, clock: systemClock, log: () => undefined });
  const keda = aKeda(scaler.address, namespace);
  try {
    await until("it decided", async () => (await keda.size()) === 4);
    backlog = 110;
    await until("it decided anew", async () => (await keda.size()) === 11);
    expect(await replicas(namespace)).toBe(3);
    // KEDA's HPA.
    await cluster.kubectl("scale", "deployment/web", "-n", namespace, "--replicas=11");
    await until("it is seen", async () => controller.lastPass(`${namespace}/web`)?.snapshot.target?.object?.replicas === 11);
    expect(await reasons(namespace)).toEqual(["scale_through_keda"]);
    backlog = new Error("no route to the queue");
    await untilHeld(namespace, "scale_demand_invalid");
    expect(await keda.size()).toBe(11);
    const written = await cluster.api.get(target(namespace));
    expect(replicaManagersOf(written).map(({ manager }) => manager)).toEqual(["kubectl"]);
  } finally {
    keda.close();
    await scaler.close();
  }
});

/** Its calls for this ScaledObject, as KEDA makes them. */
function aKeda(address: string, namespace: string): { size(): Promise<number | string>; close(): void } {
  const Client = makeGenericClientConstructor(externalScalerService(), "externalscaler.ExternalScaler");
  const client = new Client(address, credentials.createInsecure());
  const scaledObjectRef = { name: "web", namespace, scalerMetadata: { scalerAddress: address, pool: `${namespace}/web` } };
  const call = (
    client as unknown as Record<string, (request: unknown, answer: (error: Error | null, value: GetMetricsResponse) => void) => void>
  )["GetMetrics"];
  return {
    size: () =>
      new Promise((resolve) => {
        call?.call(client, { scaledObjectRef, metricName: "s0-relevo" }, (error, value) =>
          resolve(error === null ? (value.metricValues[0]?.metricValueFloat ?? "none") : error.message),
        );
      }),
    close: () => client.close(),
  };
}

async function gone(ref: ObjectRef): Promise<boolean> {
  return cluster.api.get(ref).then(() => false, isNotFound);
}
