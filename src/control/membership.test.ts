import { expect, test } from "vitest";
import { draining, instance, serving, specOf } from "../../test/builders/pool.ts";
import { epoch } from "../kernel/epoch.ts";
import { PHASES } from "../model/phase.ts";
import type { PoolDocument } from "../model/pool.ts";
import type { InstanceSnapshot } from "../plan/snapshot.ts";
import { membershipOf } from "./membership.ts";

const document: PoolDocument = {
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "orders", namespace: "default" },
  spec: specOf(),
};

function states(...instances: readonly InstanceSnapshot[]): readonly string[] {
  const rows = {
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
    workloads: [],
  };
  return membershipOf(document, rows).members.map(({ instance: id, state }) => `${id} ${state}`);
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

test("members are in one order, whatever the order of the rows", () => {
  expect(states(serving({ id: "b" }), serving({ id: "a" }))).toEqual(["a serving", "b serving"]);
});
