import { expect, test } from "vitest";
import { node, NOON, poolOf, serving } from "../../test/builders/pool.ts";
import { HealthBrake, LeaseBrake } from "./brake.ts";
import type { InstanceSnapshot, LeaseState, PoolSnapshot } from "../plan/snapshot.ts";

const failing = { state: "failing", since: NOON - 5_000, code: "timeout" } as const;
const suspect = (id: string, rest: object = {}) => serving({ id, health: failing, ...rest });

const brakeOf = (pools: readonly PoolSnapshot[], healthNow?: InstanceSnapshot["health"]) => brakeOver(pools, healthNow).brake.look(pools);

/** What the checks say is what the snapshots hold, unless it is said otherwise. */
function brakeOver(pools: readonly PoolSnapshot[], healthNow?: InstanceSnapshot["health"]) {
  const anew: string[] = [];
  const now = new Map(pools.flatMap(({ instances }) => instances.map(({ record, health }) => [record.id, healthNow ?? health] as const)));
  const brake = new HealthBrake({ healthOf: (id) => now.get(id) ?? { state: "unknown" }, beginAnew: (id) => anew.push(id) });
  return { brake, now, anew };
}

test("more than half failing our check alone means that we are suspected first", () => {
  expect(brakeOf([poolOf({}, [suspect("a"), suspect("b"), suspect("c"), serving({ id: "d" })])])).toEqual({ suspect: 3, total: 4 });
  expect(brakeOf([poolOf({}, [suspect("a"), suspect("b"), serving({ id: "c" }), serving({ id: "d" })])])).toBeNull();
});

test("what was announced to go, or fails for others too, is no majority that is well: it does not count (D12)", () => {
  const going = ["x", "y", "z"].map((id) => serving({ id, evidence: ["spot_interruption"] }));
  const dead = suspect("w", { unreached: true });
  expect(brakeOf([poolOf({}, [suspect("a"), suspect("b"), serving({ id: "c" }), dead, ...going])])).toEqual({ suspect: 2, total: 3 });
});

test("it counts over all pools", () => {
  expect(brakeOf([poolOf({}, [suspect("a")]), poolOf({}, [serving({ id: "b" }), serving({ id: "c" })])])).toBeNull();
});

test.each([
  ["the gateway gets no answer either", { witnessed: true, unreached: true }],
  ["it answers us and the gateway that it is not well", { health: { ...failing, code: "unhealthy" }, witnessed: true }],
  ["the API server calls its node not ready", { on: [node("n1", { ready: false })] }],
  ["it was announced", { evidence: ["spot_interruption"] }],
])("an instance is no suspect of ours when %s", (_, rest) => {
  expect(brakeOf([poolOf({}, [suspect("a", rest), suspect("b", rest)])])).toBeNull();
});

test("one that answers a gateway, and not us, is no witness of its silence: its lease may have lapsed because we are cut off (D12)", () => {
  const answers = { witnessed: true, unreached: false };
  expect(brakeOf([poolOf({}, [suspect("a", answers), suspect("b", answers)])])).toEqual({ suspect: 2, total: 2 });
});

test("the brake holds until a second witness, not until a time is over", () => {
  const long = { health: { ...failing, since: NOON - 600_000 } };
  expect(brakeOf([poolOf({}, [suspect("a", long), suspect("b", long)])])).toEqual({ suspect: 2, total: 2 });
});

test("what failed one after the other is no fault of the observer", () => {
  const earlier = { health: { ...failing, since: NOON - 66_000 } };
  expect(brakeOf([poolOf({}, [suspect("a", earlier), suspect("b"), serving({ id: "c" })])])).toBeNull();
});

test("what our checks say now counts: the last look may be long ago, and all have failed since (D12)", () => {
  const pools = [poolOf({}, [serving({ id: "a" }), serving({ id: "b" })]), poolOf({}, [serving({ id: "c" })])];
  expect(brakeOf(pools)).toBeNull();
  expect(brakeOf(pools, failing)).toEqual({ suspect: 3, total: 3 });
});

