/**
 * What outlived its instance: a leader that was paused in the middle of a create, and overtaken meanwhile, makes objects for an instance that its successor
 * has given up and deleted long since. Looked for now and then: the look is over all objects.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import { strangersOf, type StrangersInput } from "../observe/strangers.ts";
import type { PoolRows, Store } from "../store/port.ts";

const LOOK_EVERY_MS = 30_000;
const NONE: ReadonlySet<string> = new Set();

export interface LeftoversParts {
  readonly store: Pick<Store, "findInstance">;
  readonly world: StrangersInput["world"];
  readonly clock: Clock;
}

export class Leftovers {
  readonly #parts: LeftoversParts;
  readonly #dueAt = new Map<string, Instant>();
  readonly #found = new Map<string, ReadonlySet<string>>();

  constructor(parts: LeftoversParts) {
    this.#parts = parts;
  }

  /** Instances of the pool whose objects are there although the store says that they were deleted; as of the last look. */
  of(pool: string): ReadonlySet<string> {
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
    const outlived = new Set<string>();
    for (const { instance } of strangersOf({ world, namespace, name, known }))
      if ((await store.findInstance(pool, instance))?.phase === "deleted") outlived.add(instance);
    this.#found.set(pool, outlived);
  }

  forget(pool: string): void {
    this.#dueAt.delete(pool);
    this.#found.delete(pool);
  }
}
