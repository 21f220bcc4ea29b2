/** Where two recordings differ: one row for each answer. */
import { isDeepStrictEqual } from "node:util";
import type { Recording } from "./case.ts";

export interface Difference {
  /** `configmaps: a life #4`. */
  readonly at: string;
  readonly real: unknown;
  readonly embedded: unknown;
}

export function differences(real: Recording, embedded: Recording): readonly Difference[] {
  return Object.entries(real).flatMap(([name, answers]) =>
    Array.from({ length: Math.max(answers.length, embedded[name]?.length ?? 0) }, (_none, index) => ({
      at: `${name} #${index + 1}`,
      real: answers[index],
      embedded: embedded[name]?.[index],
    })).filter((each) => !isDeepStrictEqual(each.real, each.embedded)),
  );
}
