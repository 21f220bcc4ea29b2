import { describe, expect, test } from "vitest";
import { type Epoch, epoch } from "../kernel/epoch.ts";
import type { GatewayView } from "../observe/snapshot.ts";
import type { Workload } from "../model/writer.ts";
import { type SeenRows, Witnesses } from "./rewound.ts";

const POOL = "default/orders";

function rowsOf(given: Partial<SeenRows> = {}): SeenRows {
  return { pool: POOL, authorityEpoch: epoch(0, 3), generation: epoch(0, 7), instances: [], workloads: [], ...given };
}

function gateway(applied: Epoch, instances: readonly string[] = ["orders-a"], route = "orders", pool?: string): GatewayView {
  const counts = { accepted: 0, completed: 0, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 };
  const members = instances.map((instance) => ({
    instance,
    incarnation: 1,
    requests: 0,
    upgraded: 0,
    sessions: 0,
    health: "passing" as const,
    healthReason: null,
  }));
  return {
    replica: "gw-1",
    silent: false,
    lostAt: null,
    report: { replica: "gw-1", sequence: 1, routes: [{ route, ...(pool === undefined ? {} : { pool }), applied, members, counts }] },
    connected: true,
    lastSeen: 0,
  };
}

function ended(applied: Epoch, pool: string): GatewayView {
  const report = { replica: "gw-1", sequence: 1, routes: [], ended: [{ route: "orders", pool, applied }] };
  return { ...gateway(applied), report };
}

function workload(minAccepted: Epoch, ordinal = 0): Workload {
  return { pool: POOL, ordinal, writerEpoch: minAccepted, minAcceptedEpoch: minAccepted, holder: null, renewals: 0, ttlMs: 0 };
}

describe("a gateway replica", () => {
  test.each([
    ["has applied what is stored", gateway(epoch(0, 7)), null],
    ["is behind", gateway(epoch(0, 6)), null],
    ["has applied more", gateway(epoch(0, 8)), { witness: "gateway gw-1", what: "generation", seen: "0.8", stored: "0.7" }],
    ["is of a later era", gateway(epoch(1, 1)), { witness: "gateway gw-1", what: "generation", seen: "1.1", stored: "0.7" }],
    ["has applied more of another route", gateway(epoch(0, 8), ["orders-a"], "shop"), null],
    // Names of routes pass from one pool to another; generations count per pool.
    ["still has the route from another pool", gateway(epoch(0, 8), ["shop-a"]), null],
    ["still has the route from a pool whose name begins the same", gateway(epoch(0, 8), ["orders-eu-a"]), null],
    ["has nobody on the route, and was not told whose it is", gateway(epoch(0, 8), []), null],
    // The pool was drained and is made again: no instance, no holder, perhaps no controller is left that has seen more.
    ["has nobody left of this pool on the route", gateway(epoch(0, 8), [], "orders", POOL), { witness: "gateway gw-1", seen: "0.8" }],
    ["has the route from another pool, as it was told", gateway(epoch(0, 8), [], "orders", "default/shop"), null],
    ["has the route from a pool of that name elsewhere", gateway(epoch(0, 8), ["orders-a"], "orders", "other/orders"), null],
    ["had applied more of it when its route went", ended(epoch(0, 8), POOL), { witness: "gateway gw-1", what: "generation", seen: "0.8" }],
    ["had applied no more when its route went", ended(epoch(0, 7), POOL), null],
    ["had applied more of another pool whose route went", ended(epoch(0, 8), "default/shop"), null],
    ["is silent and has applied more", { ...gateway(epoch(0, 8)), silent: true }, { witness: "gateway gw-1", seen: "0.8" }],
    ["has not reported", { ...gateway(epoch(0, 8)), report: null }, null],
  ])("that %s", (_, view, found) => {
    const judged = new Witnesses().judge(rowsOf(), "orders", [view]);
    if (found === null) expect(judged).toBeNull();
    else expect(judged).toMatchObject(found);
  });

  test("is no witness while the route is another pool's, unless it had this one's before", () => {
    expect(new Witnesses().judge(rowsOf(), null, [gateway(epoch(0, 8))])).toBeNull();
    expect(new Witnesses().judge(rowsOf(), null, [ended(epoch(0, 8), POOL)])).toMatchObject({ seen: "0.8" });
  });
});

