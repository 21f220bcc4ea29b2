import { expect, test } from "vitest";
import { describeError, RelevoError } from "./errors.ts";

test("what others said is shown without what a terminal obeys, and lines and tabs stay", () => {
  const error = new RelevoError("unreachable", "It answered with an error.", { found: "503 \u001b[31mred\u0007\u009b2J\ttwo\nlines é" });
  expect(describeError(error)).toBe("It answered with an error (unreachable); found: 503 �[31mred��2J\ttwo\nlines é");
});
