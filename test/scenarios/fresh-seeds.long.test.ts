/** Seeds that nobody has seen before; their range is printed, and `npm run simulate:standard` shows each again. */
import { expect, test } from "vitest";
import { simulateRange } from "./simulate-range.ts";

const SEEDS = 1_000;

test(`${SEEDS} fresh seeds of the standard mix violate nothing and converge, and every kind of fault is among them`, async () => {
  const from = Number(process.env["RELEVO_SIM_FROM"] ?? 1_000_000 + (Date.now() % 1_000_000_000));
  process.stdout.write(`seeds ${from}..${from + SEEDS - 1}\n`);
  expect(await simulateRange(from, from + SEEDS - 1)).toEqual({ code: 0, output: "" });
}, 900_000);
