/** What the demo on a real cluster came to: one JSON document, lines for people, and whether its claims and its control held. */
import type { ActResult } from "../load/tally.ts";
import type { DeadlineResult, DriftResult } from "./acts.ts";
import type { RequestCount } from "./audit.ts";

export interface KubernetesReport {
  readonly drift: DriftResult;
  readonly deadline: DeadlineResult;
  /** During `drift`. */
  readonly servingNeverBelow: number;
  readonly desired: number;
  /** Changes that the API server recorded of Relevo on what is not its own, but for the cordon of a node with evidence. */
  readonly foreignChanged: number;
  /** Deployments beyond one for each instance. */
  readonly duplicatesCreated: number;
  readonly inventoriesPerPassMax: number;
  readonly control: { readonly servingNeverBelow: number };
  /** Of the real client: both acts together, and the control. */
  readonly client: { readonly acts: ClientCounts; readonly control: ClientCounts };
  /** Of all replacements of `drift`, by the API server's own record. */
  readonly requests: readonly RequestCount[];
  readonly requestsPerReplacement: number;
  readonly durationS: number;
  readonly level: "real API server with simulated nodes";
  readonly held: boolean;
  readonly broken: readonly string[];
}

export type ClientCounts = Pick<ActResult, "sent" | "completed" | "queued" | "retried" | "rejected" | "cut" | "lost">;

export interface KubernetesFacts {
  readonly drift: DriftResult;
  readonly deadline: DeadlineResult;
  readonly servingNeverBelow: number;
  readonly desired: number;
  readonly foreign: readonly string[];
  readonly duplicatesCreated: number;
  readonly inventoriesPerPassMax: number;
  readonly controlServingNeverBelow: number;
  readonly client: { readonly acts: readonly ActResult[]; readonly control: ActResult };
  readonly requests: readonly RequestCount[];
  readonly durationMs: number;
}

export function reportOf(facts: KubernetesFacts): KubernetesReport {
  const { drift, deadline, servingNeverBelow, desired, duplicatesCreated, inventoriesPerPassMax, client, requests } = facts;
  const all = requests.reduce((sum, { count }) => sum + count, 0);
  const figures = {
    drift,
    deadline,
    servingNeverBelow,
    desired,
    foreignChanged: facts.foreign.length,
    duplicatesCreated,
    inventoriesPerPassMax,
    control: { servingNeverBelow: facts.controlServingNeverBelow },
    client: { acts: sumOf(client.acts), control: sumOf([client.control]) },
    requests,
    requestsPerReplacement: drift.replaced === 0 ? 0 : Math.round((all / drift.replaced) * 10) / 10,
    durationS: Math.round(facts.durationMs / 100) / 10,
    level: "real API server with simulated nodes" as const,
  };
  const broken = brokenClaims(figures, facts.foreign);
  return { ...figures, held: broken.length === 0, broken };
}

function sumOf(acts: readonly ActResult[]): ClientCounts {
  const names = ["sent", "completed", "queued", "retried", "rejected", "cut", "lost"] as const;
  return Object.fromEntries(names.map((name) => [name, acts.reduce((sum, act) => sum + act[name], 0)])) as unknown as ClientCounts;
}

/** Each claim in words, when it did not hold; the control must fall below, or the acts proved nothing. */
function brokenClaims(figures: Omit<KubernetesReport, "held" | "broken">, foreign: readonly string[]): readonly string[] {
  const { drift, deadline, desired, client } = figures;
  const broken: string[] = [];
  const claim = (holds: boolean, sentence: string) => {
    if (!holds) broken.push(sentence);
  };
  for (const what of ["evidence", "cordoned", "replaced"] as const)
    claim(drift[what] === desired, `drift: ${what} ${drift[what]} of ${desired}`);
  for (const what of ["evidence", "replaced", "drainedInTime"] as const)
    claim(deadline[what] === 1, `deadline: ${what} ${deadline[what]} of 1`);
  claim(figures.servingNeverBelow >= desired, `only ${figures.servingNeverBelow} of ${desired} served at times during drift`);
  claim(foreign.length === 0, `changed what is not its own: ${foreign.slice(0, 5).join(", ")}`);
  claim(figures.duplicatesCreated === 0, `${figures.duplicatesCreated} objects were created twice`);
  claim(figures.inventoriesPerPassMax <= 1, `${figures.inventoriesPerPassMax} inventories in one pass`);
  claim(client.acts.sent >= 100, `only ${client.acts.sent} requests were sent`);
  for (const what of ["rejected", "cut", "lost"] as const) claim(client.acts[what] === 0, `${client.acts[what]} requests ${what}`);
  claim(figures.control.servingNeverBelow < desired, "the control never served fewer than desired: this run proves nothing");
  return broken;
}

export function renderKubernetes(report: KubernetesReport): string {
  const { drift, deadline, desired, client, control } = report;
  const counts = ({ sent, completed, queued, retried, rejected, cut, lost }: ClientCounts) =>
    `${sent} sent, ${completed} completed (${queued} queued, ${retried} retried), ${rejected} rejected, ${cut} cut, ${lost} lost`;
  return [
    `drift      ${drift.evidence} pieces of evidence, ${drift.cordoned} nodes cordoned, ${drift.replaced} of ${desired} replaced;`,
    `           Karpenter waited for ${drift.karpenterWaited} protected nodes; never fewer than ${report.servingNeverBelow} of ${desired} served`,
    `deadline   ${deadline.evidence} piece of evidence, ${deadline.replaced} replaced, ${deadline.drainedInTime} drained before its end`,
    `client     ${counts(client.acts)}`,
    `control    as few as ${control.servingNeverBelow} of ${desired} served; ${counts(client.control)}`,
    "",
    `${report.foreignChanged} foreign objects changed, ${report.duplicatesCreated} made twice, ${report.inventoriesPerPassMax} inventories in a pass at most`,
    `${report.requestsPerReplacement} requests to the API server for each replacement, ${report.durationS} s in all`,
    `level: ${report.level}; their processes speak the protocol through a stand-in`,
    "",
    report.held
      ? "Every claim held, and the control fell below what was desired."
      : report.broken.map((each) => `BROKEN: ${each}`).join("\n"),
  ].join("\n");
}
