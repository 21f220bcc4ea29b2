import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { type KubeNode, type NodeClaim, parseNode, parseNodeClaim } from "../../kube/types.ts";
import type { KubeObject } from "../../kube/api.ts";
import { findingsOfNode } from "./findings.ts";
import { nodeClaimOf, ownerOfNode } from "./owner.ts";

const NOW = Date.parse("2026-11-30T13:43:10Z");
const at = (time: string): number => Date.parse(`2026-11-30T${time}Z`);

type Part = Readonly<Record<string, unknown>>;

/** As a real Karpenter wrote it (1.12.1, kwok provider), shortened. */
function node({
  meta = {},
  spec = {},
  conditions = [],
}: {
  readonly meta?: Part;
  readonly spec?: Part;
  readonly conditions?: readonly Part[];
} = {}): KubeNode {
  const parsed = parseNode({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "elastic-lovelace",
      uid: "node-uid",
      resourceVersion: "324",
      creationTimestamp: "2026-11-30T13:42:58Z",
      ownerReferences: [
        { apiVersion: "karpenter.sh/v1", kind: "NodeClaim", name: "spot-82qd6", uid: "claim-uid", blockOwnerDeletion: true },
      ],
      ...meta,
    },
    spec: { providerID: "kwok://elastic-lovelace", ...spec },
    status: { conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }, ...conditions] },
  } as KubeObject);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

