/**
 * What the simulator found in the product, each as the smallest schedule of faults that showed it: `npm run simulate:standard -- --seeds N --shrink` writes
 * such a file.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseRegression } from "../../src/sim/regression.ts";
import { simulate } from "./seeds.ts";

const FOLDER = join(import.meta.dirname, "regressions");
const CONVERGE_WITHIN_MS = 180_000;

test.each(readdirSync(FOLDER))("%s does not come back", { timeout: 60_000 }, async (file) => {
  const { seed, faults, faultsForMs } = parseRegression(readFileSync(join(FOLDER, file), "utf8"));
  const { violations } = await simulate(seed, { faults, faultsForMs, convergeWithinMs: CONVERGE_WITHIN_MS });

  expect(violations.map(({ id, sentence }) => `${id}: ${sentence}`)).toEqual([]);
});
