/** Whether a pool of Trino clusters would keep what is claimed for it, found out before it does: one line for each check and workload. Changes nothing. */
import { RelevoError } from "../../../kernel/errors.ts";
import { isForbidden, isNotFound } from "../../../kube/api.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, PODS } from "../../../kube/resources.ts";
import { LABELS } from "../../../model/marks.ts";
import type { PoolDocument } from "../../../model/pool.ts";
import type { PreflightRow } from "../../../model/preflight.ts";
import { z } from "zod";
import { judgeCapability } from "./capability.ts";
import { judgeConnectors } from "./connectors.ts";
import { fine, found, type Judgement, type PodPlan, podPlansOf } from "./facts.ts";
import { judgeFit, judgeQuotas, machinesFor, type QuotaUse, smallestThatFits } from "./machines.ts";
import { judgeContainer, judgeHeap } from "./memory.ts";
import { judgeMounts } from "./mounts.ts";
import type { LineCheck, TrinoPreflightParts } from "./ports.ts";
import { judgeQos } from "./qos.ts";
import { judgeErrorDurations, judgeGrace } from "./times.ts";

const MAX_PODS = 1_000;
/** Enough to see that a file of rules is not everywhere. */
const MAX_ASKED = 20;
const FAULT_TOLERANCE = "spec.clusterConfig.faultTolerantExecution";
const TRINO_CLUSTER_CRD = "trinoclusters.trino.stackable.tech";
const TRINO_CLUSTER_VERSION = "v1alpha1";

type Check = PreflightRow["check"];

/** By site in the document's order; what is the same at all of them is said once. None for a pool of another driver. */
export async function preflightTrino(document: PoolDocument, parts: TrinoPreflightParts): Promise<readonly PreflightRow[]> {
  if (document.spec.driver !== "trino") return [];
  const { sites } = document.spec;
  const plans = podPlansOf(document);
  const pods = await livePods(document, parts);
  const common = [
    ...ofBlueprint(document, plans, pods),
    { check: "capability" as const, ...(await capability(document, parts)) },
    { check: "shutdown" as const, ...(await shutdown(document, pods, parts)) },
  ];
  const perSite = await Promise.all(sites.map((site) => ofSite(document, plans, site, parts)));
  return [...common.map((row) => ({ site: sites.join(", "), ...row })), ...perSite.flat()];
}

function ofBlueprint(
  { spec }: PoolDocument,
  plans: readonly PodPlan[],
  pods: readonly LivePod[] | Judgement,
): readonly (Judgement & { readonly check: Check })[] {
  const { retryPolicy, sizing } = spec.trino;
  const ofEach = (check: Check, judge: (plan: PodPlan) => Judgement, which = plans) => which.map((plan) => named(check, plan, judge(plan)));
  const [lead] = plans;
  const workers = plans.filter(({ role }) => role === "worker");
  return [
    ...ofEach("mounts", (plan) => judgeMounts(plan.spec)),
    ...ofEach("qos", (plan) =>
      judgeQos(plan.spec, "state" in pods ? [] : pods.filter(({ role }) => role === plan.role).map(({ name: pod, qos }) => ({ pod, qos }))),
    ),
    ...(lead === undefined ? [] : [named("heap", lead, judgeHeap(lead, retryPolicy))]),
    ...ofEach("memory", judgeContainer),
    { check: "detection", ...judgeErrorDurations(plans, sizing.notice) },
    ...ofEach("grace", (plan) => judgeGrace(plan, sizing.notice, retryPolicy), workers),
    { check: "connectors", ...judgeConnectors(plans, retryPolicy) },
    { check: "fit", ...judgeFit(plans, sizing) },
  ];
}

function named(check: Check, { workload }: PodPlan, judged: Judgement): Judgement & { readonly check: Check } {
  return { check, ...judged, message: `${workload}: ${judged.message}` };
}

async function ofSite(
  document: PoolDocument,
  plans: readonly PodPlan[],
  site: string,
  parts: TrinoPreflightParts,
): Promise<readonly PreflightRow[]> {
  const { sizing } = document.spec.trino;
  const machine = smallestThatFits(plans, sizing);
  const count = machine === undefined ? 0 : machinesFor(plans, machine, sizing);
  const quotas = judgeQuotas(sizing, machine, count, await readQuotas(document, site, parts));
  return [
    ...quotas.map((judged) => ({ site, check: "quota" as const, ...judged })),
    { site, check: "credential_paths", ...(await asked(parts.credentials, document, site)) },
    { site, check: "exchange", ...(await asked(parts.exchange, document, site)) },
  ];
}

