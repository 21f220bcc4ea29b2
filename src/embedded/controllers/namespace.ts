/** Empties a namespace that is being deleted, then lets it go. */
import type { ResourceType } from "../../kube/api.ts";
import { NAMESPACES } from "../../kube/resources.ts";
import type { ClusterAccess } from "./access.ts";
import { ControllerLoop, type ReconcileResult } from "./loop.ts";
import { refOf } from "./views.ts";

/** Looking again while finalizers or running pods hold something. */
const RECHECK_MS = 500;

/** `types` yields every namespaced kind that is served now, custom ones too. */
export function namespaceController(access: ClusterAccess, types: () => readonly ResourceType[]): ControllerLoop {
  const namespaces = access.informer(NAMESPACES);
  const loop = new ControllerLoop({ name: "namespace", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  namespaces.onChange(({ key, after }) => {
    if (after?.metadata.deletionTimestamp !== undefined) loop.enqueue(key);
  });

  async function reconcile(name: string): Promise<ReconcileResult | void> {
    const namespace = namespaces.get(name);
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    let left = 0;
    for (const type of types()) {
      for (const object of (await access.api.list(type, { namespace: name })).items) {
        left++;
        if (object.metadata.deletionTimestamp === undefined) await access.delete(refOf(type, object), object.metadata.uid);
      }
    }
    if (left > 0) return { requeueAfterMs: RECHECK_MS };
    await access.patch(refOf(NAMESPACES, namespace), { metadata: { uid: namespace.metadata.uid }, spec: { finalizers: [] } });
    await access.refresh(refOf(NAMESPACES, namespace), namespace.metadata.uid);
  }

  return loop;
}
