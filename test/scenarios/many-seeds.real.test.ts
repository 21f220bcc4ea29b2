/**
 * Many seeds of the standard mix, always the same ones: fresh ones (`fresh-seeds.long.test.ts`) still find something in about one of a thousand, and what
 * they find must be mended before a commit may be judged by chance (ARCHITECTURE.md, "What is known to be open").
 */
import { expect, test } from "vitest";
import { simulateRange } from "./simulate-range.ts";

test("700 seeds of the standard mix violate nothing and converge, and every kind of fault is among them", async () => {
  expect(await simulateRange(101, 800)).toEqual({ code: 0, output: "" });
}, 900_000);
