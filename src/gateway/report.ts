/** What a replica tells the controller. Its `applied` being ahead of the store is how a rewound store is seen. */
import type { GatewayReport, MemberReport } from "../model/membership.ts";
import type { Ledger } from "./ledger.ts";
import type { Membership, MemberState } from "./membership.ts";

export function reportOf(replica: string, sequence: number, membership: Membership, ledger: Ledger, leaving = false): GatewayReport {
  const ended = [...membership.ended()].flatMap(({ route, pool, generation }) =>
    pool === null ? [] : [{ route, pool, applied: generation }],
  );
  return {
    replica,
    sequence,
    ...(leaving ? { leaving } : {}),
    routes: [...membership.routes.values()].map((route) => ({
      route: route.route,
      ...(route.pool === null ? {} : { pool: route.pool }),
      applied: route.generation,
      members: route.members.map(memberReport),
      counts: { ...ledger.of(route.route).counts },
    })),
    ...(ended.length === 0 ? {} : { ended }),
  };
}

/** Of most members a report says what the one before said. */
const last = new WeakMap<MemberState, MemberReport>();

function memberReport(member: MemberState): MemberReport {
  const { instance, incarnation, load, health, healthReason } = member;
  const { requests, upgraded, sessions } = load;
  const known = last.get(member);
  if (
    known !== undefined &&
    known.requests === requests &&
    known.sessions === sessions &&
    known.upgraded === upgraded &&
    known.health === health &&
    known.healthReason === healthReason
  )
    return known;
  const report = { instance, incarnation, requests, upgraded, sessions, health, healthReason };
  last.set(member, report);
  return report;
}
