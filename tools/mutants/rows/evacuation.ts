/** Faults of the evacuation schedule, shown by storms. */
import { type Mutant, storm } from "../mutant.ts";

export const EVACUATION: readonly Mutant[] = [
  {
    name: "classes-inverted",
    rule: "I13: no lower class gets room while a higher one waits",
    file: "src/plan/evacuation/schedule.ts",
    find: "  for (const priority of PRIORITIES) {",
    replace: "  for (const priority of PRIORITIES.toReversed()) {",
    shownBy: storm("shared"),
  },
  {
    name: "bucket-ignored",
    rule: "I12: starts stay within the bucket",
    file: "src/plan/evacuation/lane.ts",
    find: "    this.#tokens = Math.max(0, this.#tokensAt(atMs) - 1);",
    replace: "    this.#tokens = Math.max(0, this.#tokensAt(atMs));",
    shownBy: storm("slow"),
  },
  {
    name: "places-given-twice",
    rule: "I12: reservations stay within the standby",
    file: "src/plan/evacuation/book.ts",
    find: "    option.place.free -= 1;",
    replace: "    option.place.free -= 0;",
    shownBy: storm("few"),
  },
];
