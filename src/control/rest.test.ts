import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { reason } from "../model/reasons.ts";
import type { Plan } from "../plan/decision.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import type { PoolRows } from "../store/port.ts";
import { NOON, poolOf, serving } from "../../test/builders/pool.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { Rest } from "./rest.ts";

const ENTRY = { key: "default/orders" } as PoolEntry;
const WELL: Plan = {
  decisions: [],
  holds: [{ kind: "hold", subject: "orders-a", reason: reason("serving") }],
  nextLookAt: null,
  recommendation: null,
};
const ROWS: PoolRows = {
  pool: "default/orders",
  authorityEpoch: epoch(1, 1),
  owner: "controller-1",
  generation: epoch(1, 4),
  freeze: null,
  instances: [],
  evidence: [],
  openSteps: [],
  failures: [],
  reasons: [],
  workloads: [],
  scale: null,
  proven: null,
};

function restAfter(plan: Plan = WELL, seen: Partial<PoolSnapshot> = {}): Rest {
  const rest = new Rest();
  rest.note(ENTRY, ROWS, { snapshot: poolOf({}, [serving()], { inventory: { state: "complete" }, ...seen }), plan, at: NOON });
  return rest;
}

test("a pool that is as it should be is at rest for 30 s while its rows and its document are the same (D15)", () => {
  const rest = restAfter();
  expect(rest.until(ENTRY, { ...ROWS }, NOON + 5_000)).toBe(NOON + 30_000);
  expect(rest.until(ENTRY, ROWS, NOON + 30_000)).toBeNull();
  expect(rest.until({ ...ENTRY }, ROWS, NOON + 5_000)).toBeNull();
  expect(rest.until(ENTRY, { ...ROWS, instances: [] }, NOON + 5_000)).toBeNull();
  expect(rest.until(ENTRY, { ...ROWS, generation: epoch(1, 5) }, NOON + 5_000)).toBeNull();
  // The clock was set back.
  expect(rest.until(ENTRY, ROWS, NOON - 1)).toBeNull();
});

test("it is no longer at rest when somebody calls, nor at the time that its plan names", () => {
  const rest = restAfter({ ...WELL, nextLookAt: NOON + 8_000 });
  expect(rest.until(ENTRY, ROWS, NOON + 5_000)).toBe(NOON + 8_000);
  expect(rest.until(ENTRY, ROWS, NOON + 8_000)).toBeNull();
  const called = restAfter();
  called.disturb("default/orders");
  expect(called.until(ENTRY, ROWS, NOON + 1)).toBeNull();
});

test("while anything is held or seen incompletely, each look is a pass (D11)", () => {
  const held: Plan = { ...WELL, holds: [{ kind: "hold", subject: "", reason: reason("pool_orphaned") }] };
  expect(restAfter(held).until(ENTRY, ROWS, NOON + 1)).toBeNull();
  expect(restAfter(WELL, { inventory: { state: "incomplete", missing: "orders-a" } }).until(ENTRY, ROWS, NOON + 1)).toBeNull();
  expect(restAfter(WELL, { deleting: true }).until(ENTRY, ROWS, NOON + 1)).toBeNull();
});

test("a pool whose size follows its demand rests too while it has the size that is wanted, but not for long", () => {
  const scaled = {
    driver: "worker",
    worker: { flow: "queue/orders" },
    scale: { signal: { kind: "queue", connection: "main", queue: "orders" }, target: 1 },
  };
  const { spec } = poolOf({ spec: scaled }, []);
  expect(restAfter(WELL, { spec }).until(ENTRY, ROWS, NOON + 1)).toBe(NOON + 15_000);
  const held: Plan = { ...WELL, holds: [{ kind: "hold", subject: "", reason: reason("scale_cooldown") }] };
  expect(restAfter(held, { spec }).until(ENTRY, ROWS, NOON + 1)).toBeNull();

  // Nobody can ask anything of it: it rests whatever others do.
  const rest = restAfter(WELL, { spec });
  rest.note(ENTRY, { ...ROWS, pool: "default/billing" }, { snapshot: poolOf({}, [serving()]), plan: held, at: NOON });
  expect(rest.until(ENTRY, ROWS, NOON + 1)).toBe(NOON + 15_000);
});

test("another pool that is not at rest keeps this one's passes too: its standby may be asked for", () => {
  const rest = restAfter();
  const other = { ...ROWS, pool: "default/billing" };
  rest.note(ENTRY, other, { snapshot: poolOf({}, [serving()]), plan: { ...WELL, holds: [] }, at: NOON });
  expect(rest.until(ENTRY, ROWS, NOON + 1)).toBe(NOON + 30_000);
  rest.disturb("default/billing");
  expect(rest.until(ENTRY, ROWS, NOON + 1)).toBeNull();
  rest.forget("default/billing");
  expect(rest.until(ENTRY, ROWS, NOON + 1)).toBe(NOON + 30_000);
});
