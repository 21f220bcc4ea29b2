/** Whether a Pool's signal can be read here at all: found out before anything is asked, and said by the name of what is missing (K2). */
import { CONNECTION_OF, type SignalSpec } from "../model/demand.ts";
import { type Connection, isAt } from "./connections.ts";
import type { DemandAdapters } from "./registry.ts";
import type { DemandAdapter } from "./port.ts";

/** What is configured, by name. */
export interface Connections {
  /** Of several of this name the one at that site; else any of them, so that what is missing can be said of it. */
  find(name: string, site?: string): Connection | undefined;
  /** Calls back when one is another than before, or there is none any more; absent: they never change. */
  onChange?(listener: () => void): void;
}

export interface SignalUser {
  readonly namespace: string;
  readonly sites: readonly string[];
}

export type Availability =
  | { readonly adapter: DemandAdapter; readonly connection: Connection | undefined }
  /** One sentence that names it. */
  | { readonly missing: string };

export function findSignal(spec: SignalSpec, user: SignalUser, connections: Connections, adapters: DemandAdapters): Availability {
  const adapter = adapters[spec.kind] as DemandAdapter | undefined;
  if (adapter === undefined) return { missing: `this controller reads no signal of kind ${spec.kind}` };
  const family = CONNECTION_OF[spec.kind];
  if (family === null || !("connection" in spec)) return { adapter, connection: undefined };
  const { connection: name } = spec;
  // Where it is read from differs by site; what waits is the same for all: the first site is asked.
  const connection = connections.find(name, user.sites[0]);
  if (connection === undefined)
    return { missing: `no connection ${name} is configured (relevo controller --connections): ${needOf(adapter)}` };
  if (connection.kind !== family)
    return { missing: `connection ${name} is of kind ${connection.kind}, and a ${spec.kind} signal needs ${family}` };
  const { namespaces } = connection;
  if (namespaces !== undefined && !namespaces.includes(user.namespace))
    return { missing: `connection ${name} is not for namespace ${user.namespace}` };
  const without = user.sites.filter((site) => !isAt(connections.find(name, site) ?? connection, site));
  if (without.length > 0) return { missing: `connection ${name} (${needOf(adapter)}) does not exist at site ${without.join(", ")}` };
  return { adapter, connection };
}

function needOf({ needs }: DemandAdapter): string {
  return needs.infrastructure;
}
