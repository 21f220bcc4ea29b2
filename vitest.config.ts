import { defineConfig } from "vitest/config";

/**
 * Three tiers: `fast` needs Node alone, `real` needs servers of the distribution (tests end in `.real.test.ts`),
 * `long` needs big peers or minutes (`.long.test.ts`). A tier fails, and never skips, when what it needs is missing.
 */
const tier = (name: string, include: string[], exclude: string[], testTimeout: number, rest: object = {}) => ({
  test: { name, include, exclude: ["**/node_modules/**", ...exclude], testTimeout, hookTimeout: testTimeout, ...rest },
});

/** Minutes under a virtual clock, after all others and on all cores: nobody's timing suffers when they share the machine. */
const VIRTUAL = { maxWorkers: "100%", sequence: { groupOrder: 1 } };
const REAL_VIRTUAL = "test/scenarios/**/*.real.test.ts";
const LONG_VIRTUAL = "test/scenarios/**/*.long.test.ts";

const OTHER_TIERS = ["**/*.real.test.ts", "**/*.long.test.ts"];

export default defineConfig({
  test: {
    projects: [
      tier("fast", ["src/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"], OTHER_TIERS, 20_000),
      tier("real", ["src/**/*.real.test.ts", "test/**/*.real.test.ts"], [REAL_VIRTUAL], 120_000),
      tier("real-virtual", [REAL_VIRTUAL], [], 120_000, VIRTUAL),
      tier("long", ["src/**/*.long.test.ts", "test/**/*.long.test.ts"], [LONG_VIRTUAL], 900_000),
      tier("long-virtual", [LONG_VIRTUAL], [], 900_000, VIRTUAL),
    ],
  },
});
