/**
 * How the size follows the demand: twenty load shapes on a simple model of a queue and its workers, under Relevo's own policy and under the reference HPA policy on
 * the very same jobs. Prints a table on stderr and one JSON document on stdout.
 *
 * Holds when over all shapes both over-provisioning and time above target are less than the reference's, and no shape sees more than one change of direction
 * within a cool-down. Control: the same policy without its windows and its cool-down must not hold.
 *
 * `node bench/scaling.ts [--seed N]`
 */
import { parseArgs } from "node:util";
import { renderTable } from "../src/cli/output.ts";
import { compare, type Comparison } from "./scaling/compare.ts";
import { policyOf } from "./scaling/policy.ts";
import { say } from "./fleet/machine.ts";

const NAME = "scaling";
const { values } = parseArgs({ options: { seed: { type: "string", default: "1" }, scale: { type: "string", default: "{}" } } });
const seed = Number(values.seed);
const NO_WINDOWS = { up: { window: "0s" }, down: { window: "0s" }, cooldown: "0s" };

say(NAME, `20 load shapes, seed ${seed}`);
const ours = compare(policyOf(JSON.parse(values.scale)), seed);
say(NAME, "the control: without windows and cool-down");
const control = compare(policyOf(NO_WINDOWS), seed, policyOf().cooldown);
show(ours);
const holds = ours.problems.length === 0 && control.problems.length > 0;
process.stdout.write(
  `${JSON.stringify({ bench: NAME, seed, policy: ours, control: { ...control, shapes: undefined }, controlFailed: control.problems.length > 0, holds })}\n`,
);
if (!holds) process.exitCode = 1;

function show({ shapes }: Comparison): void {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  process.stderr.write(
    renderTable(
      shapes,
      [
        { head: "LOAD", cell: ({ name }) => name },
        { head: "OVER", cell: ({ relevo }) => percent(relevo.overProvisioning) },
        { head: "HPA", cell: ({ hpa }) => percent(hpa.overProvisioning) },
        { head: "ABOVE", cell: ({ relevo }) => percent(relevo.timeAboveTarget) },
        { head: "HPA", cell: ({ hpa }) => percent(hpa.timeAboveTarget) },
        { head: "WAIT", cell: ({ relevo }) => `${relevo.meanWaitS.toFixed(1)} s` },
        { head: "HPA", cell: ({ hpa }) => `${hpa.meanWaitS.toFixed(1)} s` },
        { head: "CHANGES", cell: ({ relevo }) => String(relevo.changes) },
        { head: "HPA", cell: ({ hpa }) => String(hpa.changes) },
        { head: "TURNS IN A COOL-DOWN", cell: ({ relevo }) => String(relevo.mostTurns) },
        { head: "HELD", cell: ({ held }) => String(held) },
      ],
      { now: 0 },
    ),
  );
}
