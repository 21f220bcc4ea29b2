import { expect, test } from "vitest";
import { poolOf } from "../../test/builders/pool.ts";
import { stateOf } from "../plan/scaling/testing/builders.ts";
import { poolSupplyOf } from "./evacuation-supply.ts";

const SCALED = {
  driver: "worker",
  worker: { flow: "queue/q" },
  scale: { signal: { kind: "queue", connection: "main", queue: "q" }, target: 4 },
};

test("a quarter of the size that was decided may look for room at once, whatever size the document began with (K3, I12)", () => {
  const pool = (desired: number) => poolOf({ desired: 1, max: 200, spec: SCALED }, [], { scale: stateOf({ desired }) });
  expect(poolSupplyOf(pool(80)).mayLook).toBe(20);
  expect(poolSupplyOf(pool(2)).mayLook).toBe(10);
});

test("before the first decision, and of a pool whose size follows nothing, it is that of the document", () => {
  expect(poolSupplyOf(poolOf({ desired: 80, max: 200, spec: SCALED }, [])).mayLook).toBe(20);
  expect(poolSupplyOf(poolOf({ desired: 80, max: 200 }, [], { scale: stateOf({ desired: 4 }) })).mayLook).toBe(20);
});
