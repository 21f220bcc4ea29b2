/**
 * A document's `spec.service` says how instances are spoken to. Those that live were made for what it said then: asked at another path each of them would fail
 * its check, and all at once would be given up. So it holds for a pool as long as instances made for it live.
 */
import { isLeaving } from "../model/phase.ts";
import type { BlueprintSnapshot } from "../model/pool.ts";
import type { PoolRows, Store } from "../store/port.ts";
import { hashOf, type PoolEntry } from "./pool-informer.ts";

type Service = BlueprintSnapshot["service"];

export class FixedServices {
  readonly #store: Pick<Store, "getBlueprint">;
  /** By pool: of the blueprint that was asked for last. */
  readonly #known = new Map<string, { readonly hash: string; readonly service: Service | undefined }>();

  constructor(store: Pick<Store, "getBlueprint">) {
    this.#store = store;
  }

  /** The entry as it holds now; the same one when the document says nothing else. */
  async holdOn(entry: PoolEntry, { instances }: Pick<PoolRows, "instances">): Promise<PoolEntry> {
    const oldest = instances.find(({ phase }) => !isLeaving(phase) || phase === "draining");
    if (!oldest || oldest.blueprintHash === entry.blueprintHash) return entry;
    const made = await this.#serviceOf(entry.key, oldest.blueprintHash);
    const { spec } = entry.document;
    if (!made || (made.protocol === spec.service.protocol && made.healthPath === spec.service.healthPath)) return entry;
    const held = { ...spec, service: { ...spec.service, ...made } };
    return { ...entry, document: { ...entry.document, spec: held }, blueprintHash: hashOf(held) };
  }

  forget(pool: string): void {
    this.#known.delete(pool);
  }

  async #serviceOf(pool: string, hash: string): Promise<Service | undefined> {
    const known = this.#known.get(pool);
    if (known?.hash === hash) return known.service;
    const body = (await this.#store.getBlueprint(hash)) as Partial<BlueprintSnapshot> | undefined;
    this.#known.set(pool, { hash, service: body?.service });
    return body?.service;
  }
}
