/** Who gets a route's traffic, from the store's rows: the one place where phases become members. */
import type { Member, RouteMembership } from "../model/membership.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { type PoolDocument, routeOf, routePolicyOf } from "../model/pool.ts";
import { isRouted } from "../model/phase.ts";
import type { Workload } from "../model/writer.ts";
import type { PoolRows } from "../store/port.ts";

interface Kept {
  readonly document: PoolDocument;
  readonly workloads: PoolRows["workloads"];
  readonly generation: PoolRows["generation"];
  readonly membership: RouteMembership;
}

/** By the rows of the instances, which stay the same array until one of them is written; it holds for the same document, workloads and generation. */
const kept = new WeakMap<PoolRows["instances"], Kept>();

/** The same object as long as it is made from the same. */
export function membershipOf(document: PoolDocument, rows: PoolRows): RouteMembership {
  const { workloads, generation } = rows;
  const known = kept.get(rows.instances);
  if (known?.document === document && known.workloads === workloads && known.generation === generation) return known.membership;
  const membership = membersOf(document, rows);
  kept.set(rows.instances, { document, workloads, generation, membership });
  return membership;
}

function membersOf(document: PoolDocument, rows: PoolRows): RouteMembership {
  const workloads = new Map(rows.workloads.map((workload) => [workload.ordinal, workload]));
  return {
    route: routeOf(document),
    pool: rows.pool,
    generation: rows.generation,
    policy: routePolicyOf(document.spec),
    members: rows.instances
      .flatMap((record) => memberOf(record, workloads.get(record.ordinal)))
      .toSorted((a, b) => (a.instance < b.instance ? -1 : 1)),
  };
}

/** From the rows alone, which change together with the generation: the same generation never has two contents. */
function memberOf(record: InstanceRecord, workload: Workload | undefined): readonly Member[] {
  const { incarnation } = record;
  const state = stateOf(record, workload);
  if (!state || incarnation.host === null || incarnation.port === null || incarnation.number === 0) return [];
  return [
    {
      instance: record.id,
      incarnation: incarnation.number,
      bootId: incarnation.bootId,
      host: incarnation.host,
      port: incarnation.port,
      state,
      deadline: record.phase === "draining" ? record.drainDeadline : null,
      writer: workload === undefined ? null : { ordinal: workload.ordinal, minAccepted: workload.minAcceptedEpoch },
    },
  ];
}

/** Undefined: no member. Where a workload has had a writer, trust counts: what a suspect writer sends is its own until it is fenced. */
function stateOf(
  { id, phase, trust, drainLoss, incarnation }: InstanceRecord,
  workload: Workload | undefined,
): Member["state"] | undefined {
  if (phase !== "draining" && !isRouted(phase)) return undefined;
  if (workload !== undefined && trust === "fenced") return "fenced";
  // What is tied to a lost process is lost with it.
  if (phase === "draining") return drainLoss === "forced" ? "sealed" : "draining";
  const isWriter = workload?.holder?.instance === id && workload.holder.incarnation === incarnation.number;
  return isWriter && trust === "suspect" ? "suspect" : "serving";
}
