import { expect, test } from "vitest";
import { node, NOON, poolOf, serving } from "../../test/builders/pool.ts";
import { brakeOf } from "./brake.ts";

const failing = { state: "failing", since: NOON - 5_000, code: "timeout" } as const;
const suspect = (id: string, rest: object = {}) => serving({ id, health: failing, ...rest });

test("more than half failing our check alone means that we are suspected first", () => {
  expect(brakeOf([poolOf({}, [suspect("a"), suspect("b"), suspect("c"), serving({ id: "d" })])])).toEqual({ suspect: 3, total: 4 });
  expect(brakeOf([poolOf({}, [suspect("a"), suspect("b"), serving({ id: "c" }), serving({ id: "d" })])])).toBeNull();
});

test("it counts over all pools", () => {
  expect(brakeOf([poolOf({}, [suspect("a")]), poolOf({}, [serving({ id: "b" }), serving({ id: "c" })])])).toBeNull();
});

test.each([
  ["the gateway sees it too", { witnessed: true }],
  ["the API server calls its node not ready", { on: [node("n1", { ready: false })] }],
  ["it was announced", { evidence: ["spot_interruption"] }],
])("an instance is no suspect of ours when %s", (_, rest) => {
  expect(brakeOf([poolOf({}, [suspect("a", rest), suspect("b", rest)])])).toBeNull();
});

test("the brake holds until a second witness, not until a time is over", () => {
  const long = { health: { ...failing, since: NOON - 600_000 } };
  expect(brakeOf([poolOf({}, [suspect("a", long), suspect("b", long)])])).toEqual({ suspect: 2, total: 2 });
});

test("what failed one after the other is no fault of the observer", () => {
  const earlier = { health: { ...failing, since: NOON - 66_000 } };
  expect(brakeOf([poolOf({}, [suspect("a", earlier), suspect("b"), serving({ id: "c" })])])).toBeNull();
});
