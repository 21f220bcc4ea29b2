/** `relevo up`: everything on this machine, until Ctrl-C. */
import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { RelevoError } from "../../kernel/errors.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { palette, renderDocument, shellWord } from "../output.ts";
import type { UpCommandOptions } from "../process-commands.ts";
import { untilAskedToEnd } from "../processes/child.ts";
import { startStack } from "../processes/stack.ts";
import { assertRunFileCanBeWritten } from "../run-file.ts";
import { findRunning } from "../running-here.ts";

const EXAMPLE = fileURLToPath(new URL("../../../examples/orders/pool.yaml", import.meta.url));

export async function up(context: CliContext, options: UpCommandOptions): Promise<ExitCode> {
  const { bold, dim } = palette(context);
  const other = await findRunning(context);
  if (other !== undefined)
    throw new RelevoError("already_running", "Relevo runs in this directory already.", {
      found: `process ${other.pids.up}, ${other.controllerUrl}`,
      todo: "end it, or start this one in another directory with other ports (see relevo up --help)",
    });
  assertRunFileCanBeWritten(context.cwd);
  const asked = untilAskedToEnd();
  const stack = await startStack({
    cwd: context.cwd,
    dir: resolve(context.cwd, options.dir),
    nodes: options.nodes,
    onDemand: options.onDemand,
    zones: options.zones,
    bootDelayMs: options.bootDelay,
    disruptionIntervalMs: options.disruptionInterval,
    spotLeadMs: options.spotLead,
    ...(options.connections === undefined ? {} : { connections: resolve(context.cwd, options.connections) }),
    ports: { gateway: options.port, controller: options.controllerPort, cluster: options.clusterPort, admin: options.adminPort },
    logLevel: options.logLevel,
    token: context.env.RELEVO_TOKEN ?? null,
    clock: context.clock,
    onDeath: (name, how) => context.err(`relevo: the process ${name} ended (${how}) and is started again\n`),
    onTrouble: (sentence) => context.err(`relevo: ${sentence}\n`),
    onReady: (name) => context.err(dim(`${name} is up\n`)),
  });
  const { gatewayUrl, controllerUrl, clusterUrl, adminUrl, kubeconfig } = stack;
  const document = renderDocument({ gatewayUrl, controllerUrl, clusterUrl, adminUrl, kubeconfig }, options.output);
  context.out(
    document ??
      [
        bold("relevo is up"),
        `  gateway     ${gatewayUrl}`,
        `  controller  ${controllerUrl}  (API: /openapi.json, metrics: /metrics)`,
        `  cluster     ${clusterUrl}  (kubectl --kubeconfig ${shellWord(kubeconfig)} get nodes)`,
        "",
        `next: npx relevo apply -f ${shellWord(relative(context.cwd, EXAMPLE))}, then npx relevo get pools; Ctrl-C ends everything`,
        "",
      ].join("\n"),
  );
  await asked;
  context.err("\nending in good order; a second Ctrl-C ends at once\n");
  await stack.stop();
  return EXIT.done;
}
