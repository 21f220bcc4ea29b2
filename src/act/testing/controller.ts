/** The least controller that uses the executor as it is meant to be used. */
import { createExecutor } from "../executor.ts";
import { type Fault, type Fuse, faulty, fused, fusedClock } from "./fuse.ts";
import type { Decide } from "./scenarios.ts";
import { INSTANCE, POOL, type World } from "./world.ts";

const NO_LOG = { info: () => {}, warn: () => {}, error: () => {} };

/** What happens to the executor's calls. */
export interface Faults {
  readonly store: Fault;
  readonly kube: Fault;
  readonly driver: Fault;
}

const NO_FAULTS: Faults = { store: () => undefined, kube: () => undefined, driver: () => undefined };

/** One controller process: takes the pool over, goes on with what is open, decides what its scenario wants, and again after each step. */
export async function runController(world: World, fuse: Fuse, decide: Decide, faults: Faults = NO_FAULTS): Promise<void> {
  const store = fused(world.store, fuse);
  const clock = fusedClock(world.clock, fuse);
  let pass = (): void => {};
  const executor = createExecutor({
    store: faulty(store, faults.store),
    kube: faulty(fused(world.kube, fuse), faults.kube),
    driver: faulty(fused(world.instances, fuse), faults.driver),
    clock,
    random: { next: () => 0.5 },
    log: NO_LOG,
    onSettled: () => pass(),
  });
  const authority = await store.claim(POOL, "controller", clock.now());
  pass = () => {
    void store.readPool(POOL).then((rows) => {
      executor.resume(authority, rows?.openSteps ?? []);
      const draft = decide(rows?.instances.find(({ id }) => id === INSTANCE));
      if (draft !== undefined && rows?.openSteps.length === 0) void executor.start(authority, draft);
    });
  };
  pass();
}
