/** Whether a pod may land on a node, by what the scheduler is told: selector, required affinity, taints. Room is another question. */
import { z } from "zod";
import { matchesRequirement, tolerates } from "../../kube/scheduling.ts";
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
        matchExpressions.every((each) => matchesRequirement(each, node.labels)) &&
        matchFields.every((each) => matchesRequirement(each, { "metadata.name": node.name })),
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