test("when it goes, who still fails and was not asked again begins anew, and who is seen by others does not (D12)", () => {
  const pools = [
    poolOf({}, [suspect("a"), suspect("b"), suspect("c"), suspect("d", { unreached: true }), serving({ id: "e", health: failing })]),
  ];
  const { brake, now, anew } = brakeOver(pools);
  expect(brake.look(pools)).toEqual({ suspect: 4, total: 4 });
  for (const id of ["a", "e"]) now.set(id, { state: "passing", since: NOON, bootId: "boot" });
  expect([brake.look(pools), anew]).toEqual([null, ["b", "c"]]);
  brake.look(pools);
  expect(anew, "once").toEqual(["b", "c"]);
});

const late = (since = NOON): LeaseState => ({ state: "late", since, expiresAt: NOON + 5_000 });
const RENEWED: LeaseState = { state: "renewed", lateAt: NOON + 5_000 };

function leaseBrake(states: Readonly<Record<string, LeaseState>>) {
  const anew: string[] = [];
  const known = new Map(Object.entries(states));
  const brake = new LeaseBrake({
    isWatching: true,
    stateOf: (_, id) => known.get(id) ?? { state: "none" },
    beginAnew: (_, id) => anew.push(id),
  });
  return { brake, anew, known };
}

const [a, b, c] = ["a", "b", "c"].map((id) => serving({ id }));
const pools = [
  poolOf(
    {},
    [a, b, c].flatMap((each) => each ?? []),
  ),
];

test("more than half of all leases late at once means that we are suspected first; exactly half, or one alone, does not", () => {
  expect(leaseBrake({ a: late(), b: { state: "expired", since: NOON }, c: RENEWED }).brake.look(pools)).toEqual({ late: 2, total: 3 });
  expect(leaseBrake({ a: late(), b: RENEWED, c: RENEWED }).brake.look(pools)).toBeNull();
  expect(leaseBrake({ a: late() }).brake.look(pools)).toBeNull();
  expect(leaseBrake({ a: late(), b: late(NOON - 61_000), c: RENEWED }).brake.look(pools), "one after the other").toBeNull();
});

test("who is not judged does not count", () => {
  const { brake } = leaseBrake({ a: late(), b: late(), c: { state: "unasked", since: NOON } });
  expect(brake.look(pools)).toEqual({ late: 2, total: 2 });
});

test.each([
  ["the gateway gets no answer either", { unreached: true }],
  ["it answers us that it is not well", { health: { state: "failing", since: NOON, code: "unhealthy" } }],
  ["the API server calls its node not ready", { on: [node("n1", { ready: false })] }],
  ["it was announced", { evidence: ["spot_interruption"] }],
] as const)("a late lease is no suspect of ours when %s", (_, rest) => {
  const seen = [poolOf({}, [serving({ id: "a", ...(rest as object) }), serving({ id: "b", ...(rest as object) })])];
  const { brake, anew } = leaseBrake({ a: late(), b: late() });
  expect(brake.look(seen)).toBeNull();
  expect(anew).toEqual([]);
});

test("when the brake goes because most renew again, the rest gets a full TTL anew, once", () => {
  const { brake, anew, known } = leaseBrake({ a: late(), b: late(), c: late() });
  expect(brake.look(pools)).toEqual({ late: 3, total: 3 });
  known.set("a", RENEWED);
  expect(brake.look(pools)).toEqual({ late: 2, total: 3 });
  known.set("b", RENEWED);
  expect(brake.look(pools)).toBeNull();
  expect(anew).toEqual(["c"]);
  expect(brake.look(pools)).toBeNull();
  expect(anew).toEqual(["c"]);
});

test("an instance that says that it could not renew is no witness against itself: it may be us that it did not reach", () => {
  const lapsed = { health: { state: "failing", since: NOON - 5_000, code: "lease_lapsed" }, witnessed: true } as const;
  const said = [poolOf({}, [serving({ id: "a", ...lapsed }), serving({ id: "b", ...lapsed })])];
  expect(leaseBrake({ a: late(), b: late() }).brake.look(said)).toEqual({ late: 2, total: 2 });
  expect(brakeOf(said)).toBeNull();
});
