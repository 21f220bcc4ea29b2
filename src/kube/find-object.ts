import { isNotFound, type KubeApi, type KubeObject, type ObjectRef } from "./api.ts";

/** The object of that name; undefined when there is none. */
export async function findObject(kube: Pick<KubeApi, "get">, ref: ObjectRef): Promise<KubeObject | undefined> {
  try {
    return await kube.get(ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
