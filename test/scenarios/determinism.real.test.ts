/** As `determinism.test.ts`: over several processes, and of storms. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runStorm } from "../../src/sim/storm/approaches.ts";
import { FLEETS } from "../../tools/mutants/fleets.ts";

test("whatever the number of processes, the seeds come out the same", () => {
  const script = join(import.meta.dirname, "../../tools/simulate/simulate.ts");
  const [alone, together] = ["1", "3"].map((workers): unknown => {
    const output = execFileSync(process.execPath, ["--no-warnings", script, "--seeds", "11..15", "--workers", workers], {
      encoding: "utf8",
    });
    const { seedsPerSecond: _, timesRealTime: __, ...result } = JSON.parse(output) as Record<string, unknown>;
    return result;
  });

  expect(together).toEqual(alone);
}, 120_000);

test("a storm is the same to the byte, twice here and once in another process", async () => {
  const [first, second] = [await runStorm(FLEETS.shared(), 7, "relevo"), await runStorm(FLEETS.shared(), 7, "relevo")];
  const root = join(import.meta.dirname, "../..");
  const code = `
    const { runStorm } = await import("${root}/src/sim/storm/approaches.ts");
    const { FLEETS } = await import("${root}/tools/mutants/fleets.ts");
    console.log((await runStorm(FLEETS.shared(), 7, "relevo")).hash);`;
  const elsewhere = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", code], { encoding: "utf8" }).trim();

  expect(first.log.length).toBeGreaterThan(30);
  expect(second.hash).toBe(first.hash);
  expect(elsewhere).toBe(first.hash);
}, 120_000);
