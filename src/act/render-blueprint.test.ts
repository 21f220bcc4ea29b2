import { expect, test } from "vitest";
import { renderBlueprint } from "./render-blueprint.ts";
import { BLUEPRINT } from "./testing/world.ts";

const NAMES = { instance: "orders-1", pool: "orders", site: "north", namespace: "shop" };

test("placeholders, labels, selector, replicas and environment are filled in, nothing else (D5)", () => {
  const labels = { "relevo.dev/pool": "orders", "relevo.dev/instance": "orders-1" };

  expect(renderBlueprint(BLUEPRINT, NAMES)).toEqual([
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "orders-1-settings", namespace: "shop", labels }, data: { pool: "orders" } },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "orders-1", namespace: "shop", labels: { app: "orders", ...labels } },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: "orders", "relevo.dev/instance": "orders-1" } },
        template: {
          metadata: { labels: { app: "orders", ...labels } },
          spec: {
            containers: [
              {
                name: "main",
                image: "orders:1",
                env: [
                  { name: "SITE", value: "north" },
                  { name: "RELEVO_INSTANCE", value: "orders-1" },
                  { name: "RELEVO_POOL", value: "orders" },
                ],
              },
            ],
          },
        },
      },
    },
  ]);
});

test("members keep the replicas of the blueprint; a lead StatefulSet too, and has one when it says nothing", () => {
  const workload = (kind: string, name: string, replicas?: number) => ({
    apiVersion: "apps/v1",
    kind,
    metadata: { name },
    spec: { ...(replicas === undefined ? {} : { replicas }), template: { spec: { containers: [] } } },
  });
  const replicasOf = (...objects: object[]) =>
    renderBlueprint({ objects }, NAMES).map((object) => (object["spec"] as { replicas?: number }).replicas);

  expect(replicasOf(workload("Deployment", "lead", 5), workload("Deployment", "worker", 2))).toEqual([1, 2]);
  expect(replicasOf(workload("StatefulSet", "lead", 3))).toEqual([3]);
  expect(replicasOf(workload("StatefulSet", "lead"))).toEqual([1]);
});

test("ownerReferences of a blueprint are dropped, keys are left as they are, an environment of ours is not doubled", () => {
  const [object] = renderBlueprint(
    {
      objects: [
        {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "x", ownerReferences: [{ uid: "1" }], annotations: { "$(relevo.pool)": "$(relevo.pool)" } },
          spec: { template: { spec: { containers: [{ name: "main", env: [{ name: "RELEVO_POOL", value: "wrong" }] }] } } },
        },
      ],
    },
    NAMES,
  );

  expect(object?.["metadata"]).toEqual({
    name: "x",
    namespace: "shop",
    labels: { "relevo.dev/pool": "orders", "relevo.dev/instance": "orders-1" },
    annotations: { "$(relevo.pool)": "orders" },
  });
  expect(object?.["spec"]).toMatchObject({
    template: {
      spec: {
        containers: [
          {
            env: [
              { name: "RELEVO_INSTANCE", value: "orders-1" },
              { name: "RELEVO_POOL", value: "orders" },
            ],
          },
        ],
      },
    },
  });
});

test("pods get the PriorityClass of their pool where there is one and the blueprint names none (S12)", () => {
  const pods = (spec: object) => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "a" }, spec: { template: { spec } } });
  const classesOf = (spec: object, names = {}) =>
    renderBlueprint({ objects: [pods(spec)] }, { ...NAMES, ...names }).map(
      (object) => (object["spec"] as { template: { spec: { priorityClassName?: string } } }).template.spec.priorityClassName,
    );

  expect(classesOf({}, { priority: "critical" })).toEqual(["relevo-critical"]);
  expect(classesOf({ priorityClassName: "theirs" }, { priority: "critical" })).toEqual(["theirs"]);
  expect(classesOf({})).toEqual([undefined]);
});
