/** What every controller holds: the API, caches that reflect this process's own writes at once, time, chance and a place to log. */
import {
  isNotFound,
  type DeleteOptions,
  type KubeApi,
  type KubeObject,
  type KubeObjectDraft,
  type ObjectRef,
  type ResourceType,
} from "../../kube/api.ts";
import { PODS } from "../../kube/resources.ts";
import { formatInstant, type Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Random } from "../../kernel/random.ts";
import { Informer } from "./informer.ts";
import type { ClusterLog } from "./log.ts";
import { keyOf } from "./views.ts";

export interface AccessOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly log: ClusterLog;
}

export class ClusterAccess {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly log: ClusterLog;
  readonly #informers = new Map<string, Informer>();
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(options: AccessOptions) {
    this.api = options.api;
    this.clock = options.clock;
    this.ids = options.ids;
    this.random = options.random;
    this.log = options.log;
  }

  /** Aborts when the cluster closes. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** The shared cache of a kind, started at its first use. */
  informer(type: ResourceType): Informer {
    const name = `${type.group}/${type.plural}`;
    const known = this.#informers.get(name);
    if (known !== undefined) return known;
    const informer = new Informer(type, this.api, this.clock, this.log);
    if (name === `${PODS.group}/${PODS.plural}`) {
      informer.addIndex("node", (pod) => nodeNameOf(pod));
      informer.addIndex("namespace", (pod) => [pod.metadata.namespace ?? ""]);
    }
    informer.addIndex("owner", (object) => (object.metadata.ownerReferences ?? []).map((owner) => owner.uid));
    this.#informers.set(name, informer);
    const run = informer.run(this.#stopping.signal).finally(() => this.#running.delete(run));
    this.#running.add(run);
    return informer;
  }

  get informers(): readonly Informer[] {
    return [...this.#informers.values()];
  }

  async whenSynced(): Promise<void> {
    await Promise.all(this.informers.map((informer) => informer.synced));
  }

  async create(type: ResourceType, object: KubeObjectDraft, namespace?: string): Promise<KubeObject> {
    const created = await this.api.create(type, object, { namespace });
    this.#cached(type)?.observe(created);
    return created;
  }

  async patch(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    const patched = await this.api.patch(ref, body);
    this.#cached(ref.type)?.observe(patched);
    return patched;
  }

  async patchStatus(ref: ObjectRef, body: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    const patched = await this.api.patchStatus(ref, body);
    this.#cached(ref.type)?.observe(patched);
    return patched;
  }

  /** Deletes the object with this UID; that it is gone already is a success. */
  async delete(ref: ObjectRef, uid: string, options: DeleteOptions = {}): Promise<void> {
    try {
      await this.api.delete(ref, { propagationPolicy: "Background", ...options, preconditions: { uid, ...options.preconditions } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    await this.refresh(ref, uid);
  }

  /** Reads one object into the cache; undefined when there is none with this UID. */
  async refresh(ref: ObjectRef, uid: string): Promise<KubeObject | undefined> {
    const key = ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`;
    try {
      const now = await this.api.get(ref);
      if (now.metadata.uid !== uid) this.#cached(ref.type)?.forget(key, uid);
      this.#cached(ref.type)?.observe(now);
      return now.metadata.uid === uid ? now : undefined;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#cached(ref.type)?.forget(key, uid);
      return undefined;
    }
  }

  /** RFC 3339 in whole seconds, as Kubernetes writes its times. */
  stamp(): string {
    return `${formatInstant(this.clock.now()).slice(0, 19)}Z`;
  }

  /** RFC 3339 with six fraction digits: what Leases demand. */
  microStamp(): string {
    return `${formatInstant(this.clock.now()).slice(0, 23)}000Z`;
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled([...this.#running]);
  }

  #cached(type: ResourceType): Informer | undefined {
    return this.#informers.get(`${type.group}/${type.plural}`);
  }
}

function nodeNameOf(pod: KubeObject): readonly string[] {
  const spec = pod["spec"] as { readonly nodeName?: string } | undefined;
  return spec?.nodeName === undefined || spec.nodeName === "" ? [] : [spec.nodeName];
}

/** Key of an object's controlling owner if that is of this kind. */
export function controllerKey(object: KubeObject, kind: string): string | undefined {
  const owner = object.metadata.ownerReferences?.find((reference) => reference.controller === true && reference.kind === kind);
  return owner === undefined ? undefined : keyOf({ metadata: { ...object.metadata, name: owner.name } });
}
