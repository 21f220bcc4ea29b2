/** The size of each pool as it was decided last, for others who set it: of this replica's pools and of those of the others (K11). */
import { RelevoError } from "../kernel/errors.ts";
import type { Informer } from "../kube/informer.ts";
import { sizeOf } from "../plan/scaling/size-of.ts";
import type { Store } from "../store/port.ts";
import type { Controller } from "./controller.ts";
import type { PoolEntry } from "./pool-informer.ts";

export interface DecidedSizesParts {
  readonly store: Pick<Store, "readPool">;
  readonly controller: Pick<Controller, "lastPass">;
  readonly pools: Pick<Informer<PoolEntry>, "get" | "synced">;
}

export class DecidedSizes {
  readonly #parts: DecidedSizesParts;
  readonly #listeners = new Set<(pool: string) => void>();

  constructor(parts: DecidedSizesParts) {
    this.#parts = parts;
  }

  /** Undefined: there is no such Pool with `scale`. Null: nothing is known of it yet. Rejects while the store is away, or what it says is not to be believed. */
  async sizeOf(pool: string): Promise<number | null | undefined> {
    const { pools, store, controller } = this.#parts;
    const [namespace, name = ""] = pool.split("/");
    const entry = pools.get(namespace, name);
    if (entry === undefined) return pools.synced() ? undefined : null;
    const { spec } = entry.document;
    if (spec.scale === undefined || entry.isDeleting) return undefined;
    const pass = controller.lastPass(pool);
    if (pass?.snapshot.rewound) throw new RelevoError("store_rewound", `what the store says of pool ${pool} is of the past`);
    const scale = (await store.readPool(pool))?.scale ?? null;
    if (scale !== null || spec.target === undefined) return sizeOf({ spec, scale });
    // Before anything was decided it is to stay as it is.
    return pass?.snapshot.target?.object?.replicas ?? null;
  }

  onChange(listener: (pool: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(pool: string): void {
    for (const listener of this.#listeners) listener(pool);
  }
}
