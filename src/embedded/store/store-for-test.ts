/** A small cluster for tests: virtual time, counted ids, the namespaces of a fresh cluster. */
import type { Ids } from "../../kernel/ids.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { KubeObjectDraft } from "../../kube/api.ts";
import { bootstrapCluster } from "./bootstrap.ts";
import { ObjectStore, type ObjectStoreOptions } from "./object-store.ts";

export function countedIds(): Ids {
  let count = 0;
  return {
    next: (prefix) => {
      count += 1;
      return `${prefix}-${String(count).padStart(10, "0")}`;
    },
  };
}

export function storeForTest(options: Partial<ObjectStoreOptions> = {}): ObjectStore {
  const store = new ObjectStore({ clock: new VirtualClock(), ids: countedIds(), ...options });
  bootstrapCluster(store);
  return store;
}

export function aPod(
  name: string,
  more: { readonly spec?: Record<string, unknown>; readonly labels?: Record<string, string> } = {},
): KubeObjectDraft {
  const { labels = { app: "web" }, spec = {} } = more;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels },
    spec: { containers: [{ name: "main", image: "none" }], ...spec },
  };
}