function claim({
  meta = {},
  status = {},
  conditions = [],
}: {
  readonly meta?: Part;
  readonly status?: Part;
  readonly conditions?: readonly Part[];
} = {}): NodeClaim {
  const parsed = parseNodeClaim({
    apiVersion: "karpenter.sh/v1",
    kind: "NodeClaim",
    metadata: { name: "spot-82qd6", uid: "claim-uid", resourceVersion: "333", creationTimestamp: "2026-11-30T13:42:58Z", ...meta },
    status: {
      nodeName: "elastic-lovelace",
      providerID: "kwok://elastic-lovelace",
      conditions: [{ type: "Launched", status: "True" }, { type: "Ready", status: "True" }, ...conditions],
      ...status,
    },
  } as KubeObject);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

const DRIFTED = { type: "Drifted", status: "True", reason: "NodePoolDrifted", lastTransitionTime: "2026-11-30T13:44:04Z" };
const DISRUPTED = { key: "karpenter.sh/disrupted", effect: "NoSchedule" };
const DELETED = "2026-11-30T13:43:04Z";
const TIMED = { "karpenter.sh/nodeclaim-termination-timestamp": "2026-11-30T13:45:04Z" };

const short = (found: ReturnType<typeof findingsOfNode>): unknown => ({
  findings: found.findings.map(({ reason, loss, deadline }) =>
    [reason, loss, deadline === null ? null : new Date(deadline).toISOString().slice(11, 19)].join(" "),
  ),
  problems: found.problems,
});

test("a healthy node has no finding", () => {
  expect(findingsOfNode(node(), claim(), NOW)).toEqual({ findings: [], problems: [] });
});

test("drift is a voluntary reason, also when Karpenter has chosen the node to be replaced", () => {
  expect(short(findingsOfNode(node(), claim({ conditions: [DRIFTED] }), NOW))).toEqual({
    findings: ["node_drifted voluntary "],
    problems: [],
  });
  const chosen = node({ spec: { taints: [DISRUPTED] } });
  expect(short(findingsOfNode(chosen, claim({ conditions: [DRIFTED] }), NOW))).toEqual({
    findings: ["node_deleting voluntary ", "node_drifted voluntary "],
    problems: [],
  });
});

test("drift that is unknown or false is no drift", () => {
  for (const status of ["False", "Unknown"])
    expect(findingsOfNode(node(), claim({ conditions: [{ ...DRIFTED, status }] }), NOW).findings).toEqual([]);
});

test("the deletion of either object is voluntary without an end, and has a deadline with a termination timestamp", () => {
  expect(short(findingsOfNode(node({ meta: { deletionTimestamp: DELETED } }), null, NOW))).toEqual({
    findings: ["node_deleting voluntary "],
    problems: [],
  });
  expect(short(findingsOfNode(node(), claim({ meta: { deletionTimestamp: DELETED } }), NOW))).toEqual({
    findings: ["node_deleting voluntary "],
    problems: [],
  });
  expect(
    short(
      findingsOfNode(
        node({ meta: { deletionTimestamp: DELETED }, spec: { taints: [DISRUPTED] } }),
        claim({ meta: { deletionTimestamp: DELETED, annotations: TIMED } }),
        NOW,
      ),
    ),
  ).toEqual({
    findings: ["node_terminating_at deadline 13:45:04"],
    problems: [],
  });
});

test("a termination timestamp without a deletion means nothing yet", () => {
  expect(findingsOfNode(node(), claim({ meta: { annotations: TIMED } }), NOW).findings).toEqual([]);
});

test("what is malformed gives no finding and is named, and a proven deletion stays proven (D9)", () => {
  const odd = claim({
    meta: { deletionTimestamp: DELETED, annotations: { "karpenter.sh/nodeclaim-termination-timestamp": "soon" } },
    conditions: [{ ...DRIFTED, status: "yes" }],
  });
  expect(short(findingsOfNode(node(), odd, NOW))).toEqual({
    findings: ["node_deleting voluntary "],
    problems: [
      "NodeClaim spot-82qd6: condition Drifted has no valid status: yes",
      "spot-82qd6: annotation karpenter.sh/nodeclaim-termination-timestamp is no RFC 3339 time: soon",
    ],
  });
});

test.each([
  ["aws-node-termination-handler/spot-itn", "spot_interruption deadline 13:45:10"],
  ["aws-node-termination-handler/scheduled-maintenance", "scheduled_maintenance deadline "],
  ["aws-node-termination-handler/asg-lifecycle-termination", "instance_state_change deadline "],
  ["aws-node-termination-handler/rebalance-recommendation", "node_rebalance voluntary "],
  ["cloud.google.com/impending-node-termination", "spot_interruption deadline 13:43:40"],
  ["remediator.kubernetes.azure.com/unschedulable", "scheduled_maintenance deadline "],
  ["node.cloudprovider.kubernetes.io/shutdown", "instance_state_change deadline 13:43:10"],
  ["node.kubernetes.io/out-of-service", "instance_state_change deadline 13:43:10"],
  ["ToBeDeletedByClusterAutoscaler", "node_deleting voluntary "],
])("the taint %s is understood (S1)", (key, expected) => {
  expect(short(findingsOfNode(node({ spec: { taints: [{ key, value: "id", effect: "NoSchedule" }] } }), null, NOW))).toEqual({
    findings: [expected],
    problems: [],
  });
});

test("taints that only mean 'perhaps' or nothing are no finding", () => {
  const taints = [
    "DeletionCandidateOfClusterAutoscaler",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/memory-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "cloud.google.com/gke-spot",
    "kubernetes.azure.com/scalesetpriority",
    "karpenter.sh/unregistered",
    "constructor",
  ].map((key) => ({ key, effect: "NoSchedule" }));
  expect(findingsOfNode(node({ spec: { taints } }), null, NOW)).toEqual({ findings: [], problems: [] });
});

test("a mark counts from its own time where it has one, never from later than now", () => {
  const marked = (timeAdded: string): unknown =>
    short(
      findingsOfNode(
        node({ spec: { taints: [{ key: "aws-node-termination-handler/spot-itn", effect: "NoExecute", timeAdded }] } }),
        null,
        NOW,
      ),
    );
  expect([marked("2026-11-30T13:43:00Z"), marked("2030-01-01T00:00:00Z")]).toEqual([
    { findings: ["spot_interruption deadline 13:45:00"], problems: [] },
    { findings: ["spot_interruption deadline 13:45:10"], problems: [] },
  ]);
});

test("Azure's conditions are understood (S1)", () => {
  const conditions = [
    { type: "PreemptionScheduled", status: "True", lastTransitionTime: "2026-11-30T13:43:05Z" },
    { type: "VMEventScheduled", status: "False" },
  ];
  expect(findingsOfNode(node({ conditions }), null, NOW).findings).toEqual([
    { reason: "spot_interruption", loss: "deadline", deadline: at("13:43:35"), noticeId: null },
  ]);
});

test.each([
  ["VMEventScheduled", "scheduled_maintenance deadline "],
  ["RebootScheduled", "scheduled_maintenance deadline "],
  ["RedeployScheduled", "scheduled_maintenance deadline "],
  ["PreemptScheduled", "spot_interruption deadline 13:43:35"],
  ["TerminateScheduled", "instance_state_change deadline "],
  ["FreezeScheduled", undefined],
])("an event of AKS whose reason is %s is understood", (reason, expected) => {
  const conditions = [{ type: "VMEventScheduled", status: "True", reason, lastTransitionTime: "2026-11-30T13:43:05Z" }];
  expect(short(findingsOfNode(node({ conditions }), null, NOW))).toEqual({
    findings: expected === undefined ? [] : [expected],
    problems: [],
  });
});

test("a condition that is of nobody's making, or says neither yes nor no, is no finding; one that says something else is named", () => {
  const conditions = ["True", "Unknown", "maybe"].map((status, at) => ({
    type: ["GpuXid", "PreemptionScheduled", "VMEventScheduled"][at],
    status,
  }));
  expect(short(findingsOfNode(node({ conditions: conditions as readonly Part[] }), null, NOW))).toEqual({
    findings: [],
    problems: ["Node elastic-lovelace: condition VMEventScheduled has no valid status: maybe"],
  });
});

const STAGES = parseAllDocuments(readFileSync(new URL("./samples/stages.yaml", import.meta.url), "utf8")).map(
  (document) => document.toJS() as { readonly stage: string; readonly node: Part; readonly nodeClaim: Part },
);

test("what a real Karpenter wrote, stage by stage of a node's end (S1)", () => {
  const told = STAGES.map(({ stage, node: aNode, nodeClaim }) => {
    const [parsedNode, parsedClaim] = [parseNode(aNode as unknown as KubeObject), parseNodeClaim(nodeClaim as unknown as KubeObject)];
    if (!parsedNode.ok || !parsedClaim.ok) throw new Error(`${stage} cannot be read`);
    return [stage, short(findingsOfNode(parsedNode.value, parsedClaim.value, NOW))];
  });
  const only = (...findings: string[]): unknown => ({ findings, problems: [] });
  expect(Object.fromEntries(told)).toEqual({
    ready: only(),
    drifted: only("node_drifted voluntary "),
    chosen: only("node_deleting voluntary ", "node_drifted voluntary "),
    draining: only("node_drifted voluntary ", "node_terminating_at deadline 13:45:04"),
    drained: only("node_drifted voluntary ", "node_terminating_at deadline 13:45:04"),
  });
});

test("the order of conditions and taints has no meaning (I17)", () => {
  const conditions = [DRIFTED, { type: "Drained", status: "Unknown" }, { type: "DisruptionReason", status: "True" }];
  const taints = [
    DISRUPTED,
    { key: "aws-node-termination-handler/spot-itn", effect: "NoSchedule" },
    { key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" },
  ];
  const expected = findingsOfNode(node({ spec: { taints } }), claim({ conditions }), NOW);
  expect(expected.findings).toHaveLength(3);
  fc.assert(
    fc.property(fc.shuffledSubarray(conditions, { minLength: 3 }), fc.shuffledSubarray(taints, { minLength: 3 }), (c, t) => {
      expect(findingsOfNode(node({ spec: { taints: t } }), claim({ conditions: c }), NOW)).toEqual(expected);
    }),
  );
});

test("a node belongs to the NodeClaim that it names by UID and that names it back", () => {
  expect(ownerOfNode(node(), [claim({ meta: { uid: "other" } }), claim()])).toEqual({
    provisioner: "karpenter",
    name: "spot-82qd6",
    uid: "claim-uid",
  });
});

test.each([
  ["its UID is another's (a NodeClaim made anew under the same name)", node(), claim({ meta: { uid: "new-uid" } })],
  ["the claim names another node", node(), claim({ status: { nodeName: "elastic-lovelace-2" } })],
  ["the providerIDs differ", node(), claim({ status: { providerID: "kwok://other" } })],
  ["both providerIDs are empty", node({ spec: { providerID: "" } }), claim({ status: { providerID: "" } })],
  ["the claim is not registered yet", node(), claim({ status: { nodeName: undefined, providerID: undefined } })],
  [
    "the reference is of another version",
    node({ meta: { ownerReferences: [{ apiVersion: "karpenter.sh/v1beta1", kind: "NodeClaim", name: "spot-82qd6", uid: "claim-uid" }] } }),
    claim(),
  ],
  ["it names nobody", node({ meta: { ownerReferences: [] } }), claim()],
])("a node has no owner when %s", (_why, aNode, aClaim) => {
  expect(nodeClaimOf(aNode, [aClaim])).toBeNull();
});
