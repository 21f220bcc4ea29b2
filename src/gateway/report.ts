/** What a replica tells the controller. Its `applied` being ahead of the store is how a rewound store is seen. */
import type { GatewayReport } from "../model/membership.ts";
import type { Ledger } from "./ledger.ts";
import type { Membership } from "./membership.ts";

export function reportOf(replica: string, sequence: number, membership: Membership, ledger: Ledger, leaving = false): GatewayReport {
  return {
    replica,
    sequence,
    ...(leaving ? { leaving } : {}),
    routes: [...membership.routes.values()].map((route) => ({
      route: route.route,
      ...(route.pool === null ? {} : { pool: route.pool }),
      applied: route.generation,
      members: route.members.map((member) => ({
        instance: member.instance,
        incarnation: member.incarnation,
        requests: member.load.requests,
        upgraded: member.load.upgraded,
        sessions: member.load.sessions,
        health: member.health,
        healthReason: member.healthReason,
      })),
      counts: { ...ledger.of(route.route).counts },
    })),
  };
}
