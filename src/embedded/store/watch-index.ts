/**
 * Who wants to hear of an object. Every watcher sits in exactly one bucket, that of its most selective equality (name, field, label, namespace), so that
 * an event asks only those that may care.
 */
import type { KubeObject, WatchEvent } from "../../kube/api.ts";
import type { StoreEvent } from "./event-window.ts";
import { equalityOf, fieldText, matchesFields, matchesLabels, type ParsedSelector } from "./selectors.ts";

export interface Watcher {
  readonly namespace: string | undefined;
  readonly labels: ParsedSelector;
  readonly fields: ParsedSelector;
  /** Must not write to the store. */
  readonly sink: (event: WatchEvent) => void;
}

export class WatchIndex {
  readonly #buckets = new Map<string, Set<Watcher>>();
  /** Which fields and labels some watcher is indexed by, each with its number of watchers. */
  readonly #fields = new Map<string, Use>();
  readonly #labels = new Map<string, Use>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(watcher: Watcher): void {
    const key = this.#place(watcher, 1);
    const bucket = this.#buckets.get(key);
    if (bucket) bucket.add(watcher);
    else this.#buckets.set(key, new Set([watcher]));
    this.#size += 1;
  }

  /** Twice is harmless. */
  remove(watcher: Watcher): void {
    const key = bucketOf(watcher);
    const bucket = this.#buckets.get(key.bucket);
    if (!bucket?.delete(watcher)) return;
    this.#place(watcher, -1);
    if (bucket.size === 0) this.#buckets.delete(key.bucket);
    this.#size -= 1;
  }

  #place(watcher: Watcher, by: 1 | -1): string {
    const { bucket, field, label } = bucketOf(watcher);
    if (field !== undefined) count(this.#fields, field, by);
    if (label !== undefined) count(this.#labels, label, by);
    return bucket;
  }

  deliver(event: StoreEvent): void {
    if (this.#size === 0) return;
    for (const key of this.#keysOf(event)) {
      const bucket = this.#buckets.get(key);
      if (bucket) for (const watcher of bucket) offer(watcher, event);
    }
  }

  #keysOf({ object, previous }: StoreEvent): Iterable<string> {
    const { namespace, name } = object.metadata;
    const keys = new Set<string>(["*", `namespace ${namespace ?? ""}`, `name ${name}`]);
    for (const [field, { parts }] of this.#fields) {
      keys.add(`field ${field}=${fieldText(object, parts)}`);
      if (previous) keys.add(`field ${field}=${fieldText(previous, parts)}`);
    }
    for (const label of this.#labels.keys()) {
      keys.add(`label ${label}=${object.metadata.labels?.[label] ?? ""}`);
      if (previous) keys.add(`label ${label}=${previous.metadata.labels?.[label] ?? ""}`);
    }
    return keys;
  }
}

interface Use {
  readonly parts: readonly string[];
  readonly watchers: number;
}

function count(uses: Map<string, Use>, key: string, by: 1 | -1): void {
  const { parts = key.split("."), watchers = 0 } = uses.get(key) ?? {};
  if (watchers + by === 0) uses.delete(key);
  else uses.set(key, { parts, watchers: watchers + by });
}

function bucketOf(watcher: Watcher): { readonly bucket: string; readonly field?: string; readonly label?: string } {
  const name = equalityOf(watcher.fields, ["metadata.name"]);
  if (name) return { bucket: `name ${name[1]}` };
  const field = equalityOf(watcher.fields);
  if (field) return { bucket: `field ${field[0]}=${field[1]}`, field: field[0] };
  const label = equalityOf(watcher.labels);
  if (label) return { bucket: `label ${label[0]}=${label[1]}`, label: label[0] };
  return { bucket: watcher.namespace === undefined ? "*" : `namespace ${watcher.namespace}` };
}

/** Whether a list or a watch covers the object. */
export function covers(scope: Omit<Watcher, "sink">, object: KubeObject): boolean {
  if (scope.namespace !== undefined && scope.namespace !== object.metadata.namespace) return false;
  return matchesLabels(scope.labels, object.metadata.labels) && matchesFields(scope.fields, object);
}

/** An object that leaves the selection is DELETED for this watcher (its old state, the new resourceVersion), and ADDED when it comes back. */
export function offer(watcher: Watcher, event: StoreEvent): void {
  const isIn = event.type !== "DELETED" && covers(watcher, event.object);
  const wasIn = event.previous !== undefined && covers(watcher, event.previous);
  if (isIn) watcher.sink({ type: wasIn ? "MODIFIED" : "ADDED", object: event.object });
  else if (wasIn) watcher.sink({ type: "DELETED", object: departed(event) });
}

function departed(event: StoreEvent): KubeObject {
  if (event.type === "DELETED" || event.previous === undefined) return event.object;
  const { previous } = event;
  return Object.freeze({
    ...previous,
    metadata: Object.freeze({ ...previous.metadata, resourceVersion: event.object.metadata.resourceVersion }),
  });
}
