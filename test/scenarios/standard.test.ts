/** Seeds of the standard mix, and that a seed is always the same run. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { simulate, simulateAll } from "./seeds.ts";

const SECONDS = 1_000;

test("pools come through mixed faults: no invariant is violated, and all converge (I3–I8, I11, I14–I19, I21, I26, I27)", async () => {
  expect(await simulateAll(1, 30, { faultsForMs: 30 * SECONDS })).toEqual([]);
}, 120_000);

test("the same seed gives the same event log to the byte, twice here and once in another process", async () => {
  const first = await simulate(7);
  const second = await simulate(7);
  const script = join(import.meta.dirname, "print-hash.ts");
  const elsewhere = execFileSync(process.execPath, ["--no-warnings", script, "7"], { encoding: "utf8" }).trim();

  expect(first.log.length).toBeGreaterThan(100);
  expect([second.hash, elsewhere]).toEqual([first.hash, first.hash]);
}, 120_000);

test("another seed is another run", async () => {
  const [one, other] = [await simulate(8, { faultsForMs: SECONDS }), await simulate(9, { faultsForMs: SECONDS })];

  expect(one.hash).not.toBe(other.hash);
});
