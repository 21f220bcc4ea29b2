/** `relevo demo [NAME]`: plays it, shows the result, and stays up unless `--once`. Exit code 0 only when its claims and its control held. */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { systemRandom } from "../../kernel/system.ts";
import { nearest } from "../../model/problems.ts";
import type { CliContext } from "../context.ts";
import { playKubernetes } from "../demo/kubernetes/demo.ts";
import { type KubernetesReport, renderKubernetes } from "../demo/kubernetes/report.ts";
import type { KubernetesAddresses } from "../demo/kubernetes/site.ts";
import { Narrator } from "../demo/narrator.ts";
import { type DemoOptions, playMainJob } from "../demo/main-job.ts";
import type { DemoReport } from "../demo/report.ts";
import { renderStorm, type StormReport } from "../demo/storm/report.ts";
import { playStorm } from "../demo/storm/storm.ts";
import { renderReport } from "../demo/table.ts";
import { renderWorkers, type WorkersReport } from "../demo/workers/report.ts";
import { renderTrino, type TrinoReport } from "../demo/trino/report.ts";
import { playTrino } from "../demo/trino/trino.ts";
import { playWorkers } from "../demo/workers/workers.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { palette, shellWord } from "../output.ts";
import type { DemoCommandOptions } from "../process-commands.ts";
import { untilAskedToEnd } from "../processes/child.ts";
import { assertRunFileCanBeWritten } from "../run-file.ts";
import { findRunning } from "../running-here.ts";

const DEMOS: Readonly<Record<string, string>> = {
  "main-job": "a fleet of real processes outlives its nodes: voluntary, deadline, forced, a killed controller, and the same without Relevo",
  storm: "most nodes are announced to go within seconds: three classes of real processes move, critical first; and the same without Relevo",
  kubernetes: "a real Kubernetes whose nodes a real Karpenter drifts, and ends at a deadline; and the same without protection (in a clone)",
  workers:
    "workers on a queue: their number follows the backlog; jobs that hang are repaired first; and the same scaled by CPU and by backlog alone",
  trino:
    "clusters of a real Trino: replaced without a lost query, a worker that goes at a deadline or dies, a killed coordinator; with controls (in a clone)",
};
type DemoName = "main-job" | "storm" | "kubernetes" | "workers" | "trino";
/** Between a spot warning and the loss of the node. */
const DEADLINE_MS: Readonly<Record<DemoName, number>> = {
  "main-job": 20_000,
  storm: 60_000,
  kubernetes: 120_000,
  workers: 120_000,
  trino: 40_000,
};
const STORM_NODES = 20;
/** Load for each core; the demo alone is about one for each of two. */
const BUSY = 2;

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
  // Two in one directory would take each other's commands.
  const isSecond = (await findRunning(context)) !== undefined;
  const home = isSecond ? mkdtempSync(join(tmpdir(), "relevo-commands-")) : context.cwd;
  assertRunFileCanBeWritten(home);
  const chosen: DemoName = name === "storm" || name === "kubernetes" || name === "workers" || name === "trino" ? name : "main-job";
  if ((chosen === "kubernetes" || chosen === "workers") && options.deadline !== undefined)
    throw new UsageError(
      "deadline_not_asked",
      chosen === "kubernetes" ? "The deadline of this demo is Karpenter's." : "In this demo no node goes.",
      { found: "--deadline", allowed: `relevo demo ${chosen} --once` },
    );
  if (options.nodes !== undefined && chosen !== "storm")
    throw new UsageError("nodes_not_asked", "--nodes is of the storm.", { found: options.nodes, allowed: "relevo demo storm --nodes N" });
  const running = await play(chosen, options.nodes ?? STORM_NODES, {
    cwd: home,
    deadlineMs: options.deadline ?? DEADLINE_MS[chosen],
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
    const { report, table } = running;
    if (!isJson) context.out(`\n${table}\n${report.held ? "" : busyNote()}`);
    if (isJson && !report.held) context.err(busyNote());
    if (isJson) context.out(`${JSON.stringify(report)}\n`);
    else if (options.once !== true) context.out(addresses(context, running, home));
    if (options.once !== true) {
      await asked;
      context.err("\nending in good order; a second Ctrl-C ends at once\n");
    }
    return report.held ? EXIT.done : EXIT.failed;
  } finally {
    await running.stop();
    if (isSecond) rmSync(home, { recursive: true, force: true });
  }
}

interface PlayedDemo {
  readonly report: DemoReport | StormReport | KubernetesReport | WorkersReport | TrinoReport;
  /** The same for people. */
  readonly table: string;
  readonly addresses: KubernetesAddresses;
  /** Commands in its directory find it. */
  readonly hasRunFile: boolean;
  /** Arguments of commands that go on with it, where they are not those of the main job. */
  readonly goOn?: readonly string[];
  stop(): Promise<void>;
}

