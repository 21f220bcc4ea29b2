/** What operators do to pools while other things go wrong. */
import { isNotFound, type KubeObjectDraft } from "../../kube/api.ts";
import { POOLS } from "../../kube/resources.ts";
import type { ScenarioPool } from "../scenario.ts";
import type { World } from "../world.ts";
import type { Handlers } from "./injection.ts";

type PoolFault = "mode_off" | "resize" | "operator_drain" | "freeze" | "pool_recreated";

const LOOK_AGAIN_MS = 500;

export const POOL_FAULTS: Handlers<PoolFault> = {
  async mode_off({ forMs }, injection) {
    const pool = injection.nextPool();
    await patchPool(injection.world, pool, { disruption: { mode: "Off" } });
    injection.until(forMs, () => void patchPool(injection.world, pool, { disruption: { mode: pool.mode ?? "Act" } }));
    return true;
  },

  async resize({ by, forMs }, injection) {
    const pool = injection.nextPool();
    const { desired } = pool;
    const { floor, max } = injection.world.pool(pool.key)?.spec.size ?? { floor: 1, max: desired };
    await patchPool(injection.world, pool, { size: { desired: Math.min(max, Math.max(1, floor, desired + by)) } });
    injection.until(forMs, () => void patchPool(injection.world, pool, { size: { desired } }));
    return true;
  },

  async operator_drain({ pick }, { world }) {
    const serving = world.mirror.living().filter(({ phase }) => phase === "serving");
    const instance = serving[Math.floor(pick * serving.length)]?.id;
    if (instance === undefined) return false;
    await world.ownerOf(instance).call((controlPlane) => controlPlane.drain({ instance, by: "an operator", why: "a test" }));
    return true;
  },

  async freeze({ forMs }, injection) {
    const { controllers, clock } = injection.world;
    const pool = injection.nextPool();
    const until = clock.now() + forMs;
    await controllers.call((controlPlane) => controlPlane.freeze(pool.key, { until, why: "a test", by: "an operator" }));
    // The clock by which it ends may have been set since.
    injection.until(forMs, () => void unfreeze(injection.world, pool));
    return true;
  },

  /** Counted when it is there again. */
  async pool_recreated(_, injection) {
    const { world } = injection;
    const pool = injection.nextPool();
    const { namespace, name, key } = pool;
    await patchPool(world, pool, { deletion: "drain" });
    await world.cluster.api.delete({ type: POOLS, namespace, name });
    world.log.add(`pool ${key} is deleted`);
    createAgain(world, pool);
    return false;
  },
};

/** Waits until it is gone, however long its last drain takes. */
function createAgain(world: World, pool: ScenarioPool): void {
  const { namespace, name, key } = pool;
  world.clock.after(LOOK_AGAIN_MS, () => {
    if (world.cluster.store.find({ type: POOLS, namespace, name }) !== undefined) return createAgain(world, pool);
    const document = inModeAct(pool.document);
    void world.cluster.api.create(POOLS, document, { namespace }).then(() => {
      world.log.add(`pool ${key} is made again`);
      world.troubles.took("pool_recreated");
    });
  });
}

/** The faults may have stopped meanwhile. */
function inModeAct(document: KubeObjectDraft): KubeObjectDraft {
  const spec = document["spec"] as { readonly disruption?: object };
  return { ...document, spec: { ...spec, disruption: { ...spec.disruption, mode: "Act" } } };
}

async function unfreeze({ controllers, store }: World, { key }: ScenarioPool): Promise<void> {
  await controllers.call((controlPlane) => controlPlane.unfreeze(key, "an operator")).catch(() => store.setFreeze(key, null));
}

/** A pool that is being deleted, or gone, is left alone. */
export async function patchPool(world: World, { key, namespace, name }: ScenarioPool, spec: object): Promise<void> {
  try {
    await world.cluster.api.patch({ type: POOLS, namespace, name }, { spec });
    world.log.add(`pool ${key} ${JSON.stringify(spec)}`);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
