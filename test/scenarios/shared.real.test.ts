import { expect, test } from "vitest";
import { simulateShared } from "./shared.ts";

test("sixty seeds of three controllers that come and go: no invariant is violated, and all converge", async () => {
  expect(await simulateShared(100, 60)).toEqual([]);
}, 600_000);
