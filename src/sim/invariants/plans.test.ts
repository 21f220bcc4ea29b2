import { describe, expect, test } from "vitest";
import { NOON, poolOf, serving } from "../../../test/builders/pool.ts";
import type { Plan } from "../../plan/decision.ts";
import { reason } from "../../model/reasons.ts";
import { stateOf } from "../../plan/scaling/testing/builders.ts";
import type { Mirror } from "../mirror.ts";
import type { Truth } from "../events.ts";
import { noPlaceIsForgotten } from "./plans.ts";

const SCALED = {
  driver: "worker",
  worker: { flow: "queue/q" },
  scale: { signal: { kind: "queue", connection: "main", queue: "q" }, target: 4 },
};

/** Two serve, the document says one, and so many were decided. */
const scaledTo = (desired: number) =>
  poolOf({ desired: 1, max: 9, spec: SCALED }, [serving({ id: "a" }), serving({ id: "b", record: { ordinal: 1 } })], {
    scale: stateOf({ desired }),
  });

function saidOf(snapshot: ReturnType<typeof scaledTo>, decisions: Plan["decisions"]): readonly string[] {
  const said: string[] = [];
  const plan: Plan = { decisions, holds: [], nextLookAt: null, recommendation: null };
  const context = { mirror: {} as Mirror, truth: {} as Truth, violate: (sentence: string) => void said.push(sentence) };
  noPlaceIsForgotten().on({ type: "planned", process: "controller", snapshot, plan, at: NOON }, context);
  return said;
}

const setDesired = (from: number, to: number): Plan["decisions"][number] => ({
  kind: "set_desired",
  ...{ from, to },
  state: stateOf({ desired: to }),
  reason: reason("scale_bounds", { floor: 1, limit: 9, bound: "size.max", from, to }),
});

describe("a place is forgotten (I15)", () => {
  test("of the size that was decided, not of that with which the document began", () => {
    expect(saidOf(scaledTo(3), [])).toEqual(["2 places of 3 are held, nobody comes, and why is not said"]);
    expect(saidOf(scaledTo(2), [])).toEqual([]);
  });

  test("of the size that this plan decides", () => {
    expect(saidOf(scaledTo(2), [setDesired(2, 4)])).toEqual(["2 places of 4 are held, nobody comes, and why is not said"]);
    expect(saidOf(scaledTo(4), [setDesired(4, 2)])).toEqual([]);
  });
});
