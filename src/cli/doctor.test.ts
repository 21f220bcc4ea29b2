import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import type { StepRecord } from "../model/step.ts";
import { reason } from "../model/reasons.ts";
import type { GatewayReplicaState, NodeState } from "../server/control-plane.ts";
import { aPool, FakeControlPlane, type FakeState, NOON } from "../server/testing/fake-control-plane.ts";
import { type CliOptions, runCli } from "./testing/run-cli.ts";

const COUNTS = { accepted: 0, completed: 0, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 };

function aGateway(overrides: Partial<GatewayReplicaState> = {}): GatewayReplicaState {
  return {
    replica: "gw-1",
    registeredAt: NOON,
    connected: true,
    lastReportAt: NOON,
    silent: false,
    routes: [{ route: "orders", applied: epoch(0, 7), current: epoch(0, 7), counts: COUNTS }],
    ...overrides,
  };
}

const NODE: NodeState = {
  name: "node-a",
  uid: "node-a-uid",
  zone: "zone-a",
  instanceType: null,
  capacityType: null,
  machineId: "i-1",
  ready: true,
  unschedulable: false,
  cordonedByUs: false,
  deleting: false,
  owner: { provisioner: "karpenter", name: "claim-a", uid: "claim-a-uid" },
  findings: [],
  instances: [],
};

const HELD_STEP: StepRecord = {
  id: "step-1",
  operation: "op-1",
  pool: "default/orders",
  instance: "orders-a",
  kind: "cordon_node/1",
  payload: {},
  reason: reason("step_held", { step: "step-1", why: "the node's marks were removed" }),
  state: "held",
  attempts: 3,
  notBefore: NOON,
  recordedAt: NOON,
  endedAt: null,
  outcome: null,
  result: null,
  authorityEpoch: epoch(0, 3),
};

/** The lines that are not `ok`. */
async function findings(state: Partial<FakeState> = {}, options: CliOptions = {}): Promise<{ code: number; lines: string[] }> {
  const fake = new FakeControlPlane({ pools: [aPool()], nodes: [NODE], gateways: [aGateway()], ...state });
  const { code, out } = await runCli(["doctor"], { fake, ...options });
  return { code, lines: out.split("\n").filter((line) => line !== "" && !line.startsWith("ok ")) };
}

test("a sound installation is ok in every part", async () => {
  const fake = new FakeControlPlane({ pools: [aPool()], nodes: [NODE], gateways: [aGateway()] });

  expect(await runCli(["doctor"], { fake })).toEqual({
    code: 0,
    err: "",
    out: [
      "ok       controller: version 0.0.0 answers at http://127.0.0.1:7070",
      "ok       clock: the controller's differs by 0 ms",
      "ok       store: writable",
      "ok       store epochs: era 0; nobody has seen more",
      "ok       gateway gw-1: is connected and current",
      "ok       notices: no queue and no agent sends any here: only what the cluster shows, and webhooks",
      "ok       pool default/orders: 4 of 4 serve, mode Act",
      "ok       own cordons: none",
      "ok       held steps: none",
      "",
    ].join("\n"),
  });
});

test("a store that cannot be written is refused, with what stops", async () => {
  const readiness = { ready: false, checks: [{ name: "store", ok: false, message: "disk full" }] };

  expect(await findings({ readiness })).toEqual({
    code: 3,
    lines: [
      "refused  store: disk full; free space or repair the disk: nothing is admitted, sealed or deleted until the store can be written",
    ],
  });
});

test("what the controller found in its cluster is told as it is", async () => {
  const examined = [
    {
      check: "nodes for default/orders",
      state: "refused",
      message: "belong to no declared provisioner (karpenter): node-b (none)",
      todo: "declare it",
    },
    { check: "karpenter", state: "ok", message: "karpenter.sh/v1 is served", todo: null },
  ] as const;

  expect(await findings({ examined })).toEqual({
    code: 3,
    lines: ["refused  nodes for default/orders: belong to no declared provisioner (karpenter): node-b (none); declare it"],
  });
});

test("a sender of notices that is silent, was never heard or has trouble is a warning", async () => {
  const sender = { source: "ec2-metadata", from: "node-a", isSilent: false, lastHeardAt: NOON, everyMs: 30_000, trouble: null };
  const senders = [
    sender,
    { ...sender, from: "node-b", isSilent: true },
    { ...sender, source: "sqs", from: "queue-a", isSilent: true, lastHeardAt: null, trouble: "access denied" },
  ];

  expect(await findings({ senders })).toEqual({
    code: 0,
    lines: [
      "warning  notices of ec2-metadata: node-b is silent since 2030-01-01T12:00:00.000Z; see its log; another replica may hear it: relevo get sources",
      "warning  notices of sqs: queue-a was never heard: access denied; see docs/notices.md, The queue",
    ],
  });
});

