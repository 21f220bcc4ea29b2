/** A crash of the controller at each of its port calls: before the effect, between it and hearing of it, and after it. */
import { expect, test } from "vitest";
import { CRASH_CASES } from "./crash-cases.ts";
import { differencesOf } from "./crash-runs.ts";

test.each(CRASH_CASES)(
  "$name: a controller that dies anywhere leaves what it would have left (I27)",
  { timeout: 1_800_000 },
  async (crashCase) => {
    expect(await differencesOf(crashCase)).toEqual([]);
  },
);
