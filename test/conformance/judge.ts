/** What a comparison comes to, with the deviations that are allowed. */
import type { Recording } from "./case.ts";
import { type Difference, differences } from "./compare.ts";
import { DEVIATIONS } from "./deviations.ts";

export interface Judgement {
  readonly cases: number;
  readonly answers: number;
  readonly same: number;
  readonly explained: number;
  readonly unexplained: readonly Difference[];
  /** Deviations that no answer shows any more. */
  readonly stale: readonly string[];
}

export function judge(real: Recording, embedded: Recording): Judgement {
  const found = differences(real, embedded);
  const answers = Object.values(real).flat().length;
  const unexplained = found.filter(({ at }) => !DEVIATIONS.some((deviation) => deviation.at.test(at)));
  const stale = DEVIATIONS.filter((deviation) => !found.some(({ at }) => deviation.at.test(at))).map(({ reason }) => reason);
  const cases = Object.keys(real).length;
  return { cases, answers, same: answers - found.length, explained: found.length - unexplained.length, unexplained, stale };
}

export function summaryOf({ cases, answers, same, explained }: Judgement): string {
  return `${cases} cases, ${answers} answers of a real API server: ${same} the same from the embedded cluster, ${explained} differ for a listed reason`;
}
