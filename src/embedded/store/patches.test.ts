import { expect, test } from "vitest";
import { KubeApiError, type KubeObject } from "../../kube/api.ts";
import { applyJsonPatch } from "./json-patch.ts";
import type { JsonObject } from "./json.ts";
import { mergePatch } from "./merge-patch.ts";
import { type Applied, applyObject } from "./server-side-apply.ts";
import { strategicMerge } from "./strategic-merge.ts";

test("a merge patch follows the examples of RFC 7386", () => {
  const cases: readonly [unknown, unknown, unknown][] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "foo" }, null, null],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, expected] of cases) expect(mergePatch(target, patch)).toEqual(expected);
});

const pod = {
  metadata: { finalizers: ["a"] },
  spec: {
    containers: [
      { name: "main", image: "1", env: [{ name: "A", value: "1" }], args: ["x"] },
      { name: "side", image: "1" },
    ],
    tolerations: [{ key: "a" }],
  },
};
const patched = (patch: JsonObject): unknown => strategicMerge(pod, patch, "Pod");

test("a strategic merge patch merges named lists by key, replaces others, and takes sets together", () => {
  expect(
    patched({
      spec: { containers: [{ name: "main", image: "2", env: [{ name: "B", value: "2" }], args: ["y"] }], tolerations: [{ key: "b" }] },
      metadata: { finalizers: ["b"] },
    }),
  ).toEqual({
    metadata: { finalizers: ["a", "b"] },
    spec: {
      containers: [
        {
          name: "main",
          image: "2",
          env: [
            { name: "B", value: "2" },
            { name: "A", value: "1" },
          ],
          args: ["y"],
        },
        { name: "side", image: "1" },
      ],
      tolerations: [{ key: "b" }],
    },
  });
});

test("a strategic merge patch obeys its directives", () => {
  expect(patched({ spec: { containers: [{ $patch: "delete", name: "side" }] } })).toMatchObject({
    spec: { containers: [{ name: "main" }] },
  });
  expect(patched({ spec: { containers: [{ $patch: "replace" }, { name: "new" }] } })).toMatchObject({
    spec: { containers: [{ name: "new" }] },
  });
  expect(patched({ spec: { $patch: "replace", a: 1 } })).toMatchObject({ spec: { a: 1 } });
  expect(patched({ spec: { $retainKeys: ["tolerations"] } })).toEqual({ metadata: pod.metadata, spec: { tolerations: [{ key: "a" }] } });
  expect(patched({ metadata: { "$deleteFromPrimitiveList/finalizers": ["a"] } })).toMatchObject({ metadata: { finalizers: [] } });
  expect(
    patched({ spec: { "$setElementOrder/containers": [{ name: "side" }, { name: "main" }], containers: [{ name: "main", image: "3" }] } }),
  ).toMatchObject({
    spec: { containers: [{ name: "side" }, { name: "main", image: "3" }] },
  });
  expect(() => patched({ spec: { containers: [{ image: "nameless" }] } })).toThrow(/does not contain declared merge key: name/);
});

test("the ports of a service merge by port, those of a container by containerPort", () => {
  const service = { spec: { ports: [{ port: 80, name: "a" }] } };
  expect(strategicMerge(service, { spec: { ports: [{ port: 80, name: "b" }] } }, "Service")).toEqual({
    spec: { ports: [{ port: 80, name: "b" }] },
  });
  const container = { ports: [{ containerPort: 80 }] };
  expect(strategicMerge(container, { ports: [{ containerPort: 81 }] }, "Pod")).toEqual({
    ports: [{ containerPort: 81 }, { containerPort: 80 }], // what is new goes first, as a real server has it
  });
});

test("a JSON patch works on a copy; a failed test and a missing path are 422", () => {
  const target = Object.freeze({ a: Object.freeze([1, 2]) });
  expect(
    applyJsonPatch(target, [
      { op: "test", path: "/a/0", value: 1 },
      { op: "add", path: "/a/-", value: 3 },
    ]),
  ).toEqual({ a: [1, 2, 3] });
  for (const operations of [
    [{ op: "test", path: "/a/0", value: 9 }],
    [{ op: "replace", path: "/b/c", value: 1 }],
    [{ op: "remove", path: "/zz" }],
  ]) {
    expect(codeOf(() => applyJsonPatch(target, operations))).toBe(422);
  }
  expect(codeOf(() => applyJsonPatch(target, {}))).toBe(400);
});

function codeOf(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error instanceof KubeApiError ? error.httpCode : error;
  }
}

/** Applies in turn, as a server would, and returns the last state without its managed fields. */
function applied(...steps: readonly { readonly manager: string; readonly config: JsonObject; readonly force?: boolean }[]): JsonObject {
  let live: KubeObject | undefined;
  for (const { manager, config, force = false } of steps) {
    const result: Applied = applyObject(
      live,
      { apiVersion: "v1", kind: "Pod", ...config },
      { manager, force, at: "2030-01-01T00:00:00Z", custom: false },
    );
    const metadata = { ...(result.object["metadata"] as JsonObject | undefined), managedFields: result.managedFields };
    live = { ...result.object, metadata } as unknown as KubeObject;
  }
  const { metadata: _metadata, apiVersion: _apiVersion, kind: _kind, ...rest } = live as unknown as Record<string, unknown>;
  return rest;
}

test("apply removes what its manager no longer names, and leaves alone what others own", () => {
  const first = {
    spec: { containers: [{ name: "main", image: "1", env: [{ name: "A" }, { name: "B" }] }], hostname: "h", subdomain: "s" },
  };
  const other = { spec: { containers: [{ name: "side", image: "2" }], subdomain: "s" } };
  const second = { spec: { containers: [{ name: "main", image: "1", env: [{ name: "B" }] }] } };

  expect(applied({ manager: "a", config: first }, { manager: "b", config: other }, { manager: "a", config: second })).toEqual({
    spec: {
      containers: [
        { name: "main", image: "1", env: [{ name: "B" }] },
        { name: "side", image: "2" },
      ],
      subdomain: "s",
    },
  });
});

test("apply of another's field with another value is a conflict that names it; force takes it over", () => {
  const a = { manager: "a", config: { spec: { hostname: "h", containers: [{ name: "main", image: "1" }] } } };
  const b = { manager: "b", config: { spec: { hostname: "other", containers: [{ name: "main", image: "2" }] } } };
  try {
    applied(a, b);
    expect.unreachable();
  } catch (error) {
    expect((error as KubeApiError).status).toMatchObject({
      code: 409,
      reason: "Conflict",
      details: {
        causes: [
          { reason: "FieldManagerConflict", field: ".spec.hostname" },
          { reason: "FieldManagerConflict", field: '.spec.containers["name"="main"].image' },
        ],
      },
    });
  }
  expect(applied(a, { ...b, force: true }, { manager: "a", config: {} })).toEqual({
    spec: { hostname: "other", containers: [{ name: "main", image: "2" }] },
  });
});
