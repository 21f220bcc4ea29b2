import fc from "fast-check";
import { expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { lagOf, type PartitionOffsets } from "./lag.ts";

const ORDERS = { topic: "orders", group: "workers" };
type Row = readonly [start: bigint | undefined, end: bigint | undefined, committed: bigint | undefined];

const offsets = (rows: readonly Row[]): readonly PartitionOffsets[] =>
  rows.map(([start, end, committed], partition) => ({ partition, start, end, committed }));

function seen(rows: readonly Row[]): number | string {
  try {
    return lagOf(offsets(rows), ORDERS);
  } catch (error) {
    return error instanceof RelevoError ? error.code : String(error);
  }
}

test.each<[name: string, rows: readonly Row[], lag: number | string]>([
  ["all is committed", [[0n, 10n, 10n]], 0],
  [
    "over all partitions",
    [
      [0n, 10n, 4n],
      [5n, 7n, 7n],
      [0n, 3n, 0n],
    ],
    9,
  ],
  ["an offset before what retention left counts from there", [[6n, 10n, 2n]], 4],
  [
    "an empty partition without an offset has no lag",
    [
      [0n, 10n, 4n],
      [0n, 0n, -1n],
      [7n, 7n, -1n],
    ],
    6,
  ],
  [
    "a group that never committed, on an empty topic too",
    [
      [0n, 0n, -1n],
      [0n, 0n, -1n],
    ],
    "demand_missing",
  ],
  ["a group that never committed, with messages", [[0n, 10n, -1n]], "demand_missing"],
  [
    "one partition with messages and no offset",
    [
      [0n, 10n, 4n],
      [0n, 5n, -1n],
    ],
    "demand_partial",
  ],
  [
    "a partition without an end",
    [
      [0n, 10n, 4n],
      [0n, undefined, 0n],
    ],
    "demand_partial",
  ],
  ["a partition without a start", [[undefined, 10n, 4n]], "demand_partial"],
  ["a partition without an answer of the group", [[0n, 10n, undefined]], "demand_partial"],
  [
    "an offset beyond the end, though the sum is positive",
    [
      [0n, 3n, 500n],
      [0n, 1_000n, 0n],
    ],
    "demand_type_changed",
  ],
  ["no partition", [], "demand_missing"],
  ["offsets that no number holds", [[2n ** 60n, 2n ** 62n + 7n, 2n ** 62n]], 7],
])("%s (K1, K11)", (_, rows, lag) => {
  expect(seen(rows)).toBe(lag);
});

test("lag is never negative, and is what was written after the offset or the start, whichever is later", () => {
  const partition = fc
    .tuple(fc.bigInt({ min: 0n, max: 1_000n }), fc.bigInt({ min: 0n, max: 1_000n }), fc.bigInt({ min: 0n, max: 2_000n }))
    .map(([start, length, place]): Row => [start, start + length, place > start + length ? start + length : place]);
  fc.assert(
    fc.property(fc.array(partition, { minLength: 1, maxLength: 8 }), (rows) => {
      const expected = rows.reduce((sum, [start = 0n, end = 0n, committed = 0n]) => {
        let left = 0;
        for (let at = start; at < end; at++) if (at >= committed) left++;
        return sum + left;
      }, 0);
      expect(seen(rows)).toBe(expected);
    }),
    { numRuns: 50 },
  );
});
