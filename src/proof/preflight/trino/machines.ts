/**
 * Whether a cluster's pods fit a machine after the system's tax, which machine is the smallest that fits (T17), and whether the quotas have room for what a
 * replacement needs beside what is there (T7).
 */
import { parseQuantity } from "../../../kernel/units.ts";
import { type Machine, type Quota, type Sizing, takenByMachine } from "../../../model/sizing.ts";
import { fine, found, inMiB, type Judgement, type PodPlan } from "./facts.ts";

interface Demand {
  readonly cpu: number;
  readonly memory: number;
}

/** As the scheduler counts: all containers together, or the largest init container. */
export function demandOf({ spec }: Pick<PodPlan, "spec">): Demand {
  const of = (name: "cpu" | "memory"): number => {
    const asked = ({ resources }: (typeof spec.containers)[number]): number =>
      parseQuantity(resources?.requests?.[name] ?? resources?.limits?.[name] ?? 0) ?? 0;
    const together = spec.containers.reduce((sum, container) => sum + asked(container), 0);
    return Math.max(together, ...(spec.initContainers ?? []).map(asked));
  };
  return { cpu: of("cpu"), memory: of("memory") };
}

function freeOf(machine: Machine, { tax }: Sizing): Demand {
  return { cpu: machine.cpu - tax.cpu, memory: machine.memory - tax.memory };
}

function fits(demand: Demand, free: Demand): boolean {
  return demand.cpu <= free.cpu + 1e-9 && demand.memory <= free.memory;
}

/** The first, by cores and then by memory, on which each of the pods fits alone. */
export function smallestThatFits(plans: readonly PodPlan[], sizing: Sizing): Machine | undefined {
  const bySize = sizing.machines.toSorted((a, b) => a.cpu - b.cpu || a.memory - b.memory || (a.name < b.name ? -1 : 1));
  return bySize.find((machine) => plans.every((plan) => fits(demandOf(plan), freeOf(machine, sizing))));
}

export function judgeFit(plans: readonly PodPlan[], sizing: Sizing): Judgement {
  if (sizing.machines.length === 0)
    return found(
      "held",
      "no machine is declared that the pods could be fitted to",
      "declare spec.trino.sizing.machines with what their nodes offer",
    );
  const machine = smallestThatFits(plans, sizing);
  const lacks = sizing.machines.map((each) => lackOn(each, plans, sizing)).filter((each) => each !== undefined);
  if (machine === undefined) return found("refused", lacks.join("; "), "ask for less, or declare a larger machine");
  const taxed = Math.round((sizing.tax.cpu / machine.cpu) * 100);
  const message = `${machine.name} is the smallest that fits: ${cores(freeOf(machine, sizing).cpu)} of its ${cores(machine.cpu)} are free after the system's ${cores(sizing.tax.cpu)} (${taxed} %)`;
  return lacks.length === 0 ? fine(message) : found("warning", `${message}; ${lacks.join("; ")}`, "keep the pods off the smaller ones");
}

function lackOn(machine: Machine, plans: readonly PodPlan[], sizing: Sizing): string | undefined {
  const free = freeOf(machine, sizing);
  const plan = plans.find((each) => !fits(demandOf(each), free));
  if (plan === undefined) return undefined;
  const { cpu, memory } = demandOf(plan);
  const lack =
    cpu > free.cpu + 1e-9
      ? `${cores(cpu)} where ${cores(Math.max(0, free.cpu))} are free`
      : `${inMiB(memory)} where ${inMiB(Math.max(0, free.memory))} are free`;
  return `${machine.name}: the ${plan.role} asks for ${lack}`;
}

function cores(amount: number): string {
  return `${Math.round(amount * 1000)}m`;
}

/** How many of a machine one whole cluster needs, largest pods first; at most one pod of each that does not fit is refused elsewhere. */
export function machinesFor(plans: readonly PodPlan[], machine: Machine, sizing: Sizing): number {
  const pods = plans
    .flatMap((plan) => Array.from({ length: plan.replicas }, () => demandOf(plan)))
    .toSorted((a, b) => b.cpu - a.cpu || b.memory - a.memory);
  const nodes: Demand[] = [];
  for (const pod of pods) {
    const at = nodes.findIndex((node) => fits(pod, node));
    const node = at < 0 ? freeOf(machine, sizing) : nodes[at];
    const rest = { cpu: (node?.cpu ?? 0) - pod.cpu, memory: (node?.memory ?? 0) - pod.memory };
    if (at < 0) nodes.push(rest);
    else nodes[at] = rest;
  }
  return nodes.length;
}

/** What is used of each dimension now; a quota whose use could not be read has an `Error`. */
export type QuotaUse = ReadonlyMap<string, number | Error>;

/** One judgement for each dimension that is declared. `count`: how many machines are wanted beside those that are there. */
export function judgeQuotas(sizing: Sizing, machine: Machine | undefined, count: number, read: QuotaUse): readonly Judgement[] {
  if (sizing.quotas.length === 0)
    return [
      found("held", "no quota is declared: whether there is room for another cluster is not known", "declare spec.trino.sizing.quotas"),
    ];
  if (machine === undefined) return [found("held", "no machine fits, so nothing can be counted", "see fit")];
  return sizing.quotas.map((quota) => judgeQuota(quota, { machine, count, read }));
}

interface Wanted {
  readonly machine: Machine;
  readonly count: number;
  readonly read: QuotaUse;
}

function judgeQuota({ dimension, limit, used: declared }: Quota, { machine, count, read }: Wanted): Judgement {
  const used = declared ?? read.get(dimension);
  if (typeof used !== "number")
    return found(
      "held",
      `${dimension}: how much is used of ${limit} is not known${used === undefined ? "" : ` (${used.message})`}`,
      "let it be read, or declare how much is used",
    );
  const each = takenByMachine(machine).get(dimension) ?? 0;
  const sum = used + count * each;
  const arithmetic = `${used} + ${count === 1 ? each : `${count} × ${each}`} = ${sum}`;
  if (sum <= limit) return fine(`${dimension}: ${arithmetic} ≤ ${limit}`);
  const room = each === 0 ? 0 : Math.max(0, Math.floor((limit - used) / each));
  return found(
    "refused",
    `${dimension}: ${arithmetic} > ${limit}: there is room for ${room} of the ${count} ${machine.name} that another cluster needs`,
    `raise the quota ${dimension} to ${sum}, or free ${sum - limit} of it`,
  );
}
