/**
 * The objects of one cluster, in memory, with the semantics of the Kubernetes API: one rising resourceVersion, watches from a point in the past,
 * preconditions, subresources, finalizers, grace periods. No I/O and no timers; time and ids are ports, so that a simulator can own them.
 *
 * 1. An object in the store is deeply frozen and is never changed: a write puts another in its place.
 * 2. Every change takes the next resourceVersion and is one event; a write that changes nothing takes none.
 * 3. Calls are synchronous and atomic. A watch's sink runs inside the write and must not write itself.
 * 4. What is kept is bounded: objects, events per kind, pages, watchers.
 * 5. Left to controllers: following ownerReferences, and taking off the finalizers `foregroundDeletion` and `orphan`.
 */
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import {
  type DeleteOptions,
  KubeApiError,
  type KubeObject,
  type KubeObjectDraft,
  type ObjectRef,
  type ResourceType,
  type WatchEvent,
  type WatchOptions,
} from "../../kube/api.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, PRIORITY_CLASSES } from "../../kube/resources.ts";
import { isType, kindKey } from "../kind-key.ts";
import type { KindSpec } from "../kinds.ts";
import { KindRegistry } from "./kind-registry.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  expired,
  forbidden,
  notFound,
  storeFull,
  tooManyRequests,
  unconditional,
} from "./api-errors.ts";
import { Collection } from "./collection.ts";
import { kindsOfDefinition } from "./custom-kinds.ts";
import { formatSeconds, isReleased, planDeletion } from "./deletion.ts";
import type { StoreEvent } from "./event-window.ts";
import { type JsonObject, NotJsonError, sealJson, valueAt } from "./json.ts";
import { checkAddress, checkIdentity, checkPreconditions, nameFor, namespaceFor, newObject } from "./new-object.ts";
import { nextState, type UpdatedPart } from "./next-state.ts";
import { ObjectRules, type Validator } from "./object-rules.ts";
import { ObjectLists, parseVersion, scopeOf, type StoreList, type StoreListOptions } from "./object-lists.ts";
import { covers, offer, type Watcher } from "./watch-index.ts";

export type { Validator } from "./object-rules.ts";

export type Journal = (kind: KindSpec, event: StoreEvent) => void;

export interface ObjectStoreOptions {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly kinds?: KindRegistry;
  /** By `kindKey`: `relevo.dev/v1alpha1/pools`. */
  readonly validators?: Readonly<Record<string, Validator>>;
  /**
   * Give a restarted cluster a higher one than the last had, so that old watches see 410 and not silence. The wall time in milliseconds will do, as
   * long as a cluster makes fewer than 1,000 writes a second over its life.
   */
  readonly firstResourceVersion?: number;
  /** Events kept per kind. */
  readonly windowSize?: number;
  readonly objectsMax?: number;
  readonly watchersMax?: number;
}

export interface WriteOptions {
  /** Absent is the object itself. */
  readonly part?: UpdatedPart;
  /** Everything is checked, nothing is kept. */
  readonly dryRun?: boolean | undefined;
  /** Who applied which fields, after a server-side apply. */
  readonly managedFields?: readonly unknown[] | undefined;
}

export interface StoreWatch {
  /** No event comes after it. */
  close(): void;
}

export interface DeleteResult {
  /** The last state, or the state with its deletionTimestamp. */
  readonly object: KubeObject;
  readonly gone: boolean;
}

const WINDOW_SIZE = 5_000;
const OBJECTS_MAX = 200_000;
const WATCHERS_MAX = 10_000;
const NAME_ATTEMPTS = 8;

export class ObjectStore {
  readonly clock: Clock;
  readonly kinds: KindRegistry;
  readonly #ids: Ids;
  readonly #rules: ObjectRules;
  readonly #collections = new Map<string, Collection>();
  readonly #lists: ObjectLists;
  readonly #windowSize: number;
  readonly #objectsMax: number;
  readonly #watchersMax: number;
  /** Objects per namespace: a terminating one goes with its last object. */
  readonly #population = new Map<string, number>();
  /** A shortcut past the key of a type; forgotten when kinds change. */
  #byType = new WeakMap<ResourceType, Collection>();
  /** Watches from below it are too old. */
  readonly #beginning: number;
  #revision: number;
  #journal: Journal | undefined;
  #objects = 0;
  #watchers = 0;

  constructor(options: ObjectStoreOptions) {
    this.clock = options.clock;
    this.kinds = options.kinds ?? new KindRegistry();
    this.#ids = options.ids;
    this.#rules = new ObjectRules(options.validators ?? {});
    this.#lists = new ObjectLists(options.clock);
    this.#windowSize = options.windowSize ?? WINDOW_SIZE;
    this.#objectsMax = options.objectsMax ?? OBJECTS_MAX;
    this.#watchersMax = options.watchersMax ?? WATCHERS_MAX;
    this.#beginning = options.firstResourceVersion ?? 1;
    this.#revision = this.#beginning;
  }

