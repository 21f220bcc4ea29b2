/**
 * A document's `spec.service` says how instances are spoken to. Those that live were made for what it said then: asked at another path each of them would fail
 * its check, and all at once would be given up. So it holds for a pool as long as instances made for it live.
 */
import { isLeaving } from "../model/phase.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { type BlueprintSnapshot, clusterOf, type MadeCluster } from "../model/pool.ts";
import type { PoolRows, Store } from "../store/port.ts";
import { hashOf, type PoolEntry } from "./pool-informer.ts";

type Service = BlueprintSnapshot["service"];

export class FixedServices {
  readonly #store: Pick<Store, "getBlueprint">;
  /** By pool and hash: of the blueprints that those were made from which live. */
  readonly #known = new Map<string, ReadonlyMap<string, Service | undefined>>();

  constructor(store: Pick<Store, "getBlueprint">) {
    this.#store = store;
  }

  /** The entry as it holds now; the same one when the document says nothing else. */
  async holdOn(entry: PoolEntry, { instances }: Pick<PoolRows, "instances">): Promise<PoolEntry> {
    const living = instances.filter(({ phase }) => !isLeaving(phase) || phase === "draining");
    const oldest = living[0];
    const others = new Set(living.map(({ blueprintHash }) => blueprintHash).filter((hash) => hash !== entry.blueprintHash));
    if (!oldest || others.size === 0) return entry;
    const { spec } = entry.document;
    // Only of clusters more is asked than how the oldest is spoken to.
    const hashes = spec.service.protocol === "trino/v1" ? others : new Set([oldest.blueprintHash]);
    const known = await this.#servicesOf(entry, hashes);
    const made = known.get(oldest.blueprintHash);
    if (!made || (made.protocol === spec.service.protocol && made.healthPath === spec.service.healthPath)) return entry;
    if (made.trino !== undefined && others.size > hashes.size) await this.#servicesOf(entry, others);
    const held = { ...spec, service: { ...spec.service, protocol: made.protocol, healthPath: made.healthPath } };
    return { ...entry, document: { ...entry.document, spec: held }, blueprintHash: hashOf(held) };
  }

  /** Of a cluster as it was made; undefined of anything else. For what `holdOn` was asked about last. */
  clusterOf({ key, document, blueprintHash }: PoolEntry, record: Pick<InstanceRecord, "blueprintHash">): MadeCluster | undefined {
    const made = record.blueprintHash === blueprintHash ? undefined : this.#known.get(key)?.get(record.blueprintHash);
    return made === undefined ? clusterOf(document.spec) : made.trino;
  }

  forget(pool: string): void {
    this.#known.delete(pool);
  }

  async #servicesOf({ key, blueprintHash }: PoolEntry, hashes: ReadonlySet<string>): Promise<ReadonlyMap<string, Service | undefined>> {
    const known = this.#known.get(key);
    const services = new Map<string, Service | undefined>();
    for (const hash of hashes) {
      if (hash === blueprintHash) continue;
      services.set(hash, known?.has(hash) === true ? known.get(hash) : await this.#read(hash));
    }
    this.#known.set(key, services);
    return services;
  }

  async #read(hash: string): Promise<Service | undefined> {
    return ((await this.#store.getBlueprint(hash)) as Partial<BlueprintSnapshot> | undefined)?.service;
  }
}
