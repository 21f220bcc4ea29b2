/** The KubeApi port over an object store in the same process: for the simulator and the embedded controllers. */
import type {
  DeleteOptions,
  KubeApi,
  KubeList,
  KubeObject,
  KubeObjectDraft,
  ListOptions,
  ObjectRef,
  ResourceType,
  WatchEvent,
  WatchOptions,
} from "../../kube/api.ts";
import { PODS } from "../../kube/resources.ts";
import { EventQueue } from "./event-queue.ts";
import type { JsonObject } from "./json.ts";
import { mergePatch } from "./merge-patch.ts";
import type { ObjectStore } from "./object-store.ts";
import { bindPod, evictPod } from "./pod-subresources.ts";
import { scaleOf, withScale } from "./scale.ts";

/** What the embedded cluster's own parts may do besides. */
export interface EmbeddedKubeApi extends KubeApi {
  /** POST …/pods/NAME/binding. */
  bind(pod: { readonly namespace: string; readonly name: string }, nodeName: string): Promise<void>;
}

/** A consumer that is this far behind finds its watch ended, as with a real server, and opens it anew from its last event. */
const BEHIND_MAX = 10_000;
/** A real server sends one about every minute. */
const BOOKMARK_EVERY_MS = 60_000;

/** Objects that come out are deeply frozen; what goes in is copied. */
export function directKubeApi(store: ObjectStore): EmbeddedKubeApi {
  return {
    async get(ref: ObjectRef): Promise<KubeObject> {
      return store.get(ref);
    },
    async list(type: ResourceType, options: ListOptions = {}): Promise<KubeList> {
      const { resourceVersion, continue: next, items } = store.list(type, options);
      return next === undefined ? { resourceVersion, items } : { resourceVersion, continue: next, items };
    },
    watch: (type, options, signal) => watchStore(store, type, options, signal),
    async create(
      type: ResourceType,
      object: KubeObjectDraft,
      options: { readonly namespace?: string | undefined } = {},
    ): Promise<KubeObject> {
      return store.create(type, object, options);
    },
    async replace(ref: ObjectRef, object: KubeObjectDraft): Promise<KubeObject> {
      return store.replace(ref, object);
    },
    async rehearse(verb, ref: ObjectRef, object: KubeObjectDraft): Promise<KubeObject> {
      return verb === "create"
        ? store.create(ref.type, object, { namespace: ref.namespace, dryRun: true })
        : store.replace(ref, object, { dryRun: true });
    },
    async patch(ref: ObjectRef, body: JsonObject): Promise<KubeObject> {
      return store.modify(ref, (before) => mergePatch(before, body) as JsonObject);
    },
    async patchStatus(ref: ObjectRef, body: JsonObject): Promise<KubeObject> {
      return store.modify(ref, (before) => mergePatch(before, body) as JsonObject, { part: "status" });
    },
    async patchScale(ref: ObjectRef, body: JsonObject): Promise<KubeObject> {
      return scaleOf(store.modify(ref, (before) => withScale(before, mergePatch(scaleOf(before), body) as JsonObject, ref.name)));
    },
    async delete(ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
      store.delete(ref, options);
    },
    async evict(ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
      evictPod(store, ref, options);
    },
    async bind({ namespace, name }, nodeName: string): Promise<void> {
      bindPod(store, { type: PODS, namespace, name }, nodeName);
    },
  };
}

async function* watchStore(
  store: ObjectStore,
  type: ResourceType,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent, void, undefined> {
  if (signal.aborted) return;
  const queue = new EventQueue<WatchEvent>(BEHIND_MAX);
  const watch = store.watch(type, options, (event) => {
    if (!queue.push(event) || event.type === "ERROR") queue.end();
  });
  // Right away, and not when the consumer next looks: the store must not work for who has left.
  const end = (): void => {
    watch.close();
    queue.end();
  };
  const bookmark = (): WatchEvent => ({ type: "BOOKMARK", resourceVersion: String(store.revision) });
  const repeat = (): void => {
    queue.push(bookmark());
    timer = store.clock.after(BOOKMARK_EVERY_MS, repeat);
  };
  let timer = store.clock.after(BOOKMARK_EVERY_MS, repeat);
  const timeout =
    options.timeoutSeconds === undefined
      ? undefined
      : store.clock.after(options.timeoutSeconds * 1_000, () => {
          queue.push(bookmark());
          queue.end();
        });
  signal.addEventListener("abort", end, { once: true });
  try {
    for await (const event of queue) {
      if (signal.aborted) return;
      yield event;
    }
  } finally {
    watch.close();
    timer.cancel();
    timeout?.cancel();
    signal.removeEventListener("abort", end);
  }
}
