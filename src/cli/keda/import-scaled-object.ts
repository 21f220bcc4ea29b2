/** A ScaledObject as a Pool with a target, and all in which the Pool will behave otherwise. Nothing is left out in silence. */
import { stringify } from "yaml";
import { RelevoError } from "../../kernel/errors.ts";
import { formatDuration } from "../../kernel/units.ts";
import { API_VERSION, poolSchema, TARGET_KINDS } from "../../model/pool.ts";
import { problemsOf } from "../../model/problems.ts";
import type { Authentication, Difference, ScaledObject } from "./scaled-object.ts";
import { type ImportedTrigger, importTrigger, type TriggerContext } from "./trigger.ts";

export interface ImportedPool {
  readonly pool: Readonly<Record<string, unknown>>;
  readonly connection: Readonly<Record<string, unknown>> | null;
  readonly differences: readonly Difference[];
}

/** KEDA's own, where its document says nothing. */
const USUAL = { pollingInterval: 30, cooldownPeriod: 300, minReplicaCount: 0, maxReplicaCount: 100, scaleDownWindow: 300 };
/** They look at what a process uses, and say nothing of work that waits. */
const NO_BACKLOG = ["cpu", "memory", "cron", "kubernetes-workload"];

/** `triggerIndex`: which trigger becomes the signal; absent: the first that can. Throws `import_refused`. */
export function importScaledObject(object: ScaledObject, authentications: readonly Authentication[], triggerIndex?: number): ImportedPool {
  const { metadata, spec } = object;
  const differences: Difference[] = [];
  const tell = (level: Difference["level"], field: string, sentence: string): void => void differences.push({ level, field, sentence });
  const name = poolNameOf(metadata.name, tell);
  const target = targetOf(object);
  const size = sizeOf(object, tell);
  const { imported, index } = signalOf(object, authentications, name, triggerIndex);
  tellOtherTriggers(object, index, tell);
  tellRest(object, tell);
  const paused = pausedOf(object, size.max, tell);
  const every = spec.pollingInterval ?? USUAL.pollingInterval;
  const pool = {
    apiVersion: API_VERSION,
    kind: "Pool",
    metadata: { name, namespace: metadata.namespace },
    spec: {
      driver: "worker",
      size,
      target,
      service: { protocol: "none" },
      worker: { flow: imported.flow },
      scale: {
        signal: imported.signal,
        target: imported.target,
        ...(every === 0 ? {} : { pollEvery: `${every}s` }),
        down: { window: `${downWindowOf(object, tell)}s` },
        ...upOf(object),
        ...fallbackOf(object, every, size.max, tell),
        ...(paused === undefined ? {} : { pausedAt: paused }),
      },
    },
  };
  refuseInvalid(object, pool);
  return { pool, connection: imported.connection, differences: [...differences, ...imported.differences] };
}

type Tell = (level: Difference["level"], field: string, sentence: string) => void;

function refuse({ metadata: { namespace, name } }: ScaledObject, why: string, found: unknown, allowed: string): never {
  throw new RelevoError("import_refused", `ScaledObject ${namespace}/${name} ${why}`, { found, allowed });
}

function poolNameOf(name: string, tell: Tell): string {
  const fitting = name
    .toLowerCase()
    .replaceAll(/[^-a-z0-9]+/g, "-")
    .slice(0, 40)
    .replaceAll(/^-+|-+$/g, "");
  if (fitting !== name) tell("note", "metadata.name", `the Pool is called ${fitting}: at most 40 lower-case letters, digits and dashes`);
  return fitting === "" ? "pool" : fitting;
}

function targetOf(object: ScaledObject): { readonly kind: string; readonly name: string } {
  const { kind, apiVersion, name } = object.spec.scaleTargetRef;
  const found = kind ?? "Deployment";
  if (!(TARGET_KINDS as readonly string[]).includes(found) || !/^apps(\/|$)/.test(apiVersion ?? "apps/v1"))
    refuse(object, "scales what a Pool cannot", `${apiVersion ?? "apps/v1"} ${found}`, `apps/v1 ${TARGET_KINDS.join(", ")}`);
  return { kind: found, name };
}

function sizeOf(object: ScaledObject, tell: Tell): { readonly desired: number; readonly floor: number; readonly max: number } {
  const { minReplicaCount, maxReplicaCount, idleReplicaCount } = object.spec;
  const floor = minReplicaCount ?? USUAL.minReplicaCount;
  const max = maxReplicaCount ?? USUAL.maxReplicaCount;
  if (floor > max) refuse(object, "has a minimum above its maximum", `minReplicaCount ${floor}, maxReplicaCount ${max}`, "min ≤ max");
  if (max > 10_000) refuse(object, "has a maximum that no Pool may have", max, "at most 10000");
  if (maxReplicaCount === undefined || maxReplicaCount === null)
    tell("note", "spec.maxReplicaCount", `is not said: KEDA's own ${max} is written down`);
  if (idleReplicaCount !== undefined && idleReplicaCount !== null)
    tell(
      "changed",
      "spec.idleReplicaCount",
      `is ${idleReplicaCount}: a Pool has one floor, which is ${floor}; set size.floor to ${idleReplicaCount} if it may be idle`,
    );
  return { desired: Math.max(floor, Math.min(1, max)), floor, max };
}

