/**
 * How the size follows the demand: twenty load shapes on a simple model of a queue and its workers, under Relevo's own policy and under the reference HPA policy on
 * the very same jobs; once as a signal that is polled, once as one that tells of changes. Prints a table on stderr and one JSON document on stdout.
 *
 * Then what no number of instances helps against (K6): jobs that hang, and something that all share. There it must not grow as the reference does.
 *
 * Holds when over all shapes both over-provisioning and time above target are less than the reference's, and no shape sees more than one change of direction
 * within a cool-down. Control: the same policy without its windows and its cool-down must not hold.
 *
 * Last a thousand pools under one controller (`scaling-pools.ts`), in a process of its own: what it costs, and how soon sizes follow.
 *
 * `node bench/scaling.ts [--seed N] [--policy-only]`
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { renderTable } from "../src/cli/output.ts";
import { compare, type Comparison } from "./scaling/compare.ts";
import { policyOf } from "./scaling/policy.ts";
import { sick } from "./scaling/sick.ts";
import { say } from "./fleet/machine.ts";

const NAME = "scaling";
const { values } = parseArgs({ options: { seed: { type: "string", default: "1" }, "policy-only": { type: "boolean", default: false } } });
const seed = Number(values.seed);
/** The built-in queue tells of changes; a look each second stands for that. */
const PUSHED = { pollEvery: "1s" };
const NO_WINDOWS = { up: { window: "0s" }, down: { window: "0s" }, cooldown: "0s" };

const polled = measured("polled", compare(policyOf(), seed));
const pushed = measured("pushed", compare(policyOf(PUSHED), seed));
const ill = sick(seed);
say(NAME, `what no number of instances helps against: ${ill.problems.join("; ") || "no problem"}`);
const control = compare(policyOf(NO_WINDOWS), seed, policyOf().cooldown);
say(NAME, `the control, without windows and cool-down: ${control.problems.length} problems`);
const isPolicyRight = [polled, pushed, ill].every(({ problems }) => problems.length === 0) && control.problems.length > 0;
const policy = { polled, pushed, sick: ill, control: { ...control, shapes: undefined }, holds: isPolicyRight };
const pools = values["policy-only"] ? undefined : manyPools();
const holds = isPolicyRight && pools?.holds !== false;
process.stdout.write(`${JSON.stringify({ bench: NAME, seed, policy, pools, holds })}\n`);
if (!holds) process.exitCode = 1;

/** Its memory is one of its figures. */
function manyPools(): { readonly holds: boolean } {
  say(NAME, "a thousand pools under one controller");
  const script = join(import.meta.dirname, "scaling-pools.ts");
  const run = spawnSync(process.execPath, ["--no-warnings", script], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  if (run.stdout.trim() === "") throw new Error(`scaling-pools told nothing, and ended with ${run.status ?? run.signal}`);
  return JSON.parse(run.stdout) as { readonly holds: boolean };
}

function measured(kind: string, comparison: Comparison): Comparison {
  say(NAME, `${comparison.shapes.length} load shapes, ${kind}, seed ${seed}: ${comparison.problems.join("; ") || "no problem"}`);
  show(comparison);
  return comparison;
}

function show({ shapes, relevo, hpa }: Comparison): void {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  process.stderr.write(
    renderTable(
      [...shapes, { name: "mean of all", relevo, hpa, held: shapes.reduce((sum, { held }) => sum + held, 0) }],
      [
        { head: "LOAD", cell: ({ name }) => name },
        { head: "OVER", cell: ({ relevo }) => percent(relevo.overProvisioning) },
        { head: "HPA", cell: ({ hpa }) => percent(hpa.overProvisioning) },
        { head: "ABOVE", cell: ({ relevo }) => percent(relevo.timeAboveTarget) },
        { head: "HPA", cell: ({ hpa }) => percent(hpa.timeAboveTarget) },
        { head: "WAIT", cell: ({ relevo }) => `${relevo.meanWaitS.toFixed(1)} s` },
        { head: "HPA", cell: ({ hpa }) => `${hpa.meanWaitS.toFixed(1)} s` },
        { head: "CHANGES", cell: ({ relevo }) => String(Math.round(relevo.changes)) },
        { head: "HPA", cell: ({ hpa }) => String(Math.round(hpa.changes)) },
        { head: "TURNS IN A COOL-DOWN", cell: ({ relevo }) => String(relevo.mostTurns) },
        { head: "HELD", cell: ({ held }) => String(held) },
      ],
      { now: 0 },
    ).concat("\n"),
  );
}
