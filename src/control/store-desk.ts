/** What an operator asks about the store itself: whether it was rewound, and to go on with it as it is. */
import type { Clock, Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Informer } from "../kube/informer.ts";
import type { RecoverStoreCommand, StoreState } from "../server/control-plane.ts";
import { LABELS } from "../model/marks.ts";
import type { World } from "../observe/world.ts";
import type { Store } from "../store/port.ts";
import type { Controller } from "./controller.ts";
import type { GatewayRegistry } from "./gateways.ts";
import type { Journal } from "./journal.ts";
import type { PoolEntry } from "./pool-informer.ts";
import type { Witnesses } from "./rewound.ts";

export interface StoreDeskParts {
  readonly store: Store;
  readonly controller: Controller;
  readonly gateways: GatewayRegistry;
  readonly witnesses: Witnesses;
  readonly pools: Informer<PoolEntry>;
  readonly journal: Journal;
  readonly world: Pick<World, "deployments" | "statefulSets">;
  readonly clock: Clock & { notBefore?(stamp: Instant): void };
}

export async function checkStore(parts: StoreDeskParts): Promise<StoreState> {
  const { store, controller, pools } = parts;
  const { era, recovered } = await store.readEra();
  const states = await Promise.all(
    pools.list().map(async ({ key }) => {
      const pass = await controller.planNow(key);
      return {
        pool: key,
        authorityEpoch: pass?.snapshot.authorityEpoch ?? null,
        generation: pass?.snapshot.generation ?? null,
        rewound: pass?.snapshot.rewound ?? null,
        strangers: pass?.snapshot.strangers.map(({ instance }) => instance) ?? [],
      };
    }),
  );
  return { era, recovered, pools: states };
}

/** Throws `store_not_rewound` when nobody has seen more than the store, unless it is forced: a recovery ends every writer lease. */
export async function recoverStore(parts: StoreDeskParts, { why, by, force }: RecoverStoreCommand): Promise<StoreState> {
  const { store, controller, gateways, witnesses, journal, clock } = parts;
  const before = await checkStore(parts);
  const rewound = before.pools.filter((pool) => pool.rewound !== null);
  if (rewound.length === 0 && !force)
    throw new RelevoError("store_not_rewound", "nobody has seen more than the store: it was not rewound as far as can be told", {
      class: "conflict",
      found: `era ${before.era}`,
      allowed: "a store that is behind a gateway replica, an instance or this controller",
      todo: "when you know that a backup was restored and no witness is left, say --force: every writer lease ends",
    });
  clock.notBefore?.(newestMade(parts.world));
  const at = clock.now();
  await gateways.registerAgain();
  const era = await store.recover({ above: witnesses.highestEra(gateways.views()), at, why, by });
  controller.recovered(era);
  for (const { pool } of before.pools)
    journal.tell({ at, kind: "pool", pool, subject: pool, code: "store_recovered", from: null, reason: null });
  return checkStore(parts);
}

/**
 * When the newest object of an instance was made, by the API server's clock. What is there now was made before the recovery, whatever our own clock says: one
 * that is behind would call it younger, and it would stay for ever.
 */
function newestMade({ deployments, statefulSets }: Pick<World, "deployments" | "statefulSets">): Instant {
  return [...deployments.list(), ...statefulSets.list()].reduce(
    (newest, { metadata }) => (metadata.labels[LABELS.instance] === undefined ? newest : Math.max(newest, metadata.creationTimestamp)),
    0,
  );
}

/** What changes a pool from outside of its passes is refused too. */
export function refuseRewound(controller: Controller, pool: string): void {
  const rewound = controller.rewoundBy(pool);
  if (rewound === null) return;
  throw new RelevoError("store_rewound", `pool ${pool} is held: ${rewound.witness} has seen more than the store, which was rewound`, {
    class: "conflict",
    found: `${rewound.what} ${rewound.stored ?? "none"}`,
    allowed: `${rewound.seen} or newer`,
    todo: "relevo store check, then relevo store recover --reason …",
  });
}
