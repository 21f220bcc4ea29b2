/**
 * A cache of one kind, kept by list and watch.
 *
 * - Reads are local; what this process writes is put in at once (`observe`), so that a reconcile never acts on a state older than its own last write.
 * - Listeners learn that something changed, not what to do: reconciles start from the key.
 * - A watch that ends is reopened from the last resourceVersion; a 410 lists anew; failures back off on the clock.
 */
import { isGone, KubeApiError, type KubeApi, type KubeObject, type ResourceType } from "../../kube/api.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { ClusterLog } from "./log.ts";
import { keyOf } from "./views.ts";

export interface Change {
  readonly key: string;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

type IndexFunction = (object: KubeObject) => readonly string[];

const BACKOFF_MS = { first: 100, max: 10_000 };
const PAGE = 500;

export class Informer {
  readonly type: ResourceType;
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #log: ClusterLog;
  readonly #objects = new Map<string, KubeObject>();
  readonly #indices = new Map<string, { readonly of: IndexFunction; readonly sets: Map<string, Map<string, KubeObject>> }>();
  readonly #listeners: ((change: Change) => void)[] = [];
  /** Objects that are known to be gone although the watch has not said so yet. */
  readonly #buried = new Set<string>();
  readonly #ready = Promise.withResolvers<void>();
  #seen = 0;

  constructor(type: ResourceType, api: KubeApi, clock: Clock, log: ClusterLog) {
    this.type = type;
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
  }

  /** Settles when the first list is in. */
  get synced(): Promise<void> {
    return this.#ready.promise;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): KubeObject | undefined {
    return this.#objects.get(key);
  }

  values(): readonly KubeObject[] {
    return [...this.#objects.values()];
  }

  /** Objects for which the index function named `value`, in the order of their keys. */
  byIndex(name: string, value: string): readonly KubeObject[] {
    const set = this.#indices.get(name)?.sets.get(value);
    return set === undefined ? [] : [...set.values()];
  }

  /** Adds an index; adding one of the same name again changes nothing. */
  addIndex(name: string, of: IndexFunction): void {
    if (this.#indices.has(name)) return;
    this.#indices.set(name, { of, sets: new Map() });
    for (const [key, object] of this.#objects) this.#reindex(key, undefined, object);
  }

  /** The listener also hears of everything that is there already. */
  onChange(listener: (change: Change) => void): void {
    this.#listeners.push(listener);
    for (const [key, after] of this.#objects) listener({ key, before: undefined, after });
  }

  /** Puts in what a write returned. */
  observe(object: KubeObject): void {
    const key = keyOf(object);
    const version = Number(object.metadata.resourceVersion);
    const cached = this.#objects.get(key);
    if (this.#buried.has(object.metadata.uid)) return;
    if (cached !== undefined && versionOf(cached) >= version) return;
    if (cached === undefined && version <= this.#seen) return; // created and deleted before the answer was read
    this.#set(key, object);
  }

  /** Takes out what is known to be gone. */
  forget(key: string, uid: string): void {
    const cached = this.#objects.get(key);
    if (cached === undefined || cached.metadata.uid !== uid) return;
    this.#buried.add(uid);
    this.#set(key, undefined);
  }

  async run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    let delayMs = BACKOFF_MS.first;
    while (!signal.aborted) {
      try {
        version ??= await this.#list();
        this.#ready.resolve();
        const from: string = version;
        version = await this.#watch(from, signal);
        delayMs = BACKOFF_MS.first;
        // A server that ends every watch at once must not keep us spinning.
        if (version === from && !signal.aborted) await this.#clock.sleep(delayMs, signal).catch(() => undefined);
      } catch (error) {
        if (signal.aborted) break;
        if (isGone(error)) {
          version = undefined;
          continue;
        }
        this.#log("warn", "list and watch failed, trying again", { kind: this.type.plural, error, delayMs });
        await this.#clock.sleep(delayMs, signal).catch(() => undefined);
        delayMs = Math.min(delayMs * 2, BACKOFF_MS.max);
      }
    }
  }

  async #list(): Promise<string> {
    const present = new Map<string, KubeObject>();
    let version = "0";
    let next: string | undefined;
    do {
      const page = await this.#api.list(this.type, { limit: PAGE, ...(next === undefined ? {} : { continue: next }) });
      for (const item of page.items) present.set(keyOf(item), this.#typed(item));
      version = page.resourceVersion;
      next = page.continue;
    } while (next !== undefined);
    this.#buried.clear();
    // What was written here while the pages came in is newer than they are.
    for (const [key, cached] of [...this.#objects]) {
      if (!present.has(key) && versionOf(cached) <= Number(version)) this.#set(key, undefined);
    }
    for (const [key, object] of present) {
      const cached = this.#objects.get(key);
      if (cached === undefined || versionOf(cached) < versionOf(object)) this.#set(key, object);
    }
    this.#seen = Math.max(this.#seen, Number(version));
    return version;
  }

  /** Items of a list may come without their kind. */
  #typed(item: KubeObject): KubeObject {
    return (item.kind as string | undefined) === undefined ? { ...item, apiVersion: apiVersionOf(this.type), kind: this.type.kind } : item;
  }

  async #watch(from: string, signal: AbortSignal): Promise<string> {
    let version = from;
    for await (const event of this.#api.watch(this.type, { resourceVersion: from }, signal)) {
      switch (event.type) {
        case "BOOKMARK":
          version = event.resourceVersion;
          break;
        case "ERROR":
          throw new KubeApiError(event.status, `watch ${this.type.plural}`);
        case "DELETED":
          version = event.object.metadata.resourceVersion;
          this.#take(event.object, true);
          break;
        default:
          version = event.object.metadata.resourceVersion;
          this.#take(event.object, false);
      }
      this.#seen = Math.max(this.#seen, Number(version));
    }
    return version;
  }

  #take(object: KubeObject, isDeleted: boolean): void {
    const { uid, resourceVersion } = object.metadata;
    const key = keyOf(object);
    const cached = this.#objects.get(key);
    if (isDeleted) {
      this.#buried.delete(uid);
      if (cached?.metadata.uid === uid) this.#set(key, undefined);
      return;
    }
    if (this.#buried.has(uid)) return;
    if (cached !== undefined && versionOf(cached) >= Number(resourceVersion)) return;
    this.#set(key, object);
  }

  #set(key: string, after: KubeObject | undefined): void {
    const before = this.#objects.get(key);
    if (after === undefined) this.#objects.delete(key);
    else this.#objects.set(key, after);
    this.#reindex(key, before, after);
    for (const listener of this.#listeners) listener({ key, before, after });
  }

  #reindex(key: string, before: KubeObject | undefined, after: KubeObject | undefined): void {
    for (const { of, sets } of this.#indices.values()) {
      const was = before === undefined ? [] : of(before);
      const is = after === undefined ? [] : of(after);
      for (const value of was) {
        if (is.includes(value)) continue;
        const set = sets.get(value);
        set?.delete(key);
        if (set?.size === 0) sets.delete(value);
      }
      for (const value of is) {
        const set = sets.get(value) ?? new Map<string, KubeObject>();
        if (after !== undefined) set.set(key, after);
        sets.set(value, set);
      }
    }
  }
}

function versionOf(object: KubeObject): number {
  return Number(object.metadata.resourceVersion);
}
