/**
 * The liveness phase: nothing goes wrong any more, and all must become as it should be within a bound. A drain whose clients never end has no end of its own:
 * it must be said to be overdue, nothing may be killed for it, and a notice ends it.
 */
import { RelevoError } from "../kernel/errors.ts";
import type { Injector } from "./inject.ts";
import type { World } from "./world.ts";

const POLL_MS = 500;
/** After `drainFor`: until it must be said. */
const SAID_WITHIN_MS = 10_000;
const RECOVER_EVERY_MS = 60_000;
const RECOVER_TAKES_MS = 100;

export interface Convergence {
  /** Empty: all is as it should be. */
  readonly missing: readonly string[];
  /** Overdue drains that were not said to be so. */
  readonly unsaid: readonly string[];
}

/** Before any fault nothing can be overdue: `injector` is absent then. */
export async function converges(world: World, withinMs: number, injector?: Injector): Promise<Convergence> {
  const drains = new OverdueDrains(world, injector);
  const operator = new Operator(world);
  let missing: readonly string[] = [];
  for (let afterMs = 0; afterMs <= withinMs; afterMs += POLL_MS) {
    await world.clock.advance(POLL_MS);
    missing = await world.whatIsMissing();
    if (missing.length === 0) break;
    await drains.look();
    if (injector !== undefined) await operator.look();
  }
  return { missing, unsaid: drains.unsaid };
}

/**
 * A store that was rewound behind everybody's back has left objects that it knows nothing of: the product tells of them and touches nothing, and its operator,
 * who knows that a backup was restored, recovers the store. Once more when the controller's clock was too far behind the objects' time.
 */
class Operator {
  readonly #world: World;
  #nextAt = 0;

  constructor(world: World) {
    this.#world = world;
  }

  async look(): Promise<void> {
    const now = this.#world.clock.monotonic();
    if (now < this.#nextAt || (this.#world.faultCounts.get("store_rewound") ?? 0) === 0) return;
    const told = await Promise.all(this.#world.scenario.pools.map(async ({ key }) => (await this.#world.rows(key))?.reasons ?? []));
    if (!told.flat().some(({ reason }) => reason.code === "stranger")) return;
    this.#nextAt = now + RECOVER_EVERY_MS;
    await this.#recover();
  }

  async #recover(): Promise<void> {
    const { controllers, log, clock } = this.#world;
    controllers
      .call((controlPlane) => controlPlane.recoverStore({ why: "an old backup was restored", by: "an operator", force: true }))
      .then(
        () => log.add("the store is recovered, by force"),
        (error: unknown) => {
          if (!(error instanceof RelevoError)) return this.#world.observe({ type: "unhandled", error: String(error) });
          log.add(`the store is not recovered: ${error.code}`);
        },
      );
    await clock.advance(RECOVER_TAKES_MS);
  }
}

/** A clock that was an hour ahead comes back by going half as fast (`SteadyClock`). */
const SLOWEST = 2;

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
      if (now - since < SLOWEST * drainForMs + SAID_WITHIN_MS) continue;
      this.#since.delete(id);
      const said = rows.reasons.find(({ subject }) => subject === id)?.reason.code ?? "nothing";
      if (said !== "drain_overdue") this.unsaid.push(`${id} drains for ever and what is said of it is: ${said}`);
      this.#world.log.add(`${id} is overdue: its node is interrupted`);
      injector.endDrains(new Set(incarnation.nodeName === null ? [] : [incarnation.nodeName]));
    }
  }
}
