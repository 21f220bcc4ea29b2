/**
 * One instance's objects from the immutable blueprint: pure. Placeholders are filled in string values only; labels go on every object, into pod templates and
 * into the selectors of the workloads, so that two instances of one blueprint never select each other's pods. Never an ownerReference: garbage collection
 * must not act for Relevo.
 */
import { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";
import { ANNOTATIONS, LABELS, priorityClassOf } from "../model/marks.ts";
import type { Priority } from "../model/membership.ts";
import { ANYWHERE, isAnywhere, type Placement } from "../model/placement.ts";
import { withPlacement } from "./render-placement.ts";

export interface RenderNames {
  readonly instance: string;
  readonly pool: string;
  readonly site: string;
  readonly namespace: string;
  /** Given where the cluster has our PriorityClasses: pods for which the blueprint says nothing get the pool's. */
  readonly priority?: Priority;
}

type Json = Readonly<Record<string, unknown>>;

const blueprintSchema = z.object({
  objects: z
    .array(z.looseObject({ apiVersion: z.string(), kind: z.string(), metadata: z.looseObject({ name: z.string() }) }))
    .min(1)
    .max(20),
});

const WORKLOADS = ["Deployment", "StatefulSet"];

/** In the order in which they are created: what pods need first, the lead workload last but for its members. */
export function renderBlueprint(blueprint: unknown, names: RenderNames, placement: Placement = ANYWHERE): readonly Json[] {
  const parsed = blueprintSchema.safeParse(blueprint);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new RelevoError("blueprint_invalid", "The instance's blueprint is not one.", {
      found: `${issue?.path.join(".")}: ${issue?.message}`,
    });
  }
  const { objects } = parsed.data;
  const lead = objects.findIndex(({ kind }) => WORKLOADS.includes(kind));
  const rendered = objects.map((object, index) => renderObject(object, names, index === lead, placement));
  const isWorkload = (_: unknown, index: number): boolean => WORKLOADS.includes(objects[index]?.kind ?? "");
  return [...rendered.filter((object, index) => !isWorkload(object, index)), ...rendered.filter(isWorkload)];
}

function renderObject(object: Json, names: RenderNames, isLead: boolean, placement: Placement): Json {
  const filled = fill(object, names) as Json;
  const labels = { [LABELS.pool]: names.pool, [LABELS.instance]: names.instance };
  const { ownerReferences: _, ...metadata } = child(filled, "metadata");
  const base = { ...filled, metadata: { namespace: names.namespace, ...metadata, labels: { ...child(metadata, "labels"), ...labels } } };
  if (!WORKLOADS.includes(String(object["kind"]))) return base;

  const spec = child(filled, "spec");
  const template = child(spec, "template");
  const templateMetadata = child(template, "metadata");
  const selector = child(spec, "selector");
  return {
    ...base,
    spec: {
      ...spec,
      ...(isLead ? { replicas: leadReplicas(object["kind"], spec) } : {}),
      selector: { ...selector, matchLabels: { ...child(selector, "matchLabels"), [LABELS.instance]: names.instance } },
      template: {
        ...template,
        metadata: {
          ...templateMetadata,
          labels: { ...child(templateMetadata, "labels"), ...labels },
          ...(isAnywhere(placement)
            ? {}
            : { annotations: { ...child(templateMetadata, "annotations"), [ANNOTATIONS.placement]: JSON.stringify(placement) } }),
        },
        spec: withPlacement(withPriority(withEnvironment(child(template, "spec"), names), names.priority), placement),
      },
    },
  };
}

/** Size is a number of instances, so a lead Deployment has one replica; a StatefulSet's members may be its own business. */
function leadReplicas(kind: unknown, spec: Json): unknown {
  return kind === "StatefulSet" ? (spec["replicas"] ?? 1) : 1;
}

function withEnvironment(podSpec: Json, { instance, pool }: RenderNames): Json {
  const ours = [
    { name: "RELEVO_INSTANCE", value: instance },
    { name: "RELEVO_POOL", value: pool },
  ];
  const extend = (containers: unknown): unknown =>
    Array.isArray(containers)
      ? containers.map((container: Json) => {
          const env = Array.isArray(container["env"]) ? (container["env"] as readonly Json[]) : [];
          return { ...container, env: [...env.filter(({ name }) => ours.every((each) => each.name !== name)), ...ours] };
        })
      : containers;
  return {
    ...podSpec,
    containers: extend(podSpec["containers"]),
    ...(podSpec["initContainers"] === undefined ? {} : { initContainers: extend(podSpec["initContainers"]) }),
  };
}

function withPriority(podSpec: Json, priority: Priority | undefined): Json {
  const isTheirs = podSpec["priorityClassName"] !== undefined || podSpec["priority"] !== undefined;
  return priority === undefined || isTheirs ? podSpec : { ...podSpec, priorityClassName: priorityClassOf(priority) };
}

/** Keys stay as they are: a placeholder in a key is a mistake that the API server will name. */
function fill(value: unknown, names: RenderNames): unknown {
  if (typeof value === "string") {
    return value
      .replaceAll("$(relevo.instance)", names.instance)
      .replaceAll("$(relevo.pool)", names.pool)
      .replaceAll("$(relevo.site)", names.site);
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, names));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, names)]));
}

function child(object: Json, key: string): Json {
  const value = object[key];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