async function readQuotas({ spec }: PoolDocument, site: string, { quotaUsed }: TrinoPreflightParts): Promise<QuotaUse> {
  if (quotaUsed === undefined) return new Map();
  const unread = spec.trino.sizing.quotas.filter(({ used }) => used === undefined);
  const read = unread.map(async ({ dimension }) => [dimension, await quotaUsed(site, dimension).catch(asError)] as const);
  return new Map(await Promise.all(read));
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

async function asked(check: LineCheck | undefined, document: PoolDocument, site: string): Promise<Judgement> {
  if (check === undefined) return found("held", "nobody looks at it here", "see docs/trino.md");
  try {
    return await check(document, site);
  } catch (error) {
    return found("held", `it could not be found out: ${asError(error).message}`, "try again");
  }
}

const podSchema = z.object({
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()).nullish() }),
  status: z.object({ podIP: z.string().nullish(), qosClass: z.string().nullish(), phase: z.string().nullish() }).nullish(),
  spec: z.object({ containers: z.array(z.unknown()) }),
});

interface LivePod {
  readonly name: string;
  readonly ip: string | null;
  readonly qos: string;
  readonly role: "coordinator" | "worker";
}

/** Of the pool's pods that run, as far as their names say whose they are. */
async function livePods({ metadata, spec }: PoolDocument, { kube }: TrinoPreflightParts): Promise<readonly LivePod[] | Judgement> {
  try {
    const { items } = await kube.list(PODS, {
      namespace: metadata.namespace,
      labelSelector: `${LABELS.pool}=${metadata.name}`,
      limit: MAX_PODS,
    });
    const [lead] = spec.blueprint.objects.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
    return items.flatMap((item) => {
      const pod = podSchema.safeParse(item).data;
      if (pod?.status?.phase !== "Running") return [];
      const { name, labels } = pod.metadata;
      const leadName = lead?.metadata.name.replaceAll("$(relevo.instance)", labels?.[LABELS.instance] ?? "");
      const role = leadName !== undefined && isPodOf(name, leadName) ? "coordinator" : "worker";
      return [{ name, ip: pod.status.podIP ?? null, qos: pod.status.qosClass ?? "unknown", role }];
    });
  } catch (error) {
    if (isForbidden(error)) return found("held", `its pods cannot be listed: ${error.message}`, "let the controller list pods");
    throw error;
  }
}

/** `lead-0`, `lead-6f7d9c-x2x4z`. */
function isPodOf(pod: string, workload: string): boolean {
  return pod.startsWith(`${workload}-`) && /^(\d+|[a-z0-9]{1,10}-[a-z0-9]{5})$/.test(pod.slice(workload.length + 1));
}

/** Asked of the workers themselves: their own rules decide, not the coordinator's. */
async function shutdown(
  { spec }: PoolDocument,
  pods: readonly LivePod[] | Judgement,
  { maySetState }: TrinoPreflightParts,
): Promise<Judgement> {
  if ("state" in pods) return pods;
  if (maySetState === undefined) return found("held", "nobody asks the workers here", "ask from where they can be reached");
  const workers = pods.filter(({ role, ip }) => role === "worker" && ip !== null).slice(0, MAX_ASKED);
  if (workers.length === 0) return found("held", "no worker runs that could be asked", "check again when one does");
  const { user } = spec.trino;
  const answers = await Promise.all(
    workers.map(async ({ name, ip }) => ({
      name,
      may: await maySetState(`http://${hostOf(ip ?? "")}:${spec.service.port}`, user).catch(asError),
    })),
  );
  const refusing = answers.filter(({ may }) => may === false).map(({ name }) => name);
  if (refusing.length > 0)
    return found(
      "refused",
      `${user} may not change the state of ${refusing.join(", ")} (403)`,
      `on each worker itself: access-control.name=file, with {"system_information":[{"user":"${user}","allow":["read","write"]}]}`,
    );
  const silent = answers.flatMap(({ name, may }) => (may instanceof Error ? [`${name}: ${may.message}`] : []));
  return silent.length > 0
    ? found("held", silent.join("; "), "check again when they answer")
    : fine(`${user} may change the state of ${workers.length === 1 ? "the worker" : `each of ${workers.length} workers`}`);
}

function hostOf(ip: string): string {
  return ip.includes(":") ? `[${ip}]` : ip;
}

/** Of plain objects nobody's schema stands between the document and the pods. */
async function capability({ spec }: PoolDocument, { kube }: TrinoPreflightParts): Promise<Judgement> {
  const owned = spec.blueprint.objects.some((object: { readonly kind: string }) => object.kind === "TrinoCluster");
  if (!owned) return fine("the blueprint is of plain objects: no operator stands in between");
  if (spec.trino.retryPolicy === "NONE") return fine("no retry policy is declared, so that no field is needed");
  try {
    const crd = await kube.get({ type: CUSTOM_RESOURCE_DEFINITIONS, name: TRINO_CLUSTER_CRD });
    return judgeCapability(crd, TRINO_CLUSTER_VERSION, FAULT_TOLERANCE);
  } catch (error) {
    if (isNotFound(error)) return found("refused", `there is no ${TRINO_CLUSTER_CRD}`, "install the operator");
    if (isForbidden(error))
      return found("held", `its schema cannot be read: ${error.message}`, "let the controller read CustomResourceDefinitions");
    throw error instanceof RelevoError ? error : asError(error);
  }
}
