/** A Pool that scales a workload which others made, in a whole controller under a virtual clock (K3, I20). Level: simulated. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { KubeApiError, type KubeObject, type ObjectRef } from "../../src/kube/api.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS } from "../../src/kube/resources.ts";
import type { AdoptCommand, AdoptionResult } from "../../src/server/adoption-state.ts";
import { capturePool, Harness, ordersPool, workload } from "./harness.ts";

const POOL = "default/capture";
const WEB: ObjectRef = { type: DEPLOYMENTS, namespace: "default", name: "web" };
const targeting = (name = "capture") => {
  const pool = capturePool({ down: { window: "0s", step: { instances: 10, per: "5s" } } }, { target: { kind: "Deployment", name: "web" } });
  const { blueprint: _, ...spec } = pool["spec"] as { readonly blueprint: unknown };
  return { ...pool, metadata: { name, namespace: "default" }, spec };
};

let harness: Harness;
beforeEach(async () => {
  harness = await Harness.start({ work: { pushes: true } });
  const { group, version, kind, plural } = HORIZONTAL_POD_AUTOSCALERS;
  await harness.cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      ...{ group, scope: "Namespaced", names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` } },
      versions: [
        {
          ...{ name: version, served: true, storage: true },
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  });
  // A kind that was not there is asked for again after half a minute.
  await harness.pass(40_000);
  await harness.cluster.api.create(DEPLOYMENTS, workload("web", {}, 2), { namespace: "default" });
  await harness.apply(targeting());
});
afterEach(() => harness.close());

const replicas = async (): Promise<number> => ((await harness.cluster.api.get(WEB))["spec"] as { readonly replicas: number }).replicas;
const isHeld = async (code: string, pool = POOL) => (await harness.reasons(pool)).includes(code);
const untilHeld = (code: string, pool = POOL) => harness.until(`it is held as ${code}`, () => isHeld(code, pool), 60_000);

async function adopt(more: Partial<AdoptCommand> = {}): Promise<AdoptionResult | string> {
  const asked = harness.controlPlane
    .adopt({ pool: POOL, by: "alice", removeOwner: null, acceptManagers: [], dryRun: false, ...more })
    .catch((error: { readonly code: string }) => error.code);
  let answer: AdoptionResult | string | undefined;
  void asked.then((value) => (answer = value));
  await harness.until("it is answered", () => answer !== undefined, 30_000);
  return answer ?? "";
}

function makeHpa(target = "web"): Promise<KubeObject> {
  const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: target };
  const hpa = {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "web" },
    spec: { scaleTargetRef, maxReplicas: 9 },
  };
  return harness.cluster.api.create(HORIZONTAL_POD_AUTOSCALERS, hpa, { namespace: "default" });
}

/** All that the controller wrote of workloads and autoscalers. */
const written = () =>
  harness.kube.calls
    .filter(({ verb, kind }) => !["get", "list", "watch"].includes(verb) && ["Deployment", "HorizontalPodAutoscaler"].includes(kind))
    .map(({ verb, kind, name }) => `${verb} ${kind} ${name ?? ""}`);

test("it follows the backlog after it was adopted, by its scale alone, also past a new controller (K3)", async () => {
  harness.work.add(12);
  await untilHeld("scale_not_adopted");
  await harness.pass(20_000);
  expect([await replicas(), written()]).toEqual([2, []]);

  expect(await adopt()).toMatchObject({ outcome: "adopted", replicas: 2, owners: [] });
  await harness.until("it follows", async () => (await replicas()) === 6, 60_000);
  await harness.restartController(5_000);
  await harness.until("it follows on", async () => {
    harness.work.backlog.length = 0;
    return (await replicas()) === 1;
  });
  expect([...new Set(written())]).toEqual(["patchScale Deployment web"]);
  expect(await harness.records(POOL)).toEqual([]);
});

test("an HPA is seen as it comes, holds everything, and goes only by its UID (K3, I8, I20)", async () => {
  harness.work.add(4);
  await untilHeld("scale_not_adopted");
  await adopt();
  await untilHeld("target_follows");
  const hpa = await makeHpa();
  await untilHeld("scale_other_owner");
  harness.work.add(8);
  await harness.pass(30_000);
  expect([await replicas(), written()]).toEqual([2, []]);
  const asked = { kind: "hpa", name: "web" };
  expect([await adopt(), await adopt({ removeOwner: { ...asked, uid: "another" } })]).toEqual([
    "adopt_other_owners",
    "adopt_owner_refused",
  ]);
  expect(await adopt({ removeOwner: { ...asked, uid: hpa.metadata.uid } })).toMatchObject({ outcome: "adopted" });
  await harness.until("it follows", async () => (await replicas()) === 6, 60_000);
  expect([...new Set(written())]).toEqual(["delete HorizontalPodAutoscaler web", "patchScale Deployment web"]);
});

test("two Pools with one target are two owners: neither writes (I20)", async () => {
  await untilHeld("scale_not_adopted");
  await adopt();
  await untilHeld("target_follows");
  await harness.apply(targeting("second"));
  harness.work.add(12);
  await untilHeld("scale_other_owner", "default/second");
  await untilHeld("scale_other_owner");
  expect(await adopt({ pool: "default/second" })).toBe("adopt_other_owners");
});

test("who may not see the autoscalers takes nothing over and writes nothing (K3)", async () => {
  await untilHeld("scale_not_adopted");
  harness.kube.failing = ({ verb, kind }) =>
    kind === "HorizontalPodAutoscaler" && verb === "list" ? new KubeApiError({ code: 403, reason: "Forbidden" }, "test") : undefined;
  expect(await adopt()).toBe("kube_forbidden");
  expect(written()).toEqual([]);
});

test("an HPA on an instance that Relevo made is told too, as it comes and as it goes (I20)", async () => {
  const [instance] = await harness.serve(ordersPool({ desired: 1 }));
  await makeHpa(instance?.objects.find(({ kind }) => kind === "Deployment")?.name);
  await untilHeld("scale_other_owner", "default/orders");
  await harness.cluster.api.delete({ type: HORIZONTAL_POD_AUTOSCALERS, namespace: "default", name: "web" });
  await harness.until("it is told no more", async () => !(await isHeld("scale_other_owner", "default/orders")));
});

test("given back it keeps its count, and nothing that was decided before is written after it (K3)", async () => {
  harness.work.add(4);
  await untilHeld("scale_not_adopted");
  await adopt();
  await untilHeld("target_follows");
  harness.work.add(8);
  let answer: string | undefined;
  void harness.controlPlane.releaseTarget(POOL, "alice").then(
    ({ outcome }) => (answer = outcome),
    (error: { readonly code: string }) => (answer = error.code),
  );
  await harness.until("it is answered", () => answer !== undefined, 30_000);
  const [kept, before] = [await replicas(), written().length];
  harness.work.add(8);
  await harness.pass(60_000);
  expect([answer, await replicas(), written().length, await isHeld("scale_not_adopted")]).toEqual(["released", kept, before, true]);
});
