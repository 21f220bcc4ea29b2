import { expect, test } from "vitest";
import { epoch } from "../../kernel/epoch.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { StormChecks } from "./checks.ts";
import { Traffic } from "./traffic.ts";

const said = (look: (checks: StormChecks) => void): readonly string[] => {
  const checks = new StormChecks(new VirtualClock());
  look(checks);
  return checks.violations.map(({ id, sentence }) => `${id} ${sentence}`);
};

test("a second writer under the same epoch, a result below the tombstone, one after a newer one (I1, I2)", () => {
  expect(
    said((checks) => {
      checks.accepted("w", epoch(1, 1), "home", epoch(1, 1));
      checks.accepted("w", epoch(1, 2), "away", epoch(1, 2));
      checks.accepted("v", epoch(1, 1), "home", epoch(1, 1));
    }),
  ).toEqual([]);
  expect(
    said((checks) => {
      checks.accepted("w", epoch(1, 2), "away", epoch(1, 2));
      checks.accepted("w", epoch(1, 2), "elsewhere", epoch(1, 2));
      checks.accepted("w", epoch(1, 1), "home", epoch(1, 1));
      checks.accepted("w", epoch(1, 2), "away", epoch(1, 3));
    }),
  ).toEqual([
    "I1 w: away and elsewhere both write under 1.2",
    "I2 w: a result of 1.1 lands after one of 1.2",
    "I2 w: a result of 1.2 lands below the tombstone 1.3",
    "I1 w: elsewhere and away both write under 1.2",
  ]);
});

test("requests to a place that never passed its check (I11)", () => {
  expect(said((checks) => checks.traffic("w", 5))).toEqual([]);
  expect(said((checks) => checks.traffic("w", null))).toEqual(["I11 w: requests go to a place that never passed its check"]);
});

test("counts that do not add up, or a queue that holds something else than it counts (I14)", () => {
  const traffic = new Traffic(new VirtualClock(), 10, 1_000);
  expect(said((checks) => checks.counts(traffic, 0))).toEqual([]);
  expect(said((checks) => checks.counts(traffic, 1))[0]).toMatch(/^I14 .* 1 wait$/);
  traffic.counts.accepted = 1;
  expect(said((checks) => checks.counts(traffic, 0))[0]).toMatch(/^I14 /);
});
