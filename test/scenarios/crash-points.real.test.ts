/** A crash of the controller at many of its port calls. */
import { expect, test } from "vitest";
import { CRASH_CASES } from "./crash-cases.ts";
import { differencesOf } from "./crash-runs.ts";

const POINTS_OF_EACH = 40;

test.each(CRASH_CASES)(
  "$name: a controller that dies on the way leaves what it would have left (I27)",
  { timeout: 300_000 },
  async (crashCase) => {
    expect(await differencesOf(crashCase, POINTS_OF_EACH)).toEqual([]);
  },
);