test("no gateway is refused; one that is silent, cut off or behind is a warning", async () => {
  const behind = [{ route: "orders", applied: epoch(0, 6), current: epoch(0, 7), counts: COUNTS }];
  const gateways = [
    aGateway({ silent: true }),
    aGateway({ replica: "gw-2", connected: false }),
    aGateway({ replica: "gw-3", routes: behind }),
  ];

  expect(await findings({ gateways: [] })).toEqual({
    code: 3,
    lines: ["refused  gateways: no replica is registered: nothing can be admitted; start npx relevo gateway --controller URL"],
  });
  expect(await findings({ gateways })).toEqual({
    code: 0,
    lines: [
      "warning  gateway gw-1: is silent for longer than its TTL; restart it, or leave it: seals no longer wait for it, and are assumed",
      "warning  gateway gw-2: is cut off and serves what it knew last; see its log: seals wait for it until its TTL ends",
      "warning  gateway gw-3: has not yet applied 0.7 of orders (it has 0.6); look again: this lasts a second at most while all is well",
    ],
  });
});

test("a held step and a freeze wait for an operator: exit code 4", async () => {
  const freeze = { until: NOON + 3_600_000, why: "audit", by: "bob" };

  expect(await findings({ steps: [HELD_STEP] })).toEqual({
    code: 4,
    lines: [
      "held     held step: cordon_node/1 step-1 of orders-a: step step-1 cannot be told to have happened or not: the node's marks were removed; look at its object; nobody can tell whether it happened: npx relevo release step-1 --reason WHY, and it is decided anew",
    ],
  });
  expect(await findings({ pools: [aPool({ freeze })] })).toEqual({
    code: 4,
    lines: ["held     pool default/orders: frozen until 2030-01-01T13:00:00.000Z by bob: audit; npx relevo unfreeze default/orders"],
  });
});

test("too few serving, a mode that protects nothing and own cordons are told", async () => {
  const pool = aPool({ serving: 2 });
  const spec = { ...pool.document.spec, disruption: { ...pool.document.spec.disruption, mode: "Observe" as const } };
  const cordons = [{ node: "node-a", nodeUid: "node-a-uid", step: "step-1", evidence: "ev-1", at: null }];

  expect(await findings({ pools: [{ ...pool, document: { ...pool.document, spec } }], cordons })).toEqual({
    code: 3,
    lines: [
      "refused  pool default/orders: 2 serve and its floor is 3; npx relevo explain default/orders",
      "warning  pool default/orders: disruption.mode is Observe: no instance is replaced before its node goes; set spec.disruption.mode to Act",
      "warning  own cordon: node-a is cordoned by Relevo for evidence ev-1; when it shall be used again: npx relevo uncordon node-a",
    ],
  });
});

test("clocks that differ are told; no safety rests on them", async () => {
  expect(await findings({}, { clockAheadMs: 90_000 })).toEqual({
    code: 0,
    lines: [
      "warning  clock: the controller's differs by -90000 ms; synchronise the clocks: deadlines and ages that are shown mislead, no safety rests on them",
    ],
  });
});

test("without a run file, and without a controller, it says what to start", async () => {
  const { code, lines } = await findings({}, { env: { RELEVO_SERVER: undefined } });

  expect(code).toBe(3);
  expect(lines).toEqual([
    expect.stringMatching(/^refused {2}run file: .*run\.json is not there; start npx relevo up here, or name a controller with --server$/),
    "refused  controller: No controller is known here; start one with npx relevo up in this directory, or name one with --server or RELEVO_SERVER",
  ]);
});

test("a part that fails does not keep the others from telling", async () => {
  const fake = new FakeControlPlane({ pools: [aPool()], nodes: [NODE], gateways: [aGateway()] });
  fake.listCordons = () => Promise.reject(new TypeError("odd"));

  const { code, out } = await runCli(["doctor", "-o", "json"], { fake });

  expect(code).toBe(3);
  const told = (JSON.parse(out) as { findings: { check: string; state: string }[] }).findings.map(
    ({ check, state }) => `${check} ${state}`,
  );
  expect(told).toEqual([
    "controller ok",
    "clock ok",
    "store ok",
    "store epochs ok",
    "gateway gw-1 ok",
    "notices ok",
    "pool default/orders ok",
    "controller refused",
    "held steps ok",
  ]);
});
