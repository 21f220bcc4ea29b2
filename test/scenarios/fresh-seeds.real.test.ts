/** Seeds that nobody has seen before; their range is printed, and `npm run simulate:standard` shows each again. */
import { expect, test } from "vitest";
import { simulateAll } from "./seeds.ts";

const SEEDS = 500;
const AT_ONCE = 25;

test(`${SEEDS} fresh seeds of the standard mix violate nothing and converge`, async () => {
  const from = Number(process.env["RELEVO_SIM_FROM"] ?? 1_000_000 + (Date.now() % 1_000_000_000));
  process.stdout.write(`seeds ${from}..${from + SEEDS - 1}\n`);
  const failures: string[] = [];
  for (let at = from; at < from + SEEDS && failures.length === 0; at += AT_ONCE) failures.push(...(await simulateAll(at, AT_ONCE)));

  expect(failures).toEqual([]);
}, 900_000);
