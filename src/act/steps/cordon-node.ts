/** Makes exactly this node unschedulable, and nothing else (D4, I6, I7, I8). */
import { z } from "zod";
import { beforeOthers, isConflict, isNotFound } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { NODES } from "../../kube/resources.ts";
import type { KubeNode } from "../../kube/types.ts";
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

  /**
   * One request where the read model is in step, for of many notices at once each costs as many as this: a refusal says that nothing was done, and the node is read.
   */
  async act({ node, evidence }, { kube: api, step, nodeSeen }) {
    const kube = beforeOthers(api);
    const ref = { type: NODES, name: node.name };
    const cordonAt = (resourceVersion: string) =>
      kube.patch(ref, {
        metadata: {
          uid: node.uid,
          resourceVersion,
          annotations: { [ANNOTATIONS.cordonedBy]: step.id, [ANNOTATIONS.cordonedFor]: evidence },
        },
        spec: { unschedulable: true },
      });
    const known = nodeSeen?.(node.name);
    if (known !== undefined && isFree(known, node.uid) && !(await isRefused(cordonAt(known.metadata.resourceVersion))))
      return done("cordoned");
    const seen = await findObject(kube, ref);
    if (seen === undefined) return superseded("node_gone");
    if (seen.metadata.uid !== node.uid) return superseded("node_replaced");
    if (annotationOf(seen, ANNOTATIONS.cordonedBy) === step.id) return done("cordoned");
    if (isUnschedulable(seen)) return done("already_unschedulable"); // somebody's own cordon: it and its annotations are left alone
    await cordonAt(seen.metadata.resourceVersion);
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

/** The very node, and nobody's cordon is on it. */
function isFree({ metadata, spec }: KubeNode, uid: string): boolean {
  return metadata.uid === uid && !spec.unschedulable && metadata.annotations[ANNOTATIONS.cordonedBy] === undefined;
}

/** True: the node is not as it was seen, or not there, and nothing was done. */
async function isRefused(change: Promise<unknown>): Promise<boolean> {
  try {
    await change;
    return false;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return true;
    throw error;
  }
}