describe("this process", () => {
  test.each<[string, Partial<SeenRows>, object]>([
    ["an authority", { authorityEpoch: epoch(0, 2) }, { what: "authority epoch", seen: "0.3", stored: "0.2" }],
    ["a generation", { generation: epoch(0, 6) }, { what: "generation", seen: "0.7", stored: "0.6" }],
    ["a tombstone", { workloads: [workload(epoch(0, 1))] }, { what: "writer epoch", seen: "0.2", stored: "0.1" }],
    ["a workload", { workloads: [] }, { what: "writer epoch", seen: "0.2", stored: null }],
  ])("remembers %s that it has read", (_, later, found) => {
    const witnesses = new Witnesses();
    const sound = rowsOf({ workloads: [workload(epoch(0, 2))] });
    expect(witnesses.judge(sound, "orders", [])).toBeNull();
    const rewound = { ...sound, ...later };
    expect(witnesses.judge(rewound, "orders", [])).toMatchObject({ witness: "this controller", ...found });
    expect(witnesses.judge(rewound, "orders", []), "what was rewound is not learned").toMatchObject(found);
    expect(witnesses.judge(sound, "orders", [])).toBeNull();
  });

  test("misses an instance that it had read and did not see retired: a lost candidate raised no number", () => {
    const instance = (id: string, phase: string) => ({ id, phase }) as SeenRows["instances"][number];
    const witnesses = new Witnesses();
    witnesses.judge(rowsOf({ instances: [instance("a", "serving"), instance("b", "creating"), instance("c", "retired")] }), null, []);
    expect(witnesses.judge(rowsOf({ instances: [instance("a", "serving"), instance("b", "creating")] }), null, [])).toBeNull();
    expect(witnesses.judge(rowsOf({ instances: [instance("a", "serving")] }), null, [])).toEqual({
      witness: "this controller",
      what: "instance",
      seen: "b",
      stored: null,
    });
    expect(witnesses.judge(rowsOf({ authorityEpoch: epoch(0, 4), instances: [instance("a", "serving")] }), null, [])).toBeNull();
  });

  test("is done with a place that a recovered store does not know: a backup from before its first writer", () => {
    const witnesses = new Witnesses();
    witnesses.judge(rowsOf({ workloads: [workload(epoch(0, 4))] }), null, []);
    expect(witnesses.judge(rowsOf(), null, [])).toMatchObject({ what: "writer epoch", seen: "0.4", stored: null });
    expect(witnesses.judge(rowsOf({ authorityEpoch: epoch(1, 4), generation: epoch(1, 8) }), null, [])).toBeNull();
    expect(witnesses.judge(rowsOf({ authorityEpoch: epoch(1, 4), generation: epoch(1, 8) }), null, [])).toBeNull();
  });

  test("does not miss what another owner has deleted", () => {
    const witnesses = new Witnesses();
    const instance = { id: "orders-a", phase: "serving" } as SeenRows["instances"][number];
    witnesses.judge(rowsOf({ instances: [instance] }), "orders", [], false);
    expect(witnesses.judge(rowsOf(), "orders", [], false)).toBeNull();
    witnesses.judge(rowsOf({ instances: [instance] }), "orders", [], true);
    expect(witnesses.judge(rowsOf(), "orders", [], true)).toMatchObject({ what: "instance", seen: "orders-a" });
  });

  test("keeps pools apart, and remembers nothing of one that was forgotten", () => {
    const witnesses = new Witnesses();
    witnesses.judge(rowsOf(), "orders", []);
    const older = { generation: epoch(0, 1), authorityEpoch: epoch(0, 1) };
    expect(witnesses.judge(rowsOf({ pool: "default/shop", ...older }), "shop", [])).toBeNull();
    witnesses.forget(POOL);
    expect(witnesses.judge(rowsOf(older), "orders", [])).toBeNull();
  });
});

describe("an instance that was given a later epoch", () => {
  test("stays a witness until the era is above it, whatever the store gives meanwhile", () => {
    const witnesses = new Witnesses();
    witnesses.sawWriter(POOL, "orders-b", epoch(0, 5));
    witnesses.sawWriter(POOL, "orders-c", epoch(0, 4));
    const found = { witness: "instance orders-b", what: "writer epoch", seen: "0.5", stored: "0.3" };
    expect(witnesses.judge(rowsOf({ workloads: [workload(epoch(0, 3))] }), "orders", [])).toEqual(found);
    expect(witnesses.judge(rowsOf({ workloads: [workload(epoch(0, 9), 1)] }), "orders", [])).toMatchObject({ seen: "0.5", stored: "0.9" });
    const recovered = { authorityEpoch: epoch(1, 4), generation: epoch(1, 8), workloads: [workload(epoch(1, 4))] };
    expect(witnesses.judge(rowsOf(recovered), "orders", [])).toBeNull();
  });
});

test("the highest era is that of whoever has seen most, of all pools", () => {
  const witnesses = new Witnesses();
  expect(witnesses.highestEra([])).toBe(0);
  witnesses.judge(rowsOf({ generation: epoch(2, 1), authorityEpoch: epoch(2, 1) }), "orders", []);
  expect(witnesses.highestEra([])).toBe(2);
  witnesses.sawWriter("default/shop", "shop-a", epoch(3, 1));
  expect(witnesses.highestEra([])).toBe(3);
  expect(witnesses.highestEra([gateway(epoch(5, 1), ["shop-a"], "elsewhere")])).toBe(5);
});