function signalOf(
  object: ScaledObject,
  authentications: readonly Authentication[],
  connection: string,
  asked: number | undefined,
): { readonly imported: ImportedTrigger; readonly index: number } {
  const { triggers } = object.spec;
  if (asked !== undefined && triggers[asked] === undefined) refuse(object, "has no such trigger", asked, `0 to ${triggers.length - 1}`);
  const indexes = asked === undefined ? [...triggers.keys()] : [asked];
  const contextAt = (index: number): TriggerContext | undefined => {
    const trigger = triggers[index];
    if (trigger === undefined) return undefined;
    const ref = trigger.authenticationRef;
    const authentication = authentications.find(({ kind, metadata }) => {
      const isOfCluster = kind === "ClusterTriggerAuthentication";
      return (
        metadata.name === ref?.name &&
        (ref.kind ?? "TriggerAuthentication") === kind &&
        (isOfCluster || metadata.namespace === object.metadata.namespace)
      );
    });
    return { trigger, index, object, authentication, connection };
  };
  for (const index of indexes) {
    const context = contextAt(index);
    const imported = context && importTrigger(context);
    if (imported !== undefined) return { imported, index };
  }
  for (const index of indexes) {
    const context = contextAt(index);
    if (context !== undefined && !NO_BACKLOG.includes(context.trigger.type)) return { imported: throughKeda(context), index };
  }
  return refuse(
    object,
    "has no trigger that looks at work that waits",
    triggers.map(({ type }) => type).join(", "),
    "a queue, a query, or a metric of a backlog",
  );
}

/** What only KEDA can read is read through its own metrics API: KEDA stays, and scales something else. */
function throughKeda({ trigger, index, object }: TriggerContext): ImportedTrigger {
  const { name } = object.metadata;
  const metric = `s${index}-${trigger.type}`;
  const field = `spec.triggers[${index}]`;
  return {
    signal: { kind: "external-metric", metric, selector: { "scaledobject.keda.sh/name": name } },
    flow: metric,
    target: 5,
    connection: null,
    differences: [
      {
        level: "todo",
        field,
        sentence: `is of type ${trigger.type}, which only KEDA reads: it stays the source, through external.metrics.k8s.io. The metric's whole name is that of kubectl get scaledobject ${name} -o jsonpath='{.status.externalMetricNames}': put it into signal.metric and worker.flow`,
      },
      {
        level: "todo",
        field: "spec.scaleTargetRef",
        sentence:
          "KEDA serves the metric as long as the ScaledObject is there, and two may not scale one workload: give it a target of its own (a Deployment that does nothing) before relevo adopt",
      },
      { level: "todo", field, sentence: "what one instance is to have (scale.target) is 5 here: put in what the trigger says" },
    ],
  };
}

function tellOtherTriggers({ spec: { triggers, advanced } }: ScaledObject, taken: number, tell: Tell): void {
  const taking = triggers[taken];
  for (const [index, { type }] of triggers.entries())
    if (index !== taken)
      tell(
        "changed",
        `spec.triggers[${index}]`,
        `of type ${type} is left out: KEDA takes the highest of all, a Pool has one signal (--trigger ${index} takes this one)`,
      );
  if (taking?.metricType !== undefined && taking.metricType !== null && taking.metricType !== "AverageValue")
    tell("changed", `spec.triggers[${taken}].metricType`, `is ${taking.metricType}: here the target is what one instance is to have`);
  if (advanced?.scalingModifiers?.formula)
    tell("changed", "spec.advanced.scalingModifiers.formula", "has no counterpart: the signal's own number counts");
}

function tellRest({ metadata, spec }: ScaledObject, tell: Tell): void {
  const { advanced, initialCooldownPeriod, scaleTargetRef } = spec;
  const behavior = advanced?.horizontalPodAutoscalerConfig?.behavior;
  for (const direction of ["scaleUp", "scaleDown"] as const)
    if (behavior?.[direction]?.["policies"] !== undefined)
      tell(
        "changed",
        `spec.advanced.horizontalPodAutoscalerConfig.behavior.${direction}.policies`,
        `are left out: see scale.${direction === "scaleUp" ? "up" : "down"}.step`,
      );
  if (advanced?.restoreToOriginalReplicaCount === true)
    tell(
      "todo",
      "spec.advanced.restoreToOriginalReplicaCount",
      "is true: set it to false before relevo adopt, else KEDA puts the count back when it goes",
    );
  if (initialCooldownPeriod) tell("changed", "spec.initialCooldownPeriod", "has no counterpart");
  if (scaleTargetRef.envSourceContainerName)
    tell("note", "spec.scaleTargetRef.envSourceContainerName", "Relevo reads nothing of the workload's environment");
  for (const key of metadata.annotations.keys())
    if (key.startsWith("scaledobject.keda.sh/")) tell("note", `metadata.annotations[${key}]`, "has no counterpart");
}

