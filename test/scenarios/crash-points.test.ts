/** A crash of the controller at some of its port calls: at all of them in `crash-points.long.test.ts`. */
import { expect, test } from "vitest";
import { STEP_KINDS } from "../../src/act/registry.ts";
import { CRASH_CASES } from "./crash-cases.ts";
import { differencesOf, rehearsalOf } from "./crash-runs.ts";

const POINTS_OF_EACH = 4;
/** Of targets, of members and of pods that are let go, which this world does not have: a crash at each of their calls is in `src/act/crash.test.ts`. */
const WITHOUT_A_WORLD = ["remove_scale_owner/1", "scale_target/1", "drain_member/1", "replace_member/1", "unprotect_pod/1"];

test("every kind of step that is registered runs in one of the cases", { timeout: 60_000 }, async () => {
  const ran = new Set<string>();
  for (const crashCase of CRASH_CASES) for (const kind of (await rehearsalOf(crashCase)).stepKinds) ran.add(kind);

  expect([...ran, ...WITHOUT_A_WORLD].toSorted()).toEqual([...STEP_KINDS.keys()].toSorted());
});

test.each(CRASH_CASES)(
  "$name: a controller that dies on the way leaves what it would have left (I27)",
  { timeout: 60_000 },
  async (crashCase) => {
    expect(await differencesOf(crashCase, POINTS_OF_EACH)).toEqual([]);
  },
);
