/** All objects of one kind, with the events of the recent past and those who watch. */
import type { KubeObject } from "../../kube/api.ts";
import type { KindSpec } from "../kinds.ts";
import { EventWindow, type StoreEvent } from "./event-window.ts";
import { WatchIndex } from "./watch-index.ts";

export class Collection {
  readonly kind: KindSpec;
  readonly window: EventWindow;
  readonly watchers = new WatchIndex();
  readonly #objects = new Map<string, KubeObject>();
  /** Keys in the order of the API (namespace, then name); rebuilt when a list needs it after a create or a delete. */
  #sortedKeys: readonly string[] | undefined;
  /** The revision of the last change. */
  #changedAt: number;

  constructor(kind: KindSpec, startRevision: number, windowSize: number) {
    this.kind = kind;
    this.window = new EventWindow(windowSize, startRevision);
    this.#changedAt = startRevision;
  }

  get size(): number {
    return this.#objects.size;
  }

  get changedAt(): number {
    return this.#changedAt;
  }

  find(namespace: string | undefined, name: string): KubeObject | undefined {
    return this.#objects.get(keyOf(namespace, name));
  }

  /** In the order of creation: the first is the oldest. */
  oldest(): KubeObject | undefined {
    for (const object of this.#objects.values()) return object;
    return undefined;
  }

  inOrder(namespace: string | undefined): Iterable<KubeObject> {
    return this.#iterate(namespace);
  }

  *#iterate(namespace: string | undefined): Iterable<KubeObject> {
    this.#sortedKeys ??= [...this.#objects.keys()].sort();
    const prefix = namespace === undefined ? "" : `${namespace}/`;
    for (let index = lowerBound(this.#sortedKeys, prefix); index < this.#sortedKeys.length; index += 1) {
      const key = this.#sortedKeys[index] ?? "";
      if (!key.startsWith(prefix)) return;
      const object = this.#objects.get(key);
      if (object) yield object;
    }
  }

  /** Makes the event's change and tells those who watch. */
  commit(event: StoreEvent): void {
    const { namespace, name } = event.object.metadata;
    const key = keyOf(namespace, name);
    if (event.type === "DELETED") this.#objects.delete(key);
    else this.#objects.set(key, event.object);
    if (event.type !== "MODIFIED") this.#sortedKeys = undefined;
    this.#changedAt = event.revision;
    this.window.push(event);
    this.watchers.deliver(event);
  }
}

function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function lowerBound(sorted: readonly string[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? "") < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
