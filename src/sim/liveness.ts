/**
 * The liveness phase: nothing goes wrong any more, and all must become as it should be within a bound. A drain whose clients never end has no end of its own:
 * it must be said to be overdue, nothing may be killed for it, and a notice ends it.
 */
import type { Injector } from "./inject.ts";
import type { World } from "./world.ts";

const POLL_MS = 500;
/** After `drainFor`: until it must be said. */
const SAID_WITHIN_MS = 10_000;

export interface Convergence {
  /** Empty: all is as it should be. */
  readonly missing: readonly string[];
  /** Overdue drains that were not said to be so. */
  readonly unsaid: readonly string[];
}

/** Before any fault nothing can be overdue: `injector` is absent then. */
export async function converges(world: World, withinMs: number, injector?: Injector): Promise<Convergence> {
  const drains = new OverdueDrains(world, injector);
  let missing: readonly string[] = [];
  for (let afterMs = 0; afterMs <= withinMs; afterMs += POLL_MS) {
    await world.clock.advance(POLL_MS);
    missing = await world.whatIsMissing();
    if (missing.length === 0) break;
    await drains.look();
  }
  return { missing, unsaid: drains.unsaid };
}

class OverdueDrains {
  readonly unsaid: string[] = [];
  readonly #world: World;
  readonly #injector: Injector | undefined;
  readonly #since = new Map<string, number>();

  constructor(world: World, injector: Injector | undefined) {
    this.#world = world;
    this.#injector = injector;
  }

  async look(): Promise<void> {
    if (this.#injector === undefined) return;
    for (const { key } of this.#world.scenario.pools) await this.#lookAt(key, this.#injector);
  }

  async #lookAt(pool: string, injector: Injector): Promise<void> {
    const rows = await this.#world.rows(pool);
    const drainForMs = this.#world.pool(pool)?.spec.disruption.drainFor;
    if (rows === undefined || drainForMs === undefined) return;
    const now = this.#world.clock.monotonic();
    for (const { id, phase, incarnation, drainDeadline } of rows.instances) {
      if (phase !== "draining" || drainDeadline !== null || !this.#world.isHeld(id)) {
        this.#since.delete(id);
        continue;
      }
      const since = this.#since.get(id) ?? now;
      this.#since.set(id, since);
      if (now - since < drainForMs + SAID_WITHIN_MS) continue;
      this.#since.delete(id);
      const said = rows.reasons.find(({ subject }) => subject === id)?.reason.code ?? "nothing";
      if (said !== "drain_overdue") this.unsaid.push(`${id} drains for ever and what is said of it is: ${said}`);
      this.#world.log.add(`${id} is overdue: its node is interrupted`);
      injector.endDrains(new Set(incarnation.nodeName === null ? [] : [incarnation.nodeName]));
    }
  }
}
