/** `relevo demo [NAME]`: plays it, shows the result, and stays up unless `--once`. Exit code 0 only when its claims and its control held. */
import { systemRandom } from "../../kernel/system.ts";
import { nearest } from "../../model/problems.ts";
import type { CliContext } from "../context.ts";
import { Narrator } from "../demo/narrator.ts";
import { playMainJob, type RunningDemo } from "../demo/main-job.ts";
import { renderReport } from "../demo/table.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { palette } from "../output.ts";
import type { DemoCommandOptions } from "../process-commands.ts";
import { untilAskedToEnd } from "../processes/child.ts";

const DEMOS: Readonly<Record<string, string>> = {
  "main-job": "a fleet of real processes outlives its nodes: voluntary, deadline, forced, a killed controller, and the same without Relevo",
};
const DEFAULT_DEMO = "main-job";

export async function demo(context: CliContext, name: string | undefined, options: DemoCommandOptions): Promise<ExitCode> {
  if (options.list) {
    context.out(
      options.output === "json"
        ? `${JSON.stringify(DEMOS)}\n`
        : Object.entries(DEMOS)
            .map(([key, text]) => `${key}  ${text}\n`)
            .join(""),
    );
    return EXIT.done;
  }
  if (name !== undefined && DEMOS[name] === undefined) {
    const near = nearest(name, Object.keys(DEMOS));
    throw new UsageError("demo_unknown", `There is no demo ${name}.`, {
      found: name,
      allowed: Object.keys(DEMOS).join(", "),
      ...(near ? { todo: `did you mean ${near}?` } : {}),
    });
  }
  const isJson = options.output === "json";
  const asked = untilAskedToEnd();
  const narrator = new Narrator({
    write: isJson ? context.err : context.out,
    columns: () => (isJson ? undefined : context.columns()),
    palette: palette(isJson ? { ...context, isTerminal: false } : context),
    clock: context.clock,
  });
  const running = await playMainJob({
    cwd: context.cwd,
    deadlineMs: options.deadline,
    clock: context.clock,
    ids: context.ids,
    random: systemRandom,
    // The JSON document is the last line of stdout, and with it the only one.
    narrator,
    signal: context.signal,
    logLevel: "info",
  });
  try {
    narrator.end();
    const { report } = running;
    if (!isJson) context.out(`\n${renderReport(report)}\n`);
    if (isJson) context.out(`${JSON.stringify(report)}\n`);
    else if (options.once !== true) context.out(addresses(context, running, DEFAULT_DEMO));
    if (options.once !== true) await asked;
    return report.held ? EXIT.done : EXIT.failed;
  } finally {
    await running.stop();
  }
}

function addresses(context: CliContext, { stack }: RunningDemo, name: string): string {
  const { bold } = palette(context);
  return [
    "",
    bold(`the fleet of ${name} stays up; Ctrl-C ends it`),
    `  gateway     ${stack.gatewayUrl}`,
    `  controller  ${stack.controllerUrl}  (API: /openapi.json, metrics: /metrics)`,
    `  cluster     kubectl --kubeconfig ${stack.kubeconfig} get pods -o wide`,
    "  go on with  npx relevo get instances --watch",
    "              npx relevo explain orders",
    "              npx relevo plan orders",
    "              npx relevo notify --node NODE",
    "              npx relevo storm --nodes 2 --deadline 20s",
    "              npx relevo doctor",
    "",
  ].join("\n");
}