async function play(name: DemoName, nodes: number, options: DemoOptions): Promise<PlayedDemo> {
  switch (name) {
    case "storm": {
      const { report, stack, stop } = await playStorm({ ...options, going: nodes });
      return { report, stop, addresses: stack, hasRunFile: true, table: renderStorm(report) };
    }
    case "kubernetes": {
      const { report, addresses, stop } = await playKubernetes(options);
      return { report, stop, addresses, hasRunFile: false, table: renderKubernetes(report) };
    }
    case "workers": {
      const { report, stack, connections, stop } = await playWorkers(options);
      return { report, stop, addresses: stack, hasRunFile: true, goOn: workersHints(connections), table: renderWorkers(report) };
    }
    case "trino": {
      const { report, stack, stop } = await playTrino(options);
      return { report, stop, addresses: stack, hasRunFile: true, goOn: TRINO_HINTS, table: renderTrino(report) };
    }
    case "main-job": {
      const { report, stack, stop } = await playMainJob(options);
      return { report, stop, addresses: stack, hasRunFile: true, table: renderReport(report) };
    }
    default:
      return name satisfies never;
  }
}

function addresses(
  context: CliContext,
  { addresses: stack, hasRunFile, goOn }: Pick<PlayedDemo, "addresses" | "hasRunFile" | "goOn">,
  home: string,
): string {
  const { bold } = palette(context);
  if (!hasRunFile)
    return [
      "",
      bold("the cluster and the fleet stay up, without load; Ctrl-C ends them"),
      `  gateway     ${stack.gatewayUrl}  (a stream: curl -N -H 'Host: orders' '${stack.gatewayUrl}/export?id=mine')`,
      `  controller  ${stack.controllerUrl}  (API: /openapi.json, metrics: /metrics)`,
      `  cluster     kubectl --kubeconfig ${shellWord(stack.kubeconfig)} get pools,nodeclaims`,
      `  go on with  npx relevo --server ${stack.controllerUrl} get instances --watch`,
      `              npx relevo --server ${stack.controllerUrl} explain orders`,
      "",
    ].join("\n");
  const isHere = home === context.cwd;
  const relevo = isHere ? "npx relevo" : `node ${shellWord(process.argv[1] ?? "relevo")}`;
  if (goOn !== undefined)
    return [
      "",
      bold("the pool stays up, without work; Ctrl-C ends it"),
      `  controller  ${stack.controllerUrl}  (API: /openapi.json, metrics: /metrics)`,
      `  cluster     kubectl --kubeconfig ${shellWord(stack.kubeconfig)} get pools,pods -o wide`,
      ...(isHere ? [] : [`  another one answers the commands of this directory: cd ${shellWord(home)} for this one`]),
      ...goOn.map((args, index) => `  ${index === 0 ? "go on with" : "          "}  ${relevo} ${args}`),
      "",
    ].join("\n");
  return [
    "",
    bold("the fleet stays up, without load; Ctrl-C ends it"),
    `  gateway     ${stack.gatewayUrl}  (a stream: curl -N -H 'Host: orders' '${stack.gatewayUrl}/export?id=mine')`,
    `  controller  ${stack.controllerUrl}  (API: /openapi.json, metrics: /metrics)`,
    `  cluster     kubectl --kubeconfig ${shellWord(stack.kubeconfig)} get pods -o wide`,
    ...(isHere ? [] : [`  another one answers the commands of this directory: cd ${shellWord(home)} for this one`]),
    `  go on with  ${relevo} get instances --watch`,
    `              ${relevo} explain orders`,
    `              ${relevo} plan orders`,
    `              ${relevo} notify --node NODE`,
    `              ${relevo} storm --nodes 2 --deadline 20s`,
    `              ${relevo} doctor`,
    "",
  ].join("\n");
}

const TRINO_HINTS = ["get instances --watch", "explain trino", "plan trino"];

function workersHints(connections: string): readonly string[] {
  const fed = `--connections ${shellWord(connections)} --payload '{"frames": 20, "frameMs": 75}'`;
  return [
    "explain capture",
    "get scale",
    "check capture",
    `verify scaling capture ${fed}`,
    `loadtest capture ${fed} --stuck-share 0.1 --stuck-payload '{"hang": true}'`,
  ];
}

/** Times say little where more wants to run than there are cores. */
function busyNote(): string {
  const [load = 0] = loadavg();
  const cores = availableParallelism();
  return load > BUSY * cores
    ? `note: this machine is busy (load ${load.toFixed(1)} on ${cores} cores): the times above are not Relevo's alone\n`
    : "";
}
