import { expect, test } from "vitest";
import type { InstanceView } from "../../server/views.ts";
import { type Evacuee, fatesOf, orderOf, outcomeOf } from "./evacuation.ts";

const T0 = Date.UTC(2026, 10, 30, 12);
const at = (ms: number): string => new Date(T0 + ms).toISOString();
const evacuee = (instance: string, more: Partial<Evacuee> = {}): Evacuee => ({
  instance,
  pool: "default/orders",
  priority: "critical",
  ordinal: 0,
  node: "n1",
  noticedAt: T0,
  ...more,
});
const view = (id: string, more: Partial<InstanceView> = {}): InstanceView => ({
  id,
  pool: "default/orders",
  ordinal: 0,
  purpose: "replace",
  replaces: null,
  phase: "serving",
  phaseSince: at(4_000),
  createdAt: at(1_000),
  trust: "ok",
  health: "passing",
  incarnation: 1,
  pod: null,
  node: null,
  address: null,
  requests: null,
  sessions: null,
  drain: null,
  seal: null,
  failure: null,
  ...more,
});

test("a successor that was there before the notice was a standby; one that failed is none", () => {
  const fates = fatesOf(
    [evacuee("a"), evacuee("b"), evacuee("c")],
    [
      view("s", { replaces: "a", createdAt: at(-60_000), phaseSince: at(900) }),
      view("x", { replaces: "b", phase: "failed", failure: "no_place" }),
      view("y", { replaces: "b", createdAt: at(2_000) }),
      view("b", { phase: "deleted", seal: "confirmed", createdAt: at(-90_000) }),
      view("c", { phase: "deleted", seal: "forced", createdAt: at(-90_000) }),
    ],
    new Map(),
  );
  expect(
    fates.map(({ successor, byStandby, servingAt, seal }) => [successor, byStandby, servingAt === null ? null : servingAt - T0, seal]),
  ).toEqual([
    ["s", true, 900, null],
    ["y", false, 4_000, "confirmed"],
    [null, false, null, "forced"],
  ]);
});

test("one whose place was filled after it had left was replaced too; one of another place was not", () => {
  const instances = [
    view("f", { purpose: "fill", createdAt: at(2_000), phaseSince: at(5_000) }),
    view("g", { purpose: "fill", ordinal: 1, createdAt: at(2_000) }),
  ];
  expect(fatesOf([evacuee("a"), evacuee("b", { ordinal: 2 })], instances, new Map()).map(({ successor }) => successor)).toEqual([
    "f",
    null,
  ]);
});

test("when a successor came to serve counts, also when it has left since", () => {
  const [fate] = fatesOf([evacuee("a")], [view("s", { replaces: "a", phase: "draining" })], new Map([["s", T0 + 1_234]]));
  expect(fate?.servingAt).toBe(T0 + 1_234);
});

test("a successor whose own node was announced next served before it drained, though nobody looked in between", () => {
  const drain = { loss: "deadline", since: at(3_000), deadline: null } as const;
  const [fate] = fatesOf([evacuee("a")], [view("s", { replaces: "a", phase: "deleted", seal: "confirmed", drain })], new Map());
  expect(fate?.servingAt).toBe(T0 + 3_000);
});

test("the outcome of a class: how many, how, and how long it took", () => {
  const fates = fatesOf(
    [evacuee("a"), evacuee("b"), evacuee("c")],
    [view("s", { replaces: "a", createdAt: at(-1), phaseSince: at(1_000) }), view("t", { replaces: "b", phaseSince: at(4_000) })],
    new Map(),
  );
  expect(outcomeOf(fates)).toEqual({ noticed: 3, replaced: 2, byStandby: 1, forced: 0, meanMs: 2_500, lastMs: 4_000 });
  expect(outcomeOf([])).toEqual({ noticed: 0, replaced: 0, byStandby: 0, forced: 0, meanMs: null, lastMs: null });
});

test("the order in which the classes came to serve", () => {
  const fates = fatesOf(
    [evacuee("a"), evacuee("b", { priority: "batch" }), evacuee("c"), evacuee("d")],
    [
      view("s1", { replaces: "a", phaseSince: at(1_000) }),
      view("s2", { replaces: "c", phaseSince: at(2_000) }),
      view("s3", { replaces: "b", phaseSince: at(3_000) }),
    ],
    new Map(),
  );
  expect(orderOf(fates)).toBe("critical ×2, batch ×1");
});
