/**
 * Objects that create steps made and that belong to nobody: what outlived its instance, because a leader that was paused in the middle of a create, and
 * overtaken meanwhile, made it after its successor had given the instance up; and what the store does not know at all, because it was rewound and nobody saw
 * it. Looked for now and then: the look is over all objects.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import { strangersOf, type StrangersInput } from "../observe/strangers.ts";
import type { PoolRows, Store } from "../store/port.ts";

const LOOK_EVERY_MS = 30_000;
const NONE: ReadonlyMap<string, boolean> = new Map();

export interface LeftoversParts {
  readonly store: Pick<Store, "findInstance">;
  readonly world: StrangersInput["world"];
  readonly clock: Clock;
}

export class Leftovers {
  readonly #parts: LeftoversParts;
  readonly #dueAt = new Map<string, Instant>();
  readonly #found = new Map<string, ReadonlyMap<string, boolean>>();

  constructor(parts: LeftoversParts) {
    this.#parts = parts;
  }

  /** Instances of the pool that are not among its rows and whose objects are there, as of the last look; true: the store says that it was deleted, false: it knows nothing of it. */
  of(pool: string): ReadonlyMap<string, boolean> {
    return this.#found.get(pool) ?? NONE;
  }

  /** Does nothing while the last look is fresh. */
  async look({ pool, instances }: PoolRows): Promise<void> {
    const { store, world, clock } = this.#parts;
    const now = clock.now();
    if (now < (this.#dueAt.get(pool) ?? 0)) return;
    this.#dueAt.set(pool, now + LOOK_EVERY_MS);
    const [namespace = "", name = ""] = pool.split("/");
    const known = new Set(instances.map(({ id }) => id));
    const found = new Map<string, boolean>();
    for (const { instance } of strangersOf({ world, namespace, name, known })) {
      const phase = (await store.findInstance(pool, instance))?.phase;
      if (phase === undefined || phase === "deleted") found.set(instance, phase === "deleted");
    }
    this.#found.set(pool, found);
  }

  forget(pool: string): void {
    this.#dueAt.delete(pool);
    this.#found.delete(pool);
  }
}
