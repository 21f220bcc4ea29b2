import { expect, test } from "vitest";
import { compareVersions } from "./version.ts";

test.each([
  ["0.1.0", "0.2.0", -1],
  ["0.10.0", "0.9.9", 1],
  ["1.0.0", "1.0.0", 0],
  ["1.0.0-rc.1", "1.0.0", -1],
  ["1.0.0", "1.0.0-rc.1", 1],
  ["1.0.0-rc.1", "1.0.0-rc.2", -1],
  ["1.0.0+build", "1.0.0", 0],
  ["1", "1.0.1", -1],
])("%s against %s", (one, other, sign) => {
  expect(Math.sign(compareVersions(one, other))).toBe(sign);
});
