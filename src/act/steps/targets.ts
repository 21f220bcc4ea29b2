/** What the steps read of a target, and of those who set its count: fresh, by name, before each write. */
import { z } from "zod";
import { type KubeApi, KubeApiError, type KubeObject, type ObjectRef, type ResourceType } from "../../kube/api.ts";
import { DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, STATEFUL_SETS } from "../../kube/resources.ts";
import { autoscalerOf } from "../../model/parse-scale-owner.ts";
import { TARGET_KINDS } from "../../model/pool.ts";
import type { ScaleOwner } from "../../model/scale-owner.ts";
import { listAll } from "./list-all.ts";

export const targetRefSchema = z.object({ kind: z.enum(TARGET_KINDS), namespace: z.string(), name: z.string(), uid: z.string() });
export type TargetObjectRef = z.infer<typeof targetRefSchema>;

export function refOfTarget({ kind, namespace, name }: Omit<TargetObjectRef, "uid">): ObjectRef {
  return { type: kind === "Deployment" ? DEPLOYMENTS : STATEFUL_SETS, namespace, name };
}

/** HorizontalPodAutoscalers and ScaledObjects of this workload, read now. A cluster without KEDA has none of the latter. */
export async function readAutoscalers(kube: KubeApi, target: Omit<TargetObjectRef, "uid">): Promise<readonly ScaleOwner[]> {
  const { namespace, kind, name } = target;
  const all = await Promise.all(
    [HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS].map(async (type) => {
      const items = await listOptional(kube, type, namespace);
      return items.flatMap((item): readonly ScaleOwner[] => {
        const found = autoscalerOf({ ...item, kind: type.kind });
        return found?.target.kind === kind && found.target.name === name ? [found.owner] : [];
      });
    }),
  );
  return all.flat();
}

async function listOptional(kube: KubeApi, type: ResourceType, namespace: string): Promise<readonly KubeObject[]> {
  try {
    return await listAll(kube, type, { namespace });
  } catch (error) {
    if (error instanceof KubeApiError && error.httpCode === 404) return [];
    throw error;
  }
}
