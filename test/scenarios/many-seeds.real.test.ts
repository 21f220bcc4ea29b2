/**
 * Seeds of the standard mix that no commit before this one ran: fresh with every commit, and the same whenever that commit is judged again. What they find is
 * a fault of this commit's tree, never of the day; `fresh-seeds.long.test.ts` draws its own each time.
 */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { simulateRange } from "./simulate-range.ts";

const SEEDS = 1_000;
/** Beyond those of the whole range that is run before an issue is closed. */
const BEYOND = 10_000;

test(`${SEEDS} seeds of the standard mix, fresh with this commit, violate nothing and converge, and every kind of fault is among them`, async () => {
  const from = BEYOND + 1 + SEEDS * commits();
  process.stdout.write(`seeds ${from}..${from + SEEDS - 1}\n`);
  expect(await simulateRange(from, from + SEEDS - 1)).toEqual({ code: 0, output: "" });
}, 900_000);

/** How many led to what is checked out. */
function commits(): number {
  const out = execFileSync("git", ["rev-list", "--count", "HEAD"], { cwd: import.meta.dirname, encoding: "utf8" });
  return Number(out);
}
