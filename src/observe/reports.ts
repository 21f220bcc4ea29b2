/** The gateways' last reports, by instance: built once for a look at a pool, so that each instance costs one look-up and not a search through all members. */
import { compareEpochs, type Epoch } from "../kernel/epoch.ts";
import type { GatewayReport, MemberReport } from "../model/membership.ts";

/** Of one replica that talks. */
interface ReplicaReport {
  readonly isKnown: boolean;
  /** What it has applied, by route. */
  readonly applied: ReadonlyMap<string, Epoch>;
  /** By instance; a replica may have one under several routes, and in several incarnations. */
  readonly members: ReadonlyMap<string, readonly { readonly route: string; readonly member: MemberReport }[]>;
}

export class Reports {
  readonly #replicas: readonly ReplicaReport[];

  /** Of the replicas that are not silent; null for one that has not reported since it registered. */
  constructor(reports: readonly (GatewayReport | null)[]) {
    this.#replicas = reports.map((report) => (report === null ? NO_REPORT : indexOf(report)));
  }

  /** What each replica says of this incarnation on a route; undefined where it says nothing. */
  of(route: string, instance: string, incarnation: number): readonly (MemberReport | undefined)[] {
    return this.#replicas.map(
      ({ members }) => members.get(instance)?.find((each) => each.route === route && each.member.incarnation === incarnation)?.member,
    );
  }

  /** What all of them hold of this incarnation, over all routes; null while one of them has not said. */
  obligationsOf(instance: string, incarnation: number): { readonly requests: number; readonly sessions: number } | null {
    let requests = 0;
    let sessions = 0;
    for (const { isKnown, members } of this.#replicas) {
      if (!isKnown) return null;
      for (const { member } of members.get(instance) ?? []) {
        if (member.incarnation !== incarnation) continue;
        requests += member.requests;
        sessions += member.sessions;
      }
    }
    return { requests, sessions };
  }

  /** Every replica has applied the generation on the instance's route, and on every former name under which it still has the instance. */
  haveApplied(route: string, instance: string, generation: Epoch): boolean {
    return this.#replicas.every(({ applied, members }) => {
      const isBehind = (name: string): boolean => {
        const at = applied.get(name);
        return at === undefined || compareEpochs(at, generation) < 0;
      };
      return !isBehind(route) && (members.get(instance) ?? []).every((each) => !isBehind(each.route));
    });
  }
}

const NO_REPORT: ReplicaReport = { isKnown: false, applied: new Map(), members: new Map() };

/** A report never changes; several looks, and several pools, may come between two of a replica. */
const indexes = new WeakMap<GatewayReport, ReplicaReport>();

function indexOf(report: GatewayReport): ReplicaReport {
  const known = indexes.get(report);
  if (known !== undefined) return known;
  const index = indexed(report);
  indexes.set(report, index);
  return index;
}

function indexed(report: GatewayReport): ReplicaReport {
  const applied = new Map<string, Epoch>();
  const members = new Map<string, { readonly route: string; readonly member: MemberReport }[]>();
  for (const route of report.routes) {
    if (!applied.has(route.route)) applied.set(route.route, route.applied);
    for (const member of route.members) {
      const known = members.get(member.instance);
      const entry = { route: route.route, member };
      if (known === undefined) members.set(member.instance, [entry]);
      else known.push(entry);
    }
  }
  return { isKnown: true, applied, members };
}
