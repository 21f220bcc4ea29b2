/** Makes exactly this node unschedulable, and nothing else (D4, I6, I7, I8). */
import { z } from "zod";
import { beforeOthers } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { NODES } from "../../kube/resources.ts";
import { ANNOTATIONS } from "../../model/marks.ts";
import { done, happened, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { annotationOf, isUnschedulable, nodeRefSchema } from "./objects.ts";

const cordonNodeSchema = z.object({
  node: nodeRefSchema,
  /** The id of the evidence for it. */
  evidence: z.string(),
});
export type CordonNode = z.infer<typeof cordonNodeSchema>;

export const cordonNode: StepKind<CordonNode> = {
  kind: "cordon_node/1",
  schema: cordonNodeSchema,
  isFirst: true,

  async act({ node, evidence }, { kube: api, step }) {
    const kube = beforeOthers(api);
    const ref = { type: NODES, name: node.name };
    const seen = await findObject(kube, ref);
    if (seen === undefined) return superseded("node_gone");
    if (seen.metadata.uid !== node.uid) return superseded("node_replaced");
    if (annotationOf(seen, ANNOTATIONS.cordonedBy) === step.id) return done("cordoned");
    if (isUnschedulable(seen)) return done("already_unschedulable"); // somebody's own cordon: it and its annotations are left alone
    await kube.patch(ref, {
      metadata: {
        uid: node.uid,
        resourceVersion: seen.metadata.resourceVersion,
        annotations: { [ANNOTATIONS.cordonedBy]: step.id, [ANNOTATIONS.cordonedFor]: evidence },
      },
      spec: { unschedulable: true },
    });
    return done("cordoned");
  },

  /** The marker travels in the same patch, so its presence proves the effect and its absence the lack of it. */
  async probe({ node }, { kube, step }) {
    const seen = await findObject(beforeOthers(kube), { type: NODES, name: node.name });
    if (seen?.metadata.uid !== node.uid) return NOT_HAPPENED;
    return annotationOf(seen, ANNOTATIONS.cordonedBy) === step.id ? happened("cordoned") : NOT_HAPPENED;
  },

  settle: () => [],
};
