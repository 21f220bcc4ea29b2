/** When `npm run simulate:standard` fails: a range that proved nothing must not pass. */
import { expect, test } from "vitest";
import { exitCodeOf, neverInjected } from "../../tools/simulate/verdict.ts";

test("it fails on a seed that failed, and on a kind of fault that never happened where there were seeds enough for all", () => {
  const codes = [
    { seeds: 10_000, failed: [], never: [] },
    { seeds: 1, failed: [7], never: [] },
    { seeds: 100, failed: [], never: ["node_death"] },
    { seeds: 99, failed: [], never: ["node_death"] },
  ].map(exitCodeOf);
  expect(codes).toEqual([0, 1, 1, 0]);
});

test("a kind that was drawn and never took effect did not happen; one that is counted by what it does did", () => {
  const counts = new Map([
    ["node_death", 3],
    ["api_errors", 0],
    ["watch_gone", 1],
  ]);
  expect(neverInjected(["node_death", "api_errors", "watch_break", "freeze"], counts)).toEqual(["api_errors", "freeze"]);
});
