/** A seed is always the same run. Storms, and seeds over several processes: `determinism.real.test.ts`. */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { simulate } from "./seeds.ts";

test("the same seed gives the same event log to the byte, twice here and once in another process", async () => {
  const first = await simulate(7);
  const second = await simulate(7);
  const script = join(import.meta.dirname, "../../tools/simulate/simulate.ts");
  const elsewhere: unknown = JSON.parse(execFileSync(process.execPath, ["--no-warnings", script, "--seeds", "7"], { encoding: "utf8" }));

  expect(first.log.length).toBeGreaterThan(100);
  expect(second.hash).toBe(first.hash);
  expect(elsewhere).toMatchObject({ seeds: "7..7", hash: first.hash });
}, 120_000);

test.each([
  ["--seeds", "2..1"],
  ["--seeds", "0..-1"],
  ["--seeds", "1..1e12"],
  ["--seeds", "9".repeat(20)],
  ["--workers", "0"],
  ["--workers", "1000"],
])("%s %s is refused: a range without a seed does not pass, and no fleet of processes is started", (option, value) => {
  const script = join(import.meta.dirname, "../../tools/simulate/simulate.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--no-warnings", script, option, value], { encoding: "utf8" });
  expect([status, stdout, stderr.split(";")[0]]).toEqual([2, "", `${option}: found ${value}`]);
});

test("another seed is another run", async () => {
  const [one, other] = [await simulate(8, { faultsForMs: 1_000 }), await simulate(9, { faultsForMs: 1_000 })];

  expect(one.hash).not.toBe(other.hash);
});
