import { expect, test } from "vitest";
import { instance, poolOf, serving } from "../../test/builders/pool.ts";
import { sentenceOf } from "../model/reasons.ts";
import { planPool } from "./plan.ts";

const NOON = Date.parse("2026-11-30T12:00:00Z");

test("why a candidate finds no place is said of it, with the dimension, and nothing else changes (T7)", () => {
  const [place] = serving().pods;
  if (place === undefined) throw new Error("the builder gives a pod");
  const waiting = { ...place, uid: "waiting", scheduledAt: null, node: null, ready: false };
  const candidate = instance("preparing", { id: "b", pods: [waiting], record: { phaseSince: NOON } });
  const pool = poolOf({ desired: 2 }, [serving(), candidate]);
  const noPlace = new Map([["waiting", { kind: "quota", dimension: "SSD_TOTAL_GB" } as const]]);

  const [before, after] = [planPool(pool, NOON), planPool({ ...pool, noPlace }, NOON)];

  expect(after.decisions).toEqual(before.decisions);
  expect(after.holds.filter(({ subject }) => subject === "b").map(({ reason }) => sentenceOf(reason))).toEqual([
    "its pods find no place: a quota is used up (SSD_TOTAL_GB)",
  ]);
});
