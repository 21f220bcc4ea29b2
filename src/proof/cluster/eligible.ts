/** Whether a pod may land on a node, by what the scheduler is told: selector, required affinity, taints. Room is another question. */
import { z } from "zod";
import type { PoolDocument } from "../../model/pool.ts";
import type { InspectedNode } from "./facts.ts";

const expression = z.object({ key: z.string(), operator: z.string(), values: z.array(z.string()).default([]) });
const term = z.object({ matchExpressions: z.array(expression).default([]), matchFields: z.array(expression).default([]) });
const podSchema = z.object({
  nodeSelector: z.record(z.string(), z.string()).nullish(),
  affinity: z
    .object({
      nodeAffinity: z
        .object({ requiredDuringSchedulingIgnoredDuringExecution: z.object({ nodeSelectorTerms: z.array(term) }).nullish() })
        .nullish(),
    })
    .nullish(),
  tolerations: z
    .array(
      z.object({
        key: z.string().optional(),
        operator: z.string().default("Equal"),
        value: z.string().default(""),
        effect: z.string().optional(),
      }),
    )
    .nullish(),
});
type Pod = z.output<typeof podSchema>;
type Expression = z.output<typeof expression>;

/** Any pod of an instance of this pool. One whose form is not understood may land anywhere: that errs on the side of a refusal. */
export function mayLandOn({ spec }: PoolDocument, node: InspectedNode): boolean {
  return spec.blueprint.objects
    .filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet")
    .some((object) => {
      const template = z.object({ spec: z.object({ template: z.object({ spec: podSchema }) }) }).safeParse(object);
      return !template.success || suits(template.data.spec.template.spec, node);
    });
}

function suits({ nodeSelector, affinity, tolerations }: Pod, node: InspectedNode): boolean {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return (
    Object.entries(nodeSelector ?? {}).every(([key, value]) => node.labels[key] === value) &&
    (terms ?? [{ matchExpressions: [], matchFields: [] }]).some(
      ({ matchExpressions, matchFields }) =>
        matchExpressions.every((each) => holds(each, node.labels[each.key])) &&
        matchFields.every((each) => holds(each, each.key === "metadata.name" ? node.name : undefined)),
    ) &&
    node.taints.every((taint) => isPassing(taint.effect, taint.key) || (tolerations ?? []).some((each) => tolerates(each, taint)))
  );
}

/** A taint that says how the node is now, not what it is for: a cordon above all. */
function isPassing(effect: string, key: string): boolean {
  return (
    effect === "PreferNoSchedule" ||
    /^(node\.kubernetes\.io|karpenter\.sh)\/(unschedulable|not-ready|unreachable|disrupted|unregistered)$/.test(key)
  );
}

function tolerates(
  { key, operator, value, effect }: NonNullable<Pod["tolerations"]>[number],
  taint: InspectedNode["taints"][number],
): boolean {
  if (effect !== undefined && effect !== taint.effect) return false;
  if (operator === "Exists") return key === undefined || key === taint.key;
  return key === taint.key && value === taint.value;
}

function holds({ operator, values }: Expression, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0]);
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return true;
  }
}