  /** The resourceVersion of the last change. */
  get revision(): number {
    return this.#revision;
  }

  get objectCount(): number {
    return this.#objects;
  }

  get watcherCount(): number {
    return this.#watchers;
  }

  /** From now on, objects of the kind (`kindKey`) must pass this too. */
  validateWith(key: string, validator: Validator): void {
    this.#rules.add(key, validator);
  }

  /** Called with every change before it is made; what it throws refuses the write, and nothing has changed. */
  journalWith(journal: Journal): void {
    this.#journal = journal;
  }

  find(ref: ObjectRef): KubeObject | undefined {
    const collection = this.#collection(ref.type);
    return collection.find(collection.kind.namespaced ? ref.namespace : undefined, ref.name);
  }

  get(ref: ObjectRef): KubeObject {
    const object = this.find(ref);
    if (!object) throw notFound(ref.type, ref.name);
    return object;
  }

  list(type: ResourceType, options: StoreListOptions = {}): StoreList {
    return this.#lists.read(this.#collection(type), this.#revision, options);
  }

  /**
   * Calls the sink for everything after `resourceVersion`, at once for what already happened. Without one (or with "0") it begins with an ADDED for
   * all that there is. A too old one gives a single ERROR event with 410.
   */
  watch(type: ResourceType, options: WatchOptions, sink: (event: WatchEvent) => void): StoreWatch {
    const collection = this.#collection(type);
    const watcher: Watcher = { ...scopeOf(collection.kind, options), sink };
    if (this.#watchers >= this.#watchersMax)
      throw tooManyRequests(`the embedded cluster serves at most ${this.#watchersMax} watches at once`, { retryAfterSeconds: 1 });
    if (options.resourceVersion === "" || options.resourceVersion === "0") {
      for (const object of collection.inOrder(watcher.namespace)) if (covers(watcher, object)) sink({ type: "ADDED", object });
    } else {
      const asked = parseVersion(options.resourceVersion);
      const missed = collection.window.after(asked);
      if (!missed) {
        sink({ type: "ERROR", status: expired(`too old resource version: ${asked} (${collection.changedAt})`).status });
        return { close: () => undefined };
      }
      for (const event of missed) offer(watcher, event);
    }
    return this.#subscribe(collection, watcher);
  }

  #subscribe(collection: Collection, watcher: Watcher): StoreWatch {
    collection.watchers.add(watcher);
    this.#watchers += 1;
    let open = true;
    return {
      close: () => {
        if (!open) return;
        open = false;
        collection.watchers.remove(watcher);
        this.#watchers -= 1;
      },
    };
  }

  create(type: ResourceType, draft: KubeObjectDraft, options: WriteOptions & { readonly namespace?: string | undefined } = {}): KubeObject {
    const collection = this.#collection(type);
    const { kind } = collection;
    checkAddress(kind, draft);
    const namespace = namespaceFor(kind, draft, options.namespace);
    if (draft.metadata.resourceVersion !== undefined && draft.metadata.resourceVersion !== "") {
      throw badRequest("resourceVersion should not be set on objects to be created");
    }
    const name = this.#freeName(collection, draft, namespace);
    if (namespace !== undefined) this.#checkNamespace(kind, namespace, name);
    const at = formatSeconds(this.clock.now());
    const born = newObject(kind, draft, { name, namespace, uid: this.#ids.next("uid"), at, managedFields: options.managedFields });
    const object = isType(kind, PODS) ? this.#withPriority(born) : born;
    this.#rules.checkNew(kind, object);
    if (options.dryRun) return seal(object);
    return this.#add(collection, object);
  }

  /** Puts back an object that was saved: its uid, generation and times stay; only the resourceVersion is new. */
  restore(type: ResourceType, object: KubeObject): KubeObject {
    const collection = this.#collection(type);
    const { namespace, name } = object.metadata;
    if (collection.find(namespace, name)) throw alreadyExists(collection.kind, name);
    if (namespace !== undefined) this.#checkNamespace(collection.kind, namespace, name);
    return this.#add(collection, object);
  }

  #add(collection: Collection, object: KubeObject): KubeObject {
    if (this.#objects >= this.#objectsMax) throw storeFull(this.#objectsMax);
    const created = this.#commit(collection, "ADDED", object, undefined);
    this.#afterCreate(collection, created);
    return created;
  }

  #freeName(collection: Collection, draft: KubeObjectDraft, namespace: string | undefined): string {
    const isGiven = draft.metadata.name !== undefined && draft.metadata.name !== "";
    for (let attempt = 1; ; attempt += 1) {
      const name = nameFor(collection.kind, draft, () => this.#ids.next("x"));
      if (!collection.find(namespace, name)) return name;
      if (isGiven || attempt === NAME_ATTEMPTS) throw alreadyExists(collection.kind, name);
    }
  }

  #withPriority(pod: KubeObject): KubeObject {
    const name = valueAt(pod, "spec.priorityClassName");
    if (typeof name !== "string" || name === "") return pod;
    const found = this.find({ type: PRIORITY_CLASSES, name });
    if (!found) throw forbidden(PODS, pod.metadata.name, `no PriorityClass with name ${name} was found`);
    return { ...pod, spec: { ...(pod["spec"] as JsonObject), priority: found["value"] } };
  }

  #checkNamespace(kind: KindSpec, namespace: string, name: string): void {
    const found = this.find({ type: NAMESPACES, name: namespace });
    if (!found) throw notFound(NAMESPACES, namespace);
    if (found.metadata.deletionTimestamp === undefined) return;
    const message = `namespace ${namespace} is being terminated`;
    throw forbidden(kind, name, `unable to create new content in namespace ${namespace} because it is being terminated`, [
      { reason: "NamespaceTerminating", message, field: "metadata.namespace" },
    ]);
  }

