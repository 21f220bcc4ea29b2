/** Who loses its machine, when, and what is told of it: drawn before the run begins, the same for every policy. */
import type { Random } from "../../kernel/random.ts";
import { chance } from "../seeded.ts";
import { uniform } from "./draws.ts";
import type { Fleet, FleetClass } from "./fleet.ts";

export interface FleetMember {
  readonly id: string;
  readonly ordinal: number;
  readonly of: FleetClass;
  readonly zone: string;
  /** Since its last checkpoint, at the beginning of the run. */
  readonly checkpointAgeMs: number;
}

/** What happens to one machine; times in ms from the beginning of the run. */
export interface Doom {
  readonly member: FleetMember;
  /** When the cloud decides. */
  readonly decidedAt: number;
  /** When the machine goes. */
  readonly lostAt: number;
  /** Each arrival of a notice, first to last; empty when none arrives. */
  readonly noticesAt: readonly number[];
  /** How long it goes on, cut off, after it is lost to everybody; 0: it ends. */
  readonly lingersMs: number;
}

export function membersOf(fleet: Fleet, random: Random): readonly FleetMember[] {
  return fleet.classes.flatMap((of) =>
    Array.from({ length: of.count }, (_, ordinal) => ({
      id: `${of.name}-${ordinal}`,
      ordinal,
      of,
      zone: of.runsOn.zones[ordinal % of.runsOn.zones.length] ?? "",
      checkpointAgeMs: random.next() * of.state.checkpointEvery,
    })),
  );
}

/** In the order in which the cloud decides. */
export function drawDooms(fleet: Fleet, members: readonly FleetMember[], random: Random): readonly Doom[] {
  const { waves } = fleet.notices;
  const leads = new Map(fleet.sites.map(({ name, noticeLead }) => [name, noticeLead]));
  const shuffled = members.map((member) => ({ member, key: random.next() })).toSorted((a, b) => a.key - b.key);
  const left = new Set(shuffled.map(({ member }) => member));
  const total = waves.reduce((sum, { share }) => sum + share, 0);
  const dooms: Doom[] = [];
  for (const [index, wave] of waves.entries()) {
    const isLast = index === waves.length - 1;
    const wanted = isLast ? left.size : Math.round((members.length * wave.share) / total);
    // Those of the wave's zones first: a zone or a type of machine is taken back as a whole.
    const isEligible = ({ zone }: FleetMember): boolean => wave.zones === undefined || wave.zones.includes(zone);
    const eligible = [...left].filter(isEligible);
    const others = [...left].filter((member) => !isEligible(member));
    for (const member of [...eligible, ...others].slice(0, wanted)) {
      left.delete(member);
      const decidedAt = wave.at + random.next() * wave.over;
      dooms.push(doomOf(fleet, member, decidedAt, leads.get(member.of.runsOn.site) ?? 0, random));
    }
  }
  return dooms.toSorted((a, b) => a.decidedAt - b.decidedAt || (a.member.id < b.member.id ? -1 : 1));
}

function doomOf({ notices }: Fleet, member: FleetMember, decidedAt: number, leadMs: number, random: Random): Doom {
  const { duplicates, late, lost, lingering } = notices;
  const isLost = chance(random, lost);
  const delayMs = late !== undefined && chance(random, late.share) ? random.next() * late.by : uniform(random, 100, 1_000);
  const first = decidedAt + delayMs;
  const copies =
    duplicates !== undefined && chance(random, duplicates.share)
      ? Array.from({ length: duplicates.copies }, () => first + random.next() * duplicates.within)
      : [];
  return {
    member,
    decidedAt,
    lostAt: decidedAt + leadMs,
    noticesAt: isLost ? [] : [first, ...copies.toSorted((a, b) => a - b)],
    lingersMs: lingering !== undefined && chance(random, lingering.share) ? lingering.for : 0,
  };
}
