/** Seeds of the standard mix. More of them, fresh ones: `many-seeds.real.test.ts`, `fresh-seeds.long.test.ts`. */
import { expect, test } from "vitest";
import { simulateAll } from "./seeds.ts";

const SECONDS = 1_000;

test("pools come through mixed faults: no invariant is violated, and all converge (I1–I8, I11–I19, I21, I26, I27)", async () => {
  expect(await simulateAll(1, 20, { faultsForMs: 20 * SECONDS })).toEqual([]);
}, 300_000);
