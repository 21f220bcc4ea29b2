/** Where an instance is and how it is spoken to, for whoever calls it. */
import type { MadeCluster, PoolSpec } from "../model/pool.ts";
import type { InstanceTarget, MemberTarget } from "./port.ts";

export interface Place {
  readonly host: string;
  readonly port: number;
}

/**
 * `spec` as it holds for those that live, `cluster` as this very one was made: what the document says by now of users and workers is about others. `members` are
 * the places of its workers, as far as they are known.
 */
export function targetOf(
  { service: { protocol, healthPath } }: Pick<PoolSpec, "service">,
  process: Place & { readonly bootId: string | null },
  cluster?: MadeCluster,
  members?: readonly Place[],
): InstanceTarget {
  const { host, port, bootId } = process;
  return {
    host,
    port,
    bootId,
    protocol,
    healthPath,
    ...(cluster === undefined ? {} : { trino: { ...cluster, ...(members === undefined ? {} : { members }) } }),
  };
}

/** One of its members: it listens where the lead does, on its own address. */
export function memberTargetOf({ service: { port } }: Pick<PoolSpec, "service">, host: string, cluster?: MadeCluster): MemberTarget {
  return { host, port, ...(cluster === undefined ? {} : { trino: cluster }) };
}
