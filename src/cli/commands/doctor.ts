/**
 * `relevo doctor`: what is wrong with the installation, each finding with what to do. `refused` means that Relevo's claims do not hold as it stands (exit code
 * 3); `held` that something waits for an operator (4); a warning is worth knowing (0).
 */
import { formatInstant } from "../../kernel/clock.ts";
import { describeError, RelevoError } from "../../kernel/errors.ts";
import { bad, type Finding } from "../../model/finding.ts";
import { type ControllerClient, connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { checkCluster, checkSources } from "../doctor/cluster.ts";
import { checkController, checkReadiness, checkRunFile } from "../doctor/controller.ts";
import { checkExceptions } from "../doctor/exceptions.ts";
import { checkGateways } from "../doctor/gateways.ts";
import { checkCordons, checkForcedSeals, checkPools, checkSteps } from "../doctor/pools.ts";
import { checkStoreItself } from "../doctor/store.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { palette, renderDocument } from "../output.ts";

/** In the order in which they are told. */
const PARTS = [
  checkReadiness,
  checkStoreItself,
  checkGateways,
  checkCluster,
  checkSources,
  checkPools,
  checkCordons,
  checkSteps,
  checkForcedSeals,
  checkExceptions,
];

export async function doctor(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const findings = await examine(context, options);
  const document = renderDocument({ at: formatInstant(context.clock.now()), findings }, options.output);
  context.out(document ?? findings.map((finding) => lineOf(context, finding)).join(""));
  if (findings.some(({ state }) => state === "refused")) return EXIT.refused;
  return findings.some(({ state }) => state === "held") ? EXIT.held : EXIT.done;
}

function lineOf(context: CliContext, { check, state, message, todo }: Finding): string {
  const { green, yellow, red } = palette(context);
  const colour = state === "ok" ? green : state === "refused" ? red : yellow;
  return `${colour(state.padEnd(8))} ${check}: ${message}${todo === null ? "" : `; ${todo}`}\n`;
}

async function examine(context: CliContext, options: GlobalOptions): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  let client: ControllerClient;
  try {
    if (options.server === undefined && context.env.RELEVO_SERVER === undefined) findings.push(...checkRunFile(context));
    client = connect(context, options);
    findings.push(...(await checkController(context, client)));
  } catch (error) {
    const todo = error instanceof RelevoError ? error.todo : undefined;
    return [
      ...findings,
      bad(
        "controller",
        "refused",
        (error instanceof Error ? error.message : String(error)).replace(/\.$/, ""),
        todo ?? "start it with npx relevo up",
      ),
    ];
  }
  // Each part may be refused for its own reason, and the others still tell.
  for (const part of PARTS) {
    try {
      findings.push(...(await part(client)));
    } catch (error) {
      findings.push(bad("controller", "refused", describeError(error), "see the controller's log"));
    }
  }
  return findings;
}
