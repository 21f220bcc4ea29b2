/** Counts what really changed in the cluster: a refused write, or one that left the object as it was, is no effect. */
import type { KubeApi, KubeObject, ObjectRef } from "../../kube/api.ts";

export function wrapCounted(kube: KubeApi, effects: string[]): KubeApi {
  const changed = async (ref: ObjectRef, write: () => Promise<KubeObject>): Promise<KubeObject> => {
    const before = await kube.get(ref);
    const after = await write();
    if (after.metadata.resourceVersion !== before.metadata.resourceVersion) effects.push(`patch ${ref.type.plural}/${ref.name}`);
    return after;
  };
  return {
    get: (ref) => kube.get(ref),
    list: (type, options) => kube.list(type, options),
    watch: (type, options, signal) => kube.watch(type, options, signal),
    async create(type, object, options) {
      const made = await kube.create(type, object, options);
      effects.push(`create ${type.plural}/${made.metadata.name}`);
      return made;
    },
    replace: (ref, object) => changed(ref, () => kube.replace(ref, object)),
    patch: (ref, body) => changed(ref, () => kube.patch(ref, body)),
    patchStatus: (ref, body) => kube.patchStatus(ref, body),
    patchScale: (ref, body) => changed(ref, () => kube.patchScale(ref, body)),
    async delete(ref, options) {
      await kube.delete(ref, options);
      effects.push(`delete ${ref.type.plural}/${ref.name}`);
    },
    async evict(ref, options) {
      await kube.evict(ref, options);
      effects.push(`evict ${ref.type.plural}/${ref.name}`);
    },
  };
}
