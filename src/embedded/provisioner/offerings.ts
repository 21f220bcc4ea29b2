/**
 * What the cloud offers: a machine type in a zone as spot or on demand, each with a price of its own (spot first) and a capacity of its own. One that had no
 * capacity is left out for a while, as Karpenter does.
 */
import type { Clock } from "../../kernel/clock.ts";
import type { Capacity, ProvisionerOptions } from "./options.ts";

export const CAPACITY_TYPES = ["spot", "on-demand"] as const;
export type CapacityType = (typeof CAPACITY_TYPES)[number];

export interface Offering {
  readonly zone: string;
  readonly instanceType: string;
  readonly capacityType: CapacityType;
}

/** Absent parts mean any. */
export type OfferingFilter = { readonly [K in keyof Offering]?: Offering[K] | undefined };

export class Offerings {
  readonly #all: readonly Offering[];
  readonly #options: ProvisionerOptions;
  readonly #clock: Clock;
  readonly #limits = new Map<string, number>();
  /** On the monotonic clock. */
  readonly #outUntil = new Map<string, number>();

  constructor(options: ProvisionerOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    const capacityTypes = CAPACITY_TYPES.filter((type) => type === "spot" || options.maxOnDemand > 0);
    this.#all = capacityTypes.flatMap((capacityType) =>
      [options.instanceType, ...Object.keys(options.moreTypes)].flatMap((instanceType) =>
        options.zones.map((zone) => ({ zone, instanceType, capacityType })),
      ),
    );
  }

  /** The preferred first. */
  all(): readonly Offering[] {
    return this.#all;
  }

  available(): readonly Offering[] {
    const now = this.#clock.monotonic();
    return this.#all.filter((offering) => (this.#outUntil.get(keyOf(offering)) ?? 0) <= now);
  }

  /** Until one that is left out may be tried again; undefined when none is. */
  nextBackInMs(): number | undefined {
    const now = this.#clock.monotonic();
    const waits = [...this.#outUntil.values()].filter((until) => until > now).map((until) => until - now);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  leaveOut(offering: Offering): void {
    this.#outUntil.set(keyOf(offering), this.#clock.monotonic() + this.#options.unavailableForMs);
  }

  /** How many machines the cloud has of each offering that matches; null: as many as are wanted. Returns those that it concerns. */
  limit(filter: OfferingFilter, machines: number | null): readonly Offering[] {
    const concerned = this.#all.filter(
      ({ zone, instanceType, capacityType }) =>
        (filter.zone ?? zone) === zone &&
        (filter.instanceType ?? instanceType) === instanceType &&
        (filter.capacityType ?? capacityType) === capacityType,
    );
    for (const offering of concerned) {
      if (machines === null) this.#limits.delete(keyOf(offering));
      else this.#limits.set(keyOf(offering), machines);
      if (machines === null) this.#outUntil.delete(keyOf(offering));
    }
    return concerned;
  }

  limitOf(offering: Offering): number | null {
    return this.#limits.get(keyOf(offering)) ?? null;
  }

  capacityOf(instanceType: string): Capacity {
    return this.#options.moreTypes[instanceType] ?? this.#options.capacity;
  }
}

function keyOf({ zone, instanceType, capacityType }: Offering): string {
  return `${zone}/${instanceType}/${capacityType}`;
}
