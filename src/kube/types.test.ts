import { expect, test } from "vitest";
import type { KubeObject } from "./api.ts";
import { parseEvent, parseLease, parseNode, parseNodeClaim, parsePod, parseStatefulSet, POD_INDEXES } from "./types.ts";

const META = { name: "a", uid: "uid-a", resourceVersion: "1", creationTimestamp: "2026-11-30T13:42:58Z" };
const of = (object: object): KubeObject => ({ apiVersion: "v1", kind: "Any", metadata: META, ...object }) as KubeObject;
const NO_META = { namespace: "", generation: 0, deletionTimestamp: null, labels: {}, annotations: {}, ownerReferences: [] };

test("an object with nothing but its metadata parses, and what is absent is empty", () => {
  const metadata = { ...META, ...NO_META, creationTimestamp: Date.parse(META.creationTimestamp) };
  expect(parseNode(of({}))).toEqual({
    ok: true,
    value: { metadata, spec: { providerID: "", unschedulable: false, taints: [] }, status: { conditions: [] } },
  });
  expect(parseNodeClaim(of({}))).toEqual({
    ok: true,
    value: { metadata, spec: { requirements: [] }, status: { nodeName: "", providerID: "", conditions: [] } },
  });
  expect(parsePod(of({ spec: {} }))).toEqual({
    ok: true,
    value: {
      metadata,
      spec: { nodeName: null, containers: [] },
      status: { reason: "", message: "", phase: "Pending", podIP: null, conditions: [], containerStatuses: [] },
    },
  });
  expect(parseStatefulSet(of({}))).toEqual({
    ok: true,
    value: { metadata, spec: { replicas: 1 }, status: { observedGeneration: 0, readyReplicas: 0 } },
  });
});

test("null stands for absent, as servers written in Go send it", () => {
  const node = parseNode(
    of({
      metadata: { ...META, labels: null, ownerReferences: null, deletionTimestamp: null },
      spec: { taints: null, providerID: null },
      status: { conditions: null },
    }),
  );
  expect(node).toEqual(parseNode(of({})));
});

test("unknown fields are left alone", () => {
  expect(
    parsePod(
      of({
        spec: { containers: [{ name: "main", image: "x", ports: [{ containerPort: 8080, protocol: "TCP" }] }], tolerations: [{}] },
        status: { phase: "Running", podIP: "127.0.0.1", qosClass: "Burstable" },
      }),
    ),
  ).toMatchObject({ ok: true });
});

test("what is used and malformed is named by its field (D9)", () => {
  const problems = [
    parseNode(of({ spec: { unschedulable: "yes" } })),
    parseNode(of({ metadata: { ...META, deletionTimestamp: "soon" } })),
    parseNode(of({ metadata: { ...META, labels: { a: 1 } } })),
    parsePod(of({ spec: {}, status: { phase: "Sleeping" } })),
    parsePod(of({})),
    parseNodeClaim(of({ status: { providerID: 7 } })),
  ].map((parsed) => (parsed.ok ? "" : parsed.problem.split(":")[0]));
  expect(problems).toEqual([
    "spec.unschedulable",
    "metadata.deletionTimestamp",
    "metadata.labels.a",
    "status.phase",
    "spec",
    "status.providerID",
  ]);
});

test("an odd condition that nobody uses does not hide its node", () => {
  const parsed = parseNode(of({ status: { conditions: [{ type: "Odd", status: "maybe", lastTransitionTime: "never" }] } }));
  expect(parsed.ok && parsed.value.status.conditions).toEqual([{ type: "Odd", status: "maybe", reason: "", lastTransitionTime: null }]);
});

test("times with six digits, as Leases have them, are times", () => {
  const parsed = parseLease(of({ spec: { holderIdentity: "me", renewTime: "2026-11-30T13:42:58.123456Z", leaseDurationSeconds: 15 } }));
  expect(parsed.ok && parsed.value.spec).toEqual({
    holderIdentity: "me",
    leaseDurationSeconds: 15,
    leaseTransitions: 0,
    acquireTime: null,
    renewTime: Date.parse("2026-11-30T13:42:58.123Z"),
  });
});

test("an Event without times or a message is an Event", () => {
  expect(parseEvent(of({ involvedObject: { kind: "Pod", name: "a" } }))).toMatchObject({
    ok: true,
    value: { type: "Normal", count: 1, lastTimestamp: null },
  });
});

test("pods are found by node and by instance; two of the same name in two namespaces are two", () => {
  const parsed = parsePod(of({ metadata: { ...META, labels: { "relevo.dev/instance": "orders-1" } }, spec: { nodeName: "node-1" } }));
  const bare = parsePod(of({ spec: {} }));
  expect([parsed, bare].map((each) => each.ok && [POD_INDEXES.node(each.value), POD_INDEXES.instance(each.value)])).toEqual([
    [["node-1"], ["orders-1"]],
    [[], []],
  ]);
});
