/**
 * Whether the store was rewound: restored from an old backup, or failed over to a copy that was behind. Then it gives numbers a second time that others have
 * seen already, and nothing may rest on it until its era is raised. Three kinds of witnesses know more than it does:
 *
 *   a gateway replica   the generation that it has applied, in its report
 *   an instance         the writer epoch that it was given, in its renewal
 *   this process        what it has read of the store itself
 */
import { compareEpochs, epochParts, type Epoch } from "../kernel/epoch.ts";
import type { Phase } from "../model/phase.ts";
import type { GatewayView } from "../observe/snapshot.ts";
import type { Rewound } from "../plan/snapshot.ts";
import type { PoolRows } from "../store/port.ts";

/** What of the rows is compared. */
export type SeenRows = Pick<PoolRows, "pool" | "authorityEpoch" | "generation" | "instances" | "workloads">;

interface Memory {
  authorityEpoch: Epoch;
  generation: Epoch;
  readonly minAccepted: Map<number, Epoch>;
  /** All instances that were there. */
  phases: ReadonlyMap<string, Phase>;
}

interface Claim {
  readonly instance: string;
  readonly epoch: Epoch;
}

export class Witnesses {
  readonly #memory = new Map<string, Memory>();
  /** By pool: the highest epoch with which a holder came that the store had not given. */
  readonly #claims = new Map<string, Claim>();

  /** A holder renewed under an epoch that the store does not know. */
  sawWriter(pool: string, instance: string, epoch: Epoch): void {
    const known = this.#claims.get(pool);
    if (known === undefined || compareEpochs(epoch, known.epoch) > 0) this.#claims.set(pool, { instance, epoch });
  }

  /** Null when nobody knows more than these rows; then they are remembered. `route`: the one that is this pool's alone; null while another has it. */
  judge(rows: SeenRows, route: string | null, gateways: readonly GatewayView[], isOwner = true): Rewound | null {
    const found = this.#byMemory(rows) ?? this.#byGateway(rows, route, gateways) ?? this.#byWriter(rows);
    if (found === null) this.#remember(rows, isOwner);
    return found;
  }

  /** The highest era that any witness has seen, of all pools. */
  highestEra(gateways: readonly GatewayView[]): number {
    const seen = [
      ...[...this.#memory.values()].flatMap(({ authorityEpoch, generation, minAccepted }) => [
        authorityEpoch,
        generation,
        ...minAccepted.values(),
      ]),
      ...[...this.#claims.values()].map(({ epoch }) => epoch),
      ...gateways.flatMap(({ report }) => [...(report?.routes ?? []), ...(report?.ended ?? [])].map(({ applied }) => applied)),
    ];
    return seen.reduce((highest, epoch) => Math.max(highest, epochParts(epoch).era), 0);
  }

  forget(pool: string): void {
    this.#memory.delete(pool);
    this.#claims.delete(pool);
  }

  /**
   * A route's name may have been another pool's: a replica is a witness of the pool whose generation it has applied, also when nobody of it is left there, or the
   * route itself is gone, as while the pool is drained and made again. One that was not told whose it is goes by the instances that it holds.
   */
  #byGateway({ pool, generation, instances }: SeenRows, route: string | null, gateways: readonly GatewayView[]): Rewound | null {
    for (const { replica, report } of gateways) {
      const last = report?.ended?.find((each) => each.pool === pool);
      if (last !== undefined && compareEpochs(last.applied, generation) > 0)
        return { witness: `gateway ${replica}`, what: "generation", seen: last.applied, stored: generation };
      if (route === null) continue;
      const seen = report?.routes.find((each) => each.route === route);
      if (seen === undefined || compareEpochs(seen.applied, generation) <= 0) continue;
      const isOurs =
        seen.pool !== undefined
          ? seen.pool === pool
          : seen.members.some(({ instance }) => isNamedAfter(pool, instance) || instances.some(({ id }) => id === instance));
      if (isOurs) return { witness: `gateway ${replica}`, what: "generation", seen: seen.applied, stored: generation };
    }
    return null;
  }

  /** What the store had not given stays ahead of it until the era is raised, whatever it gives meanwhile: another process would have the same epoch. */
  #byWriter({ pool, authorityEpoch, workloads }: SeenRows): Rewound | null {
    const claim = this.#claims.get(pool);
    if (claim === undefined) return null;
    if (epochParts(authorityEpoch).era > epochParts(claim.epoch).era) {
      this.#claims.delete(pool);
      return null;
    }
    const stored = workloads.map(({ minAcceptedEpoch }) => minAcceptedEpoch).reduce<Epoch | null>(highestOf, null);
    return { witness: `instance ${claim.instance}`, what: "writer epoch", seen: claim.epoch, stored };
  }

  #byMemory(rows: SeenRows): Rewound | null {
    const { pool, authorityEpoch, generation, workloads } = rows;
    const memory = this.#memory.get(pool);
    if (memory === undefined) return null;
    const witness = "this controller";
    if (compareEpochs(memory.authorityEpoch, authorityEpoch) > 0)
      return { witness, what: "authority epoch", seen: memory.authorityEpoch, stored: authorityEpoch };
    if (compareEpochs(memory.generation, generation) > 0)
      return { witness, what: "generation", seen: memory.generation, stored: generation };
    for (const [ordinal, seen] of memory.minAccepted) {
      const stored = workloads.find((each) => each.ordinal === ordinal)?.minAcceptedEpoch ?? null;
      // A backup from before the place had its first writer: under a later era its next one has a later epoch.
      if (stored === null && epochParts(authorityEpoch).era > epochParts(seen).era) continue;
      if (stored === null || compareEpochs(seen, stored) > 0) return { witness, what: "writer epoch", seen, stored };
    }
    const lost = goneWithoutUs(memory, rows);
    if (lost !== undefined) return { witness, what: "instance", seen: lost, stored: null };
    return null;
  }

  #remember({ pool, authorityEpoch, generation, workloads, instances }: SeenRows, isOwner: boolean): void {
    // What another owner has, and deletes, is not missed.
    const phases = new Map(isOwner ? instances.map(({ id, phase }) => [id, phase]) : []);
    const memory = this.#memory.get(pool) ?? { authorityEpoch, generation, minAccepted: new Map<number, Epoch>(), phases };
    memory.phases = phases;
    memory.authorityEpoch = authorityEpoch;
    memory.generation = generation;
    memory.minAccepted.clear();
    for (const { ordinal, minAcceptedEpoch } of workloads) memory.minAccepted.set(ordinal, minAcceptedEpoch);
    this.#memory.set(pool, memory);
  }
}

/** Also one that the store does not know: an id is the pool's name and one word more, which no pool whose name goes on has. */
function isNamedAfter(pool: string, instance: string): boolean {
  return poolNameIn(instance) === pool.slice(pool.indexOf("/") + 1);
}

/** Of a pool, without its namespace: what the id of each of its instances begins with. */
export function poolNameIn(instance: string): string {
  return instance.slice(0, instance.lastIndexOf("-"));
}

/** Under one authority only its owner deletes an instance, and only one that it had seen retired. A candidate raises no number when it is made. */
function goneWithoutUs({ authorityEpoch, phases }: Memory, rows: SeenRows): string | undefined {
  if (authorityEpoch !== rows.authorityEpoch) return undefined;
  const there = new Set(rows.instances.map(({ id }) => id));
  return [...phases].find(([id, phase]) => phase !== "retired" && !there.has(id))?.[0];
}

function highestOf(highest: Epoch | null, next: Epoch): Epoch {
  return highest === null || compareEpochs(next, highest) > 0 ? next : highest;
}
