import { expect, test } from "vitest";
import { differenceOf } from "./rows.ts";

test.each([
  [
    "the same rows in another order",
    [
      [1, "a"],
      [2, "b"],
    ],
    [
      [2, "b"],
      [1, "a"],
    ],
    null,
  ],
  ["nothing where nothing is expected", [], [], null],
  ["an integer that a number does not hold, expected as text", [["9007199254740993"]], [[9_007_199_254_740_993n]], null],
  ["a row that is missing", [[1], [2]], [[1]], "1 rows instead of 2; 1 missing, such as [2]"],
  ["a row twice", [[1]], [[1], [1]], "2 rows instead of 1; 1 not expected, such as [1]"],
  ["another value", [[1, null]], [[1, 0]], "1 rows instead of 1; 1 missing, such as [1,null]; 1 not expected, such as [1,0]"],
])("%s", (_name, expected, found, difference) => {
  expect(differenceOf(expected, found)).toBe(difference);
});
