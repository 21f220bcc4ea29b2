/** What may still be spent in this plan: places for candidates, room, serving instances that can be spared, slots for drains. */
import { occupiesCapacity } from "../model/phase.ts";
import { capacityLimit } from "../model/pool.ts";
import type { PoolSnapshot } from "./snapshot.ts";
import { isCondemned, isHeld, isStandby, isVoluntaryCandidate, servingOf } from "./view.ts";

export class Budget {
  #room: number;
  #standbyRoom: number;
  #surge: number;
  #spare: number;
  #draining: number;
  #shortage: number;

  private constructor(room: number, standbyRoom: number, surge: number, spare: number, draining: number, shortage: number) {
    this.#room = room;
    this.#standbyRoom = standbyRoom;
    this.#surge = surge;
    this.#spare = spare;
    this.#draining = draining;
    this.#shortage = shortage;
  }

  static of(pool: PoolSnapshot, desired: number): Budget {
    const { surge, draining } = pool.spec.disruption;
    const occupied = pool.instances.filter(({ record }) => occupiesCapacity(record.phase));
    const standby = occupied.filter(isStandby).length;
    const room = capacityLimit(pool.spec) - occupied.length;
    return new Budget(
      // Standby counts against its own number; one that was taken counts against the others' and may fill that up.
      Math.min(room, capacityLimit(pool.spec) - pool.spec.standby.count - (occupied.length - standby)),
      Math.min(room, pool.spec.standby.count - standby),
      surge - pool.instances.filter((instance) => isVoluntaryCandidate(pool, instance)).length,
      servingOf(pool).length - desired,
      draining - pool.instances.filter(({ record }) => record.phase === "draining" && record.drainLoss === "voluntary").length,
      desired - pool.instances.filter((instance) => isHeld(instance) && !isStandby(instance) && !isCondemned(instance)).length,
    );
  }

  takeRoom(): boolean {
    if (this.#room <= 0) return false;
    this.#room -= 1;
    return true;
  }

  takeStandbyRoom(): boolean {
    if (this.#standbyRoom <= 0) return false;
    this.#standbyRoom -= 1;
    return true;
  }

  hasSurge(): boolean {
    return this.#surge > 0;
  }

  takeSurge(): void {
    this.#surge -= 1;
  }

  /** Too few would stay if all condemned ones left, the replacements that are on their way included. */
  isShort(): boolean {
    return this.#shortage > 0;
  }

  takeShortage(): void {
    this.#shortage -= 1;
  }

  /** More serve than are desired (D6, I5). */
  hasSpare(): boolean {
    return this.#spare > 0;
  }

  /** How many more serve than are desired; below 0 when fewer do. */
  spare(): number {
    return this.#spare;
  }

  hasDrainSlot(): boolean {
    return this.#draining > 0;
  }

  /** For a voluntary drain of one that does not serve: nothing is taken from those that do. */
  takeDrainSlot(): void {
    this.#draining -= 1;
  }

  takeVoluntaryDrain(): void {
    this.#spare -= 1;
    this.#draining -= 1;
  }

  /** A drain that does not ask: what it takes away is no longer there to spare. */
  takeServing(): void {
    this.#spare -= 1;
  }
}