  /** A change computed from the object's current state; the server's own preconditions are checked on what `change` returns. */
  modify(ref: ObjectRef, change: (before: KubeObject) => JsonObject, options: WriteOptions = {}): KubeObject {
    const collection = this.#collection(ref.type);
    const { kind } = collection;
    const before = this.get(ref);
    const candidate = change(before);
    if (!isAddressKept(before, candidate)) {
      checkAddress(kind, candidate, ref);
      checkIdentity(kind, before, candidate);
    }
    const after = nextState(kind, before, candidate, options.part, options.managedFields);
    if (after === before) return before;
    this.#rules.checkChange(kind, before, after);
    if (options.dryRun) return seal(after);
    if (isReleased(after)) {
      this.#remove(collection, before, before); // who watches is told the last state that was stored
      return seal(after);
    }
    return this.#commit(collection, "MODIFIED", after, before);
  }

  /** PUT: the object's `metadata.resourceVersion` and `metadata.uid`, when given, are preconditions. */
  replace(ref: ObjectRef, object: KubeObjectDraft, options: WriteOptions = {}): KubeObject {
    const { kind } = this.#collection(ref.type);
    const known = this.find(ref);
    if (known && kind.custom && !object.metadata.resourceVersion) throw unconditional(kind, ref.name);
    if (known && object.metadata.uid && object.metadata.uid !== known.metadata.uid)
      throw conflict(
        kind,
        ref.name,
        `Precondition failed: UID in precondition: ${object.metadata.uid}, UID in object meta: ${known.metadata.uid}`,
      );
    return this.modify(ref, () => object, options);
  }

  delete(ref: ObjectRef, options: DeleteOptions & { readonly dryRun?: boolean | undefined } = {}): DeleteResult {
    const collection = this.#collection(ref.type);
    const object = this.get(ref);
    checkPreconditions(collection.kind, object, options.preconditions ?? {});
    if (isType(collection.kind, NAMESPACES)) return this.#deleteNamespace(collection, object, options);
    const deletion = planDeletion(collection.kind, object, options, this.clock.now());
    if (deletion.outcome === "unchanged") return { object, gone: false };
    if (options.dryRun) return { object, gone: deletion.outcome === "gone" };
    if (deletion.outcome === "marked") return { object: this.#commit(collection, "MODIFIED", deletion.object, object), gone: false };
    return { object: this.#remove(collection, object, object), gone: true };
  }

  /** The namespace first refuses new objects, then loses those it has, and goes with the last of them. */
  #deleteNamespace(
    collection: Collection,
    namespace: KubeObject,
    options: DeleteOptions & { readonly dryRun?: boolean | undefined },
  ): DeleteResult {
    const { name, deletionTimestamp } = namespace.metadata;
    if (["default", "kube-system", "kube-public", "kube-node-lease"].includes(name))
      throw forbidden(NAMESPACES, name, "this namespace may not be deleted");
    if (options.dryRun) return { object: namespace, gone: false };
    const marked =
      deletionTimestamp === undefined ? this.#commit(collection, "MODIFIED", this.#terminating(namespace), namespace) : namespace;
    // Also when it was marked before: what could not be deleted then may be now.
    for (const each of this.#collections.values()) {
      if (!each.kind.namespaced) continue;
      for (const object of [...each.inOrder(name)]) this.delete(refOf(each.kind, object));
    }
    this.#finishNamespace(name);
    const left = this.find({ type: NAMESPACES, name });
    return { object: left ?? marked, gone: left === undefined };
  }

  #terminating(namespace: KubeObject): KubeObject {
    const at = formatSeconds(this.clock.now());
    return {
      ...namespace,
      metadata: { ...namespace.metadata, deletionTimestamp: at },
      status: { ...(namespace["status"] as JsonObject | undefined), phase: "Terminating" },
    };
  }

