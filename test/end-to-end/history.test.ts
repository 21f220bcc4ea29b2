/** That what the history is judged by can fail. */
import { expect, test } from "vitest";
import { type HistoryChange, violationsOf } from "./history.ts";

const POOL = "default/orders";

let seq = 0;
function change(given: Partial<HistoryChange>): HistoryChange {
  seq += 1;
  return {
    seq,
    at: seq,
    transaction: String(seq),
    by: "a",
    table: "instances",
    op: "UPDATE",
    pool: POOL,
    was: null,
    is: null,
    epoch: [0, 1],
    owner: "a",
    ...given,
  };
}

const step = (state: string, given: Partial<HistoryChange> = {}) =>
  change({ table: "steps", was: { id: "s-1", state: "unknown" }, is: { id: "s-1", state }, ...given });
const phase = (from: string, to: string, given: Partial<HistoryChange> = {}) =>
  change({ was: { id: "i-1", phase: from }, is: { id: "i-1", phase: to }, ...given });
const sentences = (...history: HistoryChange[]) => violationsOf(history).map((sentence) => sentence.replace(/^#\d+ /, ""));

test("an owner that commits, ends each step once, and hands over, violates nothing", () => {
  const claim = change({ table: "pools", by: "b", was: { owner: null }, is: { owner: "b" }, epoch: [0, 3], owner: "b" });
  const later = { by: "b", owner: "b", epoch: [0, 3] as const };
  expect(sentences(step("unknown"), phase("serving", "draining"), claim, step("done", later), phase("draining", "sealed", later))).toEqual(
    [],
  );
});

test("a commit of another one than the owner is found (I4)", () => {
  expect(sentences(phase("serving", "draining", { owner: "b" }))).toEqual([
    "a UPDATE instances of default/orders: a commit of a while b had it under 0,1 (I4)",
  ]);
});

test("an epoch that falls is found (I4)", () => {
  expect(sentences(phase("serving", "draining", { epoch: [0, 3] }), step("done", { epoch: [0, 2] }))).toEqual([
    "a UPDATE steps of default/orders: the epoch fell from 0,3 to 0,2 (I4)",
  ]);
});

test("a step that ends twice is found, and one that is open again (I5)", () => {
  expect(sentences(step("done"), step("superseded"))).toEqual([
    "a UPDATE steps of default/orders: default/orders s-1 ended done and is superseded (I5)",
  ]);
  expect(sentences(step("done"), step("unknown"))).toHaveLength(1);
});

test("a phase that is not in the table is found, and a generation that falls", () => {
  expect(sentences(phase("sealed", "serving"))).toEqual(["a UPDATE instances of default/orders: i-1 moved from sealed to serving"]);
  const numbers = (counter: number) => ({ owner: "a", generation_era: 0, generation_counter: counter });
  expect(sentences(change({ table: "pools", was: numbers(4), is: numbers(3) }))).toEqual([
    "a UPDATE pools of default/orders: the generation fell",
  ]);
});
