/** How large a storm's fleet is: as many processes as two for each node that goes, on a fifth more nodes, in three classes with their standby. */
import type { Priority } from "../../../model/membership.ts";

export interface StormPool {
  readonly name: string;
  readonly priority: Priority;
  readonly desired: number;
  readonly standby: number;
}

export interface StormScale {
  /** How many nodes go. */
  readonly going: number;
  readonly nodes: number;
  readonly pools: readonly StormPool[];
}

/** 20 nodes that go: 24 nodes and 40 processes, six of them standby. */
export function scaleOf(going: number): StormScale {
  const processes = 2 * going;
  const critical = { name: "critical", priority: "critical", desired: atLeastOne(0.4 * going), standby: atLeastOne(0.15 * going) } as const;
  const standard = { name: "standard", priority: "standard", desired: atLeastOne(0.6 * going), standby: Math.round(0.1 * going) } as const;
  const left = processes - critical.desired - critical.standby - standard.desired - standard.standby;
  const standby = left > 1 ? Math.round(0.05 * going) : 0;
  const batch = { name: "batch", priority: "batch", desired: Math.max(1, left - standby), standby } as const;
  return { going, nodes: Math.ceil(going * 1.2), pools: [critical, standard, batch] };
}

function atLeastOne(share: number): number {
  return Math.max(1, Math.round(share));
}
