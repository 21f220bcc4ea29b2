/** Shrinking, on a rule that can be seen at a glance. */
import { expect, test } from "vitest";
import type { PlannedFault } from "./faults.ts";
import { formatRegression, parseRegression, transcriptOf } from "./regression.ts";
import type { Violation } from "./run-seed.ts";
import { type Schedule, shrink } from "./shrink.ts";

const drift = (atMs: number, pick: number): PlannedFault => ({ atMs, fault: { kind: "node_drift", pick, clearsAfterMs: null } });
const lag = (atMs: number, lagMs: number): PlannedFault => ({ atMs, fault: { kind: "watch_lag", lagMs, forMs: 3_417 } });
const SCHEDULE: Schedule = {
  seed: 7,
  faultsForMs: 60_000,
  faults: [drift(812, 0.3), lag(1_250, 733), drift(4_017, 0.81), lag(9_871, 2_345), drift(30_009, 0.5)],
};

const broken = (id: string): Violation => ({ id, atMs: 1, sentence: `${id} is broken` });

/** Broken by a drift on the far half of the nodes together with a lag of a second and more; by another rule when nothing is left. */
async function attempt({ faults }: Schedule): Promise<Violation | undefined> {
  if (faults.length === 0) return broken("I16");
  const hasDrift = faults.some(({ fault }) => fault.kind === "node_drift" && fault.pick >= 0.5);
  const hasLag = faults.some(({ fault }) => fault.kind === "watch_lag" && fault.lagMs >= 1_000);
  return hasDrift && hasLag ? broken("I5") : undefined;
}

test("a schedule is shrunk to what breaks the same rule: fewer faults, rounder numbers, a shorter run", async () => {
  const shrunk = await shrink(SCHEDULE, attempt, { runs: 1_000 });

  expect(shrunk).toMatchObject({
    violation: broken("I5"),
    schedule: {
      seed: 7,
      faultsForMs: 6_000,
      faults: [
        { atMs: 0, fault: { kind: "watch_lag", lagMs: 1_000, forMs: 0 } },
        { atMs: 0, fault: { kind: "node_drift", pick: 0.5, clearsAfterMs: null } },
      ],
    },
  });
  expect(await shrink(SCHEDULE, attempt, { runs: 1_000 })).toEqual(shrunk);
});

test("what breaks nothing is not shrunk; a bound on the runs holds", async () => {
  expect(await shrink({ ...SCHEDULE, faults: [drift(1, 0)] }, attempt, { runs: 10 })).toBeUndefined();
  expect((await shrink(SCHEDULE, attempt, { runs: 3 }))?.runs).toBe(3);
  expect((await shrink(SCHEDULE, attempt, { runs: 1_000, isOver: () => true }))?.schedule).toEqual(SCHEDULE);
});

test("a schedule is kept with what happened, and read again as it was", () => {
  const log = ["1.000 fault {}", "1.100 controller-1 patchStatus pools/default/orders", "1.200 VIOLATION I5 x", "9.000 fault {}"];
  const text = formatRegression(SCHEDULE, broken("I5"), log);

  expect(transcriptOf(log)).toBe("1.000 fault {}\n1.200 VIOLATION I5 x\n");
  expect(parseRegression(text)).toEqual({
    ...SCHEDULE,
    rule: "I5",
    sentence: "I5 is broken",
    transcript: "1.000 fault {}\n1.200 VIOLATION I5 x\n",
  });
  expect(() => parseRegression(text.replace("node_drift", "node_drifting"))).toThrow("Invalid option");
});
