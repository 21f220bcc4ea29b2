/**
 * A read model of one kind, driven by the reflector over any KubeApi: objects are parsed once, kept by namespace and name, and indexed.
 *
 * 1. What cannot be parsed is absent, counted and named in `problems()`: nobody acts on half-understood objects (D9).
 * 2. An object of the same name with another UID is another object: the change is told as a removal and an addition.
 * 3. While the server cannot be read the copy stays, and `state().failing` says why.
 */
import type { KubeApi, KubeObject, ResourceType } from "./api.ts";
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { failureOf, initialState, step } from "./reflector.ts";
import type { Delivery, Effect, ReflectorConfig, ReflectorEvent, ReflectorState } from "./reflector-types.ts";
import type { Parsed } from "./types.ts";

export type InformerLog = (level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;

export interface InformerOptions<T> {
  readonly api: KubeApi;
  readonly type: ResourceType;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  /** One that an object never leaves, such as its name. */
  readonly fieldSelector?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: InformerLog;
  readonly parse: (object: KubeObject) => Parsed<T>;
  /** By name: under which values an object is found. */
  readonly indexes?: Readonly<Record<string, (value: T) => readonly string[]>>;
  readonly reflector?: Partial<ReflectorConfig>;
}

export interface Change<T> {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
  /** Undefined when it is new, or was malformed. */
  readonly before: T | undefined;
  /** Undefined when it left, or is malformed now. */
  readonly after: T | undefined;
  /** True when the object itself is gone; false when it is there, or may only have left the selector. */
  readonly gone: boolean;
  readonly problem: string | undefined;
}

export interface InformerState {
  /** Since when it has been as it is: in step with the server, or failing. */
  readonly since: Instant;
  /** A code; absent while all is well. */
  readonly failing?: string;
  readonly resourceVersion: string | null;
  /** When the server was last heard. */
  readonly heardAt: Instant | null;
  readonly malformed: number;
}

export interface Problem {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly problem: string;
}

export interface Informer<T> {
  readonly type: ResourceType;
  start(): void;
  /** Ends for good; the copy stays readable. */
  stop(): void;
  /** True once the copy was complete. */
  synced(): boolean;
  /** Settles when the copy was complete for the first time. */
  whenSynced(): Promise<void>;
  /** The same, or when the server said for the first time that we may not read this kind. */
  whenAnswered(): Promise<void>;
  state(): InformerState;
  get(namespace: string | undefined, name: string): T | undefined;
  list(): readonly T[];
  /** The same array as long as none of these objects changes. */
  byIndex(index: string, value: string): readonly T[];
  /** Objects that are there and could not be parsed. */
  problems(): readonly Problem[];
  /** Returns how to stop listening. Hears nothing of what is already there. */
  onChange(listener: (change: Change<T>) => void): () => void;
}

/** The code of the server's 403. */
const FORBIDDEN = "kube_forbidden";

export function createInformer<T>(options: InformerOptions<T>): Informer<T> {
  return new ReflectedInformer(options);
}

interface Entry<T> {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
  readonly version: string;
  readonly parsed: Parsed<T>;
}

class ReflectedInformer<T> implements Informer<T> {
  readonly #options: InformerOptions<T>;
  readonly #entries = new Map<string, Entry<T>>();
  /** Of a snapshot that is not complete yet. */
  readonly #staged = new Map<string, Entry<T>>();
  readonly #malformed = new Set<string>();
  readonly #indexes: ReadonlyMap<string, Index<T>>;
  readonly #listeners = new Set<(change: Change<T>) => void>();
  readonly #firstSync = Promise.withResolvers<void>();
  readonly #refusal = Promise.withResolvers<void>();
  readonly #events: ReflectorEvent[] = [];
  #isStepping = false;
  #reflector: ReflectorState;
  #watch: { readonly id: number; readonly abort: AbortController } | undefined;
  #timer: Timer | undefined;
  #isSynced = false;
  #since: Instant;
  #heardAt: Instant | null = null;

  constructor(options: InformerOptions<T>) {
    this.#options = options;
    this.#reflector = initialState({ initialEvents: options.api.hasInitialEvents ?? false, ...options.reflector });
    this.#since = options.clock.now();
    this.#indexes = new Map(Object.entries(options.indexes ?? {}).map(([name, of]) => [name, { of, keys: new Map(), found: new Map() }]));
  }

  start(): void {
    this.#step({ type: "start" });
  }

  stop(): void {
    this.#step({ type: "stop" });
    this.#timer?.cancel();
  }

  synced(): boolean {
    return this.#isSynced;
  }

  get type(): ResourceType {
    return this.#options.type;
  }

  whenAnswered(): Promise<void> {
    return Promise.race([this.#firstSync.promise, this.#refusal.promise]);
  }

  whenSynced(): Promise<void> {
    return this.#firstSync.promise;
  }

  state(): InformerState {
    const { failing, version } = this.#reflector;
    return {
      since: this.#since,
      ...(failing === null ? {} : { failing }),
      resourceVersion: version,
      heardAt: this.#heardAt,
      malformed: this.#malformed.size,
    };
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return valueOf(this.#entries.get(keyOf(namespace, name)));
  }

  list(): readonly T[] {
    return [...this.#entries.values()].flatMap((entry) => (entry.parsed.ok ? [entry.parsed.value] : []));
  }

  byIndex(index: string, value: string): readonly T[] {
    const of = this.#indexes.get(index);
    const keys = of?.keys.get(value);
    if (of === undefined || keys === undefined) return NOTHING;
    const known = of.found.get(value);
    if (known !== undefined) return known;
    const found: T[] = [];
    for (const key of keys) {
      const object = valueOf(this.#entries.get(key));
      if (object !== undefined) found.push(object);
    }
    of.found.set(value, found);
    return found;
  }

  problems(): readonly Problem[] {
    return [...this.#malformed].flatMap((key) => {
      const entry = this.#entries.get(key);
      return entry === undefined || entry.parsed.ok
        ? []
        : [{ namespace: entry.namespace, name: entry.name, uid: entry.uid, problem: entry.parsed.problem }];
    });
  }

  onChange(listener: (change: Change<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // ---- driving the reflector

  /** A listener may cause the next event (by `stop`): events wait for their turn. */
  #step(event: ReflectorEvent): void {
    this.#events.push(event);
    if (this.#isStepping) return;
    this.#isStepping = true;
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
        const jitter = next.type === "line" && next.line.type !== "ERROR" ? 0 : this.#options.random.next();
        const { state, effects } = step(this.#reflector, next, { at: this.#options.clock.monotonic(), jitter });
        if ((state.failing === null) !== (this.#reflector.failing === null)) this.#since = this.#options.clock.now();
        this.#reflector = state;
        if (state.failing === FORBIDDEN) this.#refusal.resolve();
        for (const effect of effects) this.#perform(effect);
      }
    } finally {
      this.#isStepping = false;
    }
  }

  #perform(effect: Effect): void {
    switch (effect.type) {
      case "list_page":
        void this.#list(effect);
        return;
      case "open_watch":
        void this.#follow(effect);
        return;
      case "close_watch":
        if (this.#watch?.id === effect.watch) this.#watch.abort.abort();
        return;
      case "wait":
        this.#timer?.cancel();
        this.#timer = this.#options.clock.after(effect.ms, () => this.#step({ type: "waited", timer: effect.timer }));
        return;
      case "unstage":
        this.#staged.clear();
        return;
      case "stage":
        for (const entry of effect.objects.map((object) => this.#parse(object)))
          this.#staged.set(keyOf(entry.namespace, entry.name), entry);
        return;
      case "stage_removal":
        this.#staged.delete(keyOf(effect.object.metadata.namespace, effect.object.metadata.name));
        return;
      case "deliver":
        this.#take(effect.change);
        return;
      case "synced":
        if (!this.#isSynced) this.#since = this.#options.clock.now();
        this.#isSynced = true;
        this.#firstSync.resolve();
        this.#log("debug", "listed", { resourceVersion: effect.version, objects: this.#entries.size });
        return;
      case "failing":
        this.#log("warn", "cannot be read, trying again", { code: effect.code, failures: effect.failures });
        return;
      case "recovered":
        this.#log("info", "can be read again", {});
        return;
      default:
        effect satisfies never;
    }
  }

  async #list(effect: Effect & { type: "list_page" }): Promise<void> {
    const { api, type, namespace, labelSelector, fieldSelector } = this.#options;
    try {
      const page = await api.list(type, { namespace, labelSelector, fieldSelector, limit: effect.limit, continue: effect.continue });
      this.#heardAt = this.#options.clock.now();
      this.#step({ type: "page", list: effect.list, page });
    } catch (error) {
      this.#step({ type: "list_failed", list: effect.list, failure: failureOf(error) });
    }
  }

  async #follow(effect: Effect & { type: "open_watch" }): Promise<void> {
    const { api, type, namespace, labelSelector, fieldSelector } = this.#options;
    const abort = new AbortController();
    const watch = effect.watch;
    this.#watch = { id: watch, abort };
    try {
      const from = effect.version === null ? { resourceVersion: "", sendInitialEvents: true } : { resourceVersion: effect.version };
      const options = { namespace, labelSelector, fieldSelector, ...from, timeoutSeconds: effect.timeoutSeconds };
      for await (const line of api.watch(type, options, abort.signal)) {
        if (abort.signal.aborted) return;
        this.#heardAt = this.#options.clock.now();
        this.#step({ type: "line", watch, line });
      }
      if (!abort.signal.aborted) this.#step({ type: "watch_ended", watch });
    } catch (error) {
      if (!abort.signal.aborted) this.#step({ type: "watch_failed", watch, failure: failureOf(error) });
    }
  }

  // ---- the copy

  /** First the whole change, then who listens: nobody sees half a swap. */
  #take(delivery: Delivery): void {
    for (const change of this.#apply(delivery)) this.#tell(change);
  }

  #apply(delivery: Delivery): readonly Change<T>[] {
    switch (delivery.kind) {
      case "replace":
        return this.#replace();
      case "put":
        return this.#put(this.#parse(delivery.object));
      case "remove": {
        const { namespace, name, uid } = delivery.object.metadata;
        return this.#remove(keyOf(namespace, name), uid, this.#options.labelSelector === undefined);
      }
      default:
        return delivery satisfies never;
    }
  }

  #replace(): readonly Change<T>[] {
    const staged = new Map(this.#staged);
    this.#staged.clear();
    const absent = [...this.#entries].filter(([key]) => !staged.has(key));
    const removed = absent.flatMap(([key, entry]) => this.#remove(key, entry.uid, this.#options.labelSelector === undefined));
    return [...removed, ...[...staged.values()].flatMap((entry) => this.#put(entry))];
  }

  #put(entry: Entry<T>): readonly Change<T>[] {
    const key = keyOf(entry.namespace, entry.name);
    const former = this.#entries.get(key);
    if (former !== undefined && former.uid !== entry.uid) return [...this.#remove(key, former.uid, true), ...this.#put(entry)];
    if (former?.version === entry.version) return [];
    if (former === undefined && this.#entries.size >= this.#reflector.config.maxObjects) {
      this.#step({ type: "overflow" });
      return [];
    }
    this.#set(key, entry);
    const { namespace, name, uid, parsed } = entry;
    const problem = parsed.ok ? undefined : parsed.problem;
    if (problem !== undefined) this.#log("warn", "is malformed and counts as absent", { namespace, name, problem });
    return [{ namespace, name, uid, before: valueOf(former), after: valueOf(entry), gone: false, problem }];
  }

  /** With a selector, what leaves the watch may only have lost a label. */
  #remove(key: string, uid: string, gone: boolean): readonly Change<T>[] {
    const former = this.#entries.get(key);
    if (former === undefined || former.uid !== uid) return [];
    this.#set(key, undefined);
    return [{ namespace: former.namespace, name: former.name, uid, before: valueOf(former), after: undefined, gone, problem: undefined }];
  }

  #set(key: string, entry: Entry<T> | undefined): void {
    const before = valueOf(this.#entries.get(key));
    const after = valueOf(entry);
    if (entry === undefined) this.#entries.delete(key);
    else this.#entries.set(key, entry);
    if (entry !== undefined && !entry.parsed.ok) this.#malformed.add(key);
    else this.#malformed.delete(key);
    for (const index of this.#indexes.values()) reindex(index, key, before, after);
  }

  /** A list brings mostly what is known already: the same state is not parsed again. */
  #parse(object: KubeObject): Entry<T> {
    const { namespace, name, uid, resourceVersion } = object.metadata;
    const known = this.#entries.get(keyOf(namespace, name));
    if (known !== undefined && known.uid === uid && known.version === resourceVersion) return known;
    return { namespace, name, uid, version: resourceVersion, parsed: this.#parseSafely(object) };
  }

  #parseSafely(object: KubeObject): Parsed<T> {
    try {
      return this.#options.parse(object);
    } catch (error) {
      return { ok: false, problem: `the parser threw: ${error instanceof Error ? error.message : String(error)}` };
    }
  }

  /** A listener that throws must not stop the others, nor the copy. */
  #tell(change: Change<T>): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#log("error", "a listener threw", { name: change.name, error });
      }
    }
  }

  #log(level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#options.log(level, `${this.#options.type.plural}: ${message}`, { resource: this.#options.type.plural, ...fields });
  }
}

interface Index<T> {
  readonly of: (value: T) => readonly string[];
  readonly keys: Map<string, Set<string>>;
  /** Answers that were given, by value; each is dropped when an object under its value changes. */
  readonly found: Map<string, readonly T[]>;
}

const NOTHING: readonly never[] = [];

function reindex<T>(index: Index<T>, key: string, before: T | undefined, after: T | undefined): void {
  for (const value of before === undefined ? [] : index.of(before)) {
    index.found.delete(value);
    const keys = index.keys.get(value);
    keys?.delete(key);
    if (keys?.size === 0) index.keys.delete(value);
  }
  for (const value of after === undefined ? [] : index.of(after)) {
    index.found.delete(value);
    const keys = index.keys.get(value);
    if (keys === undefined) index.keys.set(value, new Set([key]));
    else keys.add(key);
  }
}

function valueOf<T>(entry: Entry<T> | undefined): T | undefined {
  return entry?.parsed.ok ? entry.parsed.value : undefined;
}

function keyOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ""}/${name}`;
}
