/** Every small fault in the program is caught: `npm run mutants` shows by which seed. */
import { availableParallelism } from "node:os";
import { expect, test } from "vitest";
import { systemClock as clock } from "../../src/kernel/system.ts";
import { circumstances, keepEvidence } from "../../tools/evidence/keep.ts";
import { huntAll, summaryOf } from "../../tools/mutants/hunt.ts";
import { MUTANTS } from "../../tools/mutants/mutants.ts";

const SEEDS = 2_000;

test("each of at least forty mutants is caught, by a seed that breaks nothing without it", { timeout: 3_600_000 }, async () => {
  expect(MUTANTS.length).toBeGreaterThanOrEqual(40);
  const under = circumstances(new Date(clock.now()));
  const hunts = await huntAll(MUTANTS, { seeds: SEEDS, workers: availableParallelism(), onResult: () => undefined });
  const summary = summaryOf(hunts, SEEDS);
  expect(summary).toMatchObject({ survived: [], unproven: [] });
  if (process.env["RELEVO_KEEP_EVIDENCE"] !== undefined) keepEvidence("mutants", under, summary);
});
