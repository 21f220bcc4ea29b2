import { expect, test } from "vitest";
import { draining, instance, serving, specOf } from "../../test/builders/pool.ts";
import { epoch } from "../kernel/epoch.ts";
import { PHASES } from "../model/phase.ts";
import type { PoolDocument } from "../model/pool.ts";
import type { Workload } from "../model/writer.ts";
import type { PoolRows } from "../store/port.ts";
import type { InstanceSnapshot } from "../plan/snapshot.ts";
import { membershipOf } from "./membership.ts";

const document: PoolDocument = {
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "orders", namespace: "default" },
  spec: specOf(),
};

function rowsOf(instances: readonly InstanceSnapshot[], workloads: readonly Workload[] = []): PoolRows {
  return {
    pool: "default/orders",
    authorityEpoch: epoch(0, 1),
    owner: null,
    generation: epoch(0, 7),
    freeze: null,
    instances: instances.map(({ record }) => record),
    evidence: [],
    openSteps: [],
    failures: [],
    reasons: [],
    workloads,
    scale: null,
    proven: null,
  };
}

function states(...instances: readonly InstanceSnapshot[]): readonly string[] {
  return membershipOf(document, rowsOf(instances)).members.map(({ instance: id, state }) => `${id} ${state}`);
}

test("only admitted, serving and draining instances are members", () => {
  const all = PHASES.map((phase) => instance(phase, { id: phase }));
  expect(states(...all)).toEqual(["admitted serving", "draining draining", "serving serving"]);
});

test("a lost process takes nothing, not even what is tied to it", () => {
  expect(states(draining({ record: { drainLoss: "forced" } }))).toEqual(["orders-a sealed"]);
});

test("an instance whose process is not known is no member", () => {
  const { incarnation } = serving().record;
  expect(states(serving({ record: { incarnation: { ...incarnation, host: null } } }))).toEqual([]);
});

test("says whose generation it is: a gateway that holds nobody of the pool any more can still tell that the store was rewound", () => {
  expect(membershipOf(document, rowsOf([]))).toMatchObject({ route: "orders", pool: "default/orders", generation: "0.7", members: [] });
});

test("members are in one order, whatever the order of the rows", () => {
  expect(states(serving({ id: "b" }), serving({ id: "a" }))).toEqual(["a serving", "b serving"]);
});

const WRITER: Workload = {
  pool: "default/orders",
  ordinal: 0,
  writerEpoch: epoch(0, 4),
  minAcceptedEpoch: epoch(0, 4),
  holder: { instance: "orders-a", incarnation: 1, bootId: "boot-1" },
  renewals: 3,
  ttlMs: 10_000,
};

const suspect = { trust: "suspect" } as const;
const fenced = { trust: "fenced" } as const;

test.each([
  ["a writer that is trusted serves", serving(), WRITER, "serving"],
  ["a suspect writer takes nothing new", serving({ record: suspect }), WRITER, "suspect"],
  ["a suspect one that drains goes on draining", draining({ record: suspect }), WRITER, "draining"],
  ["what still comes from a fenced one is stale", serving({ record: fenced }), { ...WRITER, holder: null }, "fenced"],
  ["also when its drain is committed", draining({ record: { ...fenced, drainLoss: "forced" } }), { ...WRITER, holder: null }, "fenced"],
  [
    "a suspicion of its health says nothing of one that does not write",
    serving({ record: suspect }),
    { ...WRITER, holder: { instance: "orders-z", incarnation: 1, bootId: "z" } },
    "serving",
  ],
  ["nor does it without a writer", serving({ record: suspect }), undefined, "serving"],
  ["and a fenced one leaves as before", draining({ record: { ...fenced, drainLoss: "forced" } }), undefined, "sealed"],
] as const)("%s", (_, seen, workload, state) => {
  expect(membershipOf(document, rowsOf([seen], workload ? [workload] : [])).members.map((member) => member.state)).toEqual([state]);
});

test("each member bears the tombstone of its own place, whether it writes or not, and none without one", () => {
  const members = [
    serving(),
    serving({ id: "orders-b", record: { replaces: "orders-a" } }),
    serving({ id: "orders-c", record: { ordinal: 1 } }),
  ];
  const tombstone = { ...WRITER, minAcceptedEpoch: epoch(0, 5) };
  expect(membershipOf(document, rowsOf(members, [tombstone])).members.map(({ instance: id, writer }) => [id, writer])).toEqual([
    ["orders-a", { ordinal: 0, minAccepted: "0.5" }],
    ["orders-b", { ordinal: 0, minAccepted: "0.5" }],
    ["orders-c", null],
  ]);
});