  #finishNamespace(name: string): void {
    if ((this.#population.get(name) ?? 0) > 0) return;
    const namespace = this.find({ type: NAMESPACES, name });
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    this.modify(
      { type: NAMESPACES, name },
      (before) => ({ ...before, spec: { ...(before["spec"] as JsonObject | undefined), finalizers: [] } }),
      { part: "finalize" },
    );
  }

  /** Every watch and every continue token from before is too old afterwards, as when an API server restarts. */
  forgetHistory(): void {
    for (const collection of this.#collections.values()) collection.window.clear();
    this.#lists.forget();
  }

  #commit(collection: Collection, type: "ADDED" | "MODIFIED", object: KubeObject, previous: KubeObject | undefined): KubeObject {
    const revision = this.#revision + 1;
    const stored = seal({ ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } }, previous);
    const event: StoreEvent = { revision, type, object: stored, previous };
    this.#journal?.(collection.kind, event);
    this.#revision = revision;
    if (type === "ADDED") this.#count(stored, 1);
    collection.commit(event);
    return stored;
  }

  #remove(collection: Collection, before: KubeObject, last: KubeObject): KubeObject {
    const revision = this.#revision + 1;
    const object = seal({ ...last, metadata: { ...last.metadata, resourceVersion: String(revision) } }, before);
    const event: StoreEvent = { revision, type: "DELETED", object, previous: before };
    this.#journal?.(collection.kind, event);
    this.#revision = revision;
    this.#count(object, -1);
    collection.commit(event);
    if (isType(collection.kind, CUSTOM_RESOURCE_DEFINITIONS)) this.#removeKinds(object);
    if (object.metadata.namespace !== undefined) this.#finishNamespace(object.metadata.namespace);
    return object;
  }

  #count(object: KubeObject, by: 1 | -1): void {
    this.#objects += by;
    const { namespace } = object.metadata;
    if (namespace === undefined) return;
    const next = (this.#population.get(namespace) ?? 0) + by;
    if (next === 0) this.#population.delete(namespace);
    else this.#population.set(namespace, next);
  }

  #afterCreate(collection: Collection, created: KubeObject): void {
    const { keepNewest } = collection.kind;
    if (keepNewest !== undefined && collection.size > keepNewest) {
      const oldest = collection.oldest();
      if (oldest) this.delete(refOf(collection.kind, oldest));
    }
    if (isType(collection.kind, CUSTOM_RESOURCE_DEFINITIONS)) {
      for (const kind of kindsOfDefinition(created)) if (!this.kinds.find(kind)) this.kinds.add(kind);
    }
  }

  /** With the definition go its objects; kinds of the table stay. */
  #removeKinds(definition: KubeObject): void {
    for (const kind of kindsOfDefinition(definition)) {
      if (!this.kinds.isAdded(kind)) continue;
      const collection = this.#collection(kind);
      for (const object of [...collection.inOrder(undefined)]) this.#remove(collection, object, object);
      this.kinds.remove(kind);
      this.#collections.delete(kindKey(kind));
    }
    this.#byType = new WeakMap();
  }

  #collection(type: ResourceType): Collection {
    const known = this.#byType.get(type);
    if (known) return known;
    const key = kindKey(type);
    const kind = this.kinds.find(type);
    if (!kind) throw new KubeApiError({ code: 404, message: "404 page not found" }, "the API server does not serve this kind");
    let collection = this.#collections.get(key);
    if (!collection) {
      // A kind that nobody touched yet had no events: a watch from the store's beginning is not too old.
      collection = new Collection(kind, this.#beginning, this.#windowSize);
      this.#collections.set(key, collection);
    }
    this.#byType.set(type, collection);
    return collection;
  }
}

/** What a patch does not touch is what was stored, and was looked at then. */
function isAddressKept(before: KubeObject, candidate: JsonObject): boolean {
  return candidate["metadata"] === before.metadata && candidate["apiVersion"] === before.apiVersion && candidate["kind"] === before.kind;
}

function seal(object: KubeObject, before?: KubeObject): KubeObject {
  try {
    return sealJson(object, before);
  } catch (error) {
    if (error instanceof NotJsonError) throw badRequest(`the object is no JSON: ${error.message}`);
    throw error;
  }
}

export function refOf(type: ResourceType, object: KubeObject): ObjectRef {
  return { type, namespace: object.metadata.namespace, name: object.metadata.name };
}
