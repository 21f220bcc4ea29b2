import { expect, test } from "vitest";
import { parseDeployment } from "../kube/types.ts";
import { strangersOf } from "./strangers.ts";

interface Given {
  readonly instance?: string;
  readonly pool?: string;
  readonly namespace?: string;
  readonly step?: string | null;
  readonly createdAt?: string;
}

function deployment(name: string, given: Given = {}) {
  const {
    instance = name,
    pool = "orders",
    namespace = "default",
    step = `create/${instance}`,
    createdAt = "2030-01-01T00:00:00Z",
  } = given;
  const parsed = parseDeployment({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name,
      namespace,
      uid: `uid-${name}`,
      resourceVersion: "1",
      creationTimestamp: createdAt,
      labels: { "relevo.dev/pool": pool, "relevo.dev/instance": instance },
      annotations: step === null ? {} : { "relevo.dev/step": step },
    },
  });
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

function strangers(...deployments: readonly ReturnType<typeof deployment>[]) {
  const world = { deployments: { list: () => deployments }, statefulSets: { list: () => [] } };
  return strangersOf({
    world: world as unknown as Parameters<typeof strangersOf>[0]["world"],
    namespace: "default",
    name: "orders",
    known: new Set(["orders-known"]),
  });
}

test("what a create step made for an instance that the store does not know is a stranger, with all its objects and the age of the newest", () => {
  expect(
    strangers(
      deployment("orders-x"),
      deployment("orders-x-cache", { instance: "orders-x", createdAt: "2030-01-01T00:05:00Z" }),
      deployment("orders-known"),
      deployment("orders-y", { step: "create/orders-y#2" }),
    ),
  ).toEqual([
    {
      instance: "orders-x",
      createdAt: Date.UTC(2030, 0, 1, 0, 5),
      objects: [
        { apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: "orders-x", uid: "uid-orders-x" },
        { apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: "orders-x-cache", uid: "uid-orders-x-cache" },
      ],
    },
    {
      instance: "orders-y",
      createdAt: Date.UTC(2030, 0, 1),
      objects: [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "default", name: "orders-y", uid: "uid-orders-y" }],
    },
  ]);
});

test.each<[string, Given]>([
  ["of another pool", { pool: "shop" }],
  ["in another namespace", { namespace: "elsewhere" }],
  ["without the mark of a step: somebody wrote the labels", { step: null }],
  ["with the mark of another instance's step: somebody copied it", { step: "create/orders-a" }],
])("what is %s is nobody of ours (I8)", (_, given) => {
  expect(strangers(deployment("orders-x", given))).toEqual([]);
});
