import { expect, test } from "vitest";
import { node, NOON, poolOf, serving } from "../../test/builders/pool.ts";
import { brakeOf } from "./brake.ts";

const failing = { state: "failing", since: NOON - 5_000, code: "timeout" } as const;
const suspect = (id: string, rest: object = {}) => serving({ id, health: failing, ...rest });

test("more than half failing our check alone means that we are suspected first", () => {
  expect(brakeOf([poolOf({}, [suspect("a"), suspect("b"), suspect("c"), serving({ id: "d" })])], NOON)).toEqual({ suspect: 3, total: 4 });
  expect(brakeOf([poolOf({}, [suspect("a"), suspect("b"), serving({ id: "c" }), serving({ id: "d" })])], NOON)).toBeNull();
});

test("it counts over all pools", () => {
  expect(brakeOf([poolOf({}, [suspect("a")]), poolOf({}, [serving({ id: "b" }), serving({ id: "c" })])], NOON)).toBeNull();
});

test.each([
  ["the gateway sees it too", { witnessed: true }],
  ["the API server calls its node not ready", { on: [node("n1", { ready: false })] }],
  ["it was announced", { evidence: ["spot_interruption"] }],
  ["it fails for longer than the window", { health: { ...failing, since: NOON - 61_000 } }],
])("an instance is no suspect of ours when %s", (_, rest) => {
  expect(brakeOf([poolOf({}, [suspect("a", rest), suspect("b", rest)])], NOON)).toBeNull();
});