function pausedOf({ metadata: { annotations } }: ScaledObject, max: number, tell: Tell): number | undefined {
  const at = annotations.get("autoscaling.keda.sh/paused-replicas");
  const paused = annotations.get("autoscaling.keda.sh/paused");
  if (at === undefined) {
    if (paused !== undefined && paused !== "false")
      tell(
        "todo",
        "metadata.annotations[autoscaling.keda.sh/paused]",
        "it is paused at whatever it has now: the Pool is not, set scale.pausedAt if it is to be",
      );
    return undefined;
  }
  const count = Number(at);
  if (Number.isInteger(count) && count >= 0 && count <= max) {
    tell(
      "note",
      "metadata.annotations[autoscaling.keda.sh/paused-replicas]",
      `it is paused at ${count}, and so is the Pool (scale.pausedAt), but never below size.floor`,
    );
    return count;
  }
  tell(
    "todo",
    "metadata.annotations[autoscaling.keda.sh/paused-replicas]",
    `is ${at.slice(0, 50)}, which is no size up to ${max}: set scale.pausedAt`,
  );
  return undefined;
}

/** KEDA has a window of the HPA's and one for the way to zero; a Pool has one, the longer. */
function downWindowOf({ spec }: ScaledObject, tell: Tell): number {
  const window = spec.advanced?.horizontalPodAutoscalerConfig?.behavior?.scaleDown?.stabilizationWindowSeconds ?? USUAL.scaleDownWindow;
  const cooldown = spec.cooldownPeriod ?? USUAL.cooldownPeriod;
  if ((spec.minReplicaCount ?? 0) > 0 || cooldown === window) return window;
  tell(
    "changed",
    "spec.cooldownPeriod",
    `is ${cooldown}s and holds for the way to zero alone, beside a window of ${window}s: a Pool has one window, ${Math.max(window, cooldown)}s`,
  );
  return Math.max(window, cooldown);
}

function upOf({ spec }: ScaledObject): { readonly up?: { readonly window: string } } {
  const window = spec.advanced?.horizontalPodAutoscalerConfig?.behavior?.scaleUp?.stabilizationWindowSeconds;
  return window ? { up: { window: `${window}s` } } : {};
}

function fallbackOf(
  { spec: { fallback } }: ScaledObject,
  every: number,
  max: number,
  tell: Tell,
): { readonly fallback?: { readonly after: string; readonly instances: number } } {
  if (!fallback) {
    tell("note", "spec.fallback", "there is none: while nothing valid is read the size stays as it was decided last");
    return {};
  }
  const instances = Math.min(fallback.replicas, max);
  const afterMs = Math.max(1, every * fallback.failureThreshold) * 1_000;
  tell(
    "changed",
    "spec.fallback",
    `after ${fallback.failureThreshold} failures, ${formatDuration(afterMs)}, there are at least ${instances}: here it never shrinks to them`,
  );
  return { fallback: { after: `${afterMs / 1_000}s`, instances } };
}

/** What was made must be a Pool: a fault of the import, or a document that KEDA takes and a Pool cannot be. */
function refuseInvalid(object: ScaledObject, pool: unknown): void {
  const parsed = poolSchema.safeParse(pool);
  if (parsed.success) return;
  const [problem] = problemsOf(poolSchema, parsed.error, pool);
  refuse(object, `gives no valid Pool: ${problem?.sentence ?? "?"}`, problem?.found, problem?.allowed ?? "a valid Pool");
}

/** Documents that `relevo apply` takes; what differs and the connections stand before them, as comments. */
export function renderImport(imported: readonly ImportedPool[]): string {
  const connections = imported.flatMap(({ connection }) => (connection === null ? [] : [connection]));
  const comment = (text: string): string =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => `# ${line}`.trimEnd())
      .join("\n");
  const parts = imported.map(({ pool, differences }) => {
    const lines = differences.map(({ level, field, sentence }) => `${LEVELS[level]} ${field}: ${sentence}`);
    return `${lines.length === 0 ? "" : `${comment(lines.join("\n"))}\n`}${stringify(pool, { lineWidth: 0 })}`;
  });
  const snippet =
    connections.length === 0 ? "" : `${comment(`for relevo controller --connections:\n${stringify({ connections }, { lineWidth: 0 })}`)}\n`;
  return `${snippet}---\n${parts.join("---\n")}`;
}

const LEVELS: Readonly<Record<Difference["level"], string>> = { changed: "DIFFERS", todo: "TO DO  ", note: "NOTE   " };
