/** Takes Relevo's own cordon off this node, by an operator's command only (D4). */
import { z } from "zod";
import { findObject } from "../../kube/find-object.ts";
import { NODES } from "../../kube/resources.ts";
import { ANNOTATIONS } from "../../model/marks.ts";
import { done, happened, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { annotationOf, isUnschedulable, nodeRefSchema } from "./objects.ts";

const uncordonNodeSchema = z.object({
  node: nodeRefSchema,
  /** The step whose mark the operator saw: a later cordon is another one and stays. */
  cordonedBy: z.string(),
});
export type UncordonNode = z.infer<typeof uncordonNodeSchema>;

export const uncordonNode: StepKind<UncordonNode> = {
  kind: "uncordon_node/1",
  schema: uncordonNodeSchema,

  async act({ node, cordonedBy }, { kube }) {
    const ref = { type: NODES, name: node.name };
    const seen = await findObject(kube, ref);
    if (seen === undefined) return superseded("node_gone");
    if (seen.metadata.uid !== node.uid) return superseded("node_replaced");
    if (annotationOf(seen, ANNOTATIONS.cordonedBy) !== cordonedBy) return superseded("not_our_cordon");
    await kube.patch(ref, {
      metadata: {
        uid: node.uid,
        resourceVersion: seen.metadata.resourceVersion,
        annotations: { [ANNOTATIONS.cordonedBy]: null, [ANNOTATIONS.cordonedFor]: null },
      },
      spec: { unschedulable: null },
    });
    return done("uncordoned");
  },

  /** The mark goes in the same patch as the cordon; a node without either is as the operator wants it, whoever did it. */
  async probe({ node, cordonedBy }, { kube }) {
    const seen = await findObject(kube, { type: NODES, name: node.name });
    if (seen?.metadata.uid !== node.uid) return NOT_HAPPENED;
    if (annotationOf(seen, ANNOTATIONS.cordonedBy) === cordonedBy) return NOT_HAPPENED;
    return isUnschedulable(seen) ? NOT_HAPPENED : happened("uncordoned");
  },

  settle: () => [],
};
