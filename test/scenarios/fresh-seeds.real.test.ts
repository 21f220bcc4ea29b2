/** Seeds that nobody has seen before; their range is printed, and `npm run simulate:standard` shows each again. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

const SEEDS = 1_000;

test(`${SEEDS} fresh seeds of the standard mix violate nothing and converge, and every kind of fault is among them`, async () => {
  const from = Number(process.env["RELEVO_SIM_FROM"] ?? 1_000_000 + (Date.now() % 1_000_000_000));
  const seeds = `${from}..${from + SEEDS - 1}`;
  process.stdout.write(`seeds ${seeds}\n`);
  const script = join(import.meta.dirname, "../../tools/simulate/simulate.ts");
  const run = spawn(process.execPath, ["--no-warnings", script, "--seeds", seeds], { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(run.stdout), once(run, "exit")]);

  expect({ code, output: code === 0 ? "" : output }).toEqual({ code: 0, output: "" });
}, 900_000);
