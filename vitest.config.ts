import { defineConfig } from "vitest/config";

/**
 * Three tiers: `fast` needs Node alone, `real` needs servers of the distribution (tests end in `.real.test.ts`),
 * `long` needs big peers or minutes (`.long.test.ts`). A tier fails, and never skips, when what it needs is missing.
 */
const tier = (name: string, include: string[], exclude: string[], testTimeout: number, rest: object = {}) => ({
  test: { name, include, exclude: ["**/node_modules/**", ...exclude], testTimeout, hookTimeout: testTimeout, ...rest },
});

/** Of the tier `real`, minutes under a virtual clock: nobody's timing suffers when they share the machine. */
const VIRTUAL = "test/scenarios/**/*.real.test.ts";

const OTHER_TIERS = ["**/*.real.test.ts", "**/*.long.test.ts"];

export default defineConfig({
  test: {
    projects: [
      tier("fast", ["src/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"], OTHER_TIERS, 20_000),
      tier("real", ["src/**/*.real.test.ts", "test/**/*.real.test.ts"], [VIRTUAL], 120_000),
      tier("real-virtual", [VIRTUAL], [], 120_000, { maxWorkers: "100%", sequence: { groupOrder: 1 } }),
      tier("long", ["src/**/*.long.test.ts", "test/**/*.long.test.ts"], [], 900_000),
    ],
  },
});
