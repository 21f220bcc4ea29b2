/** Faults of the evacuation schedule, shown by storms. */
import { type Mutant, seeds, storm } from "../mutant.ts";

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
  {
    name: "standby-is-not-held-back",
    rule: "I13: standby is held back for higher classes that are expected to follow",
    file: "src/plan/evacuation/held-back.ts",
    find: "  if (higher.length === 0) return;",
    replace: "  if (higher.length >= 0) return;",
    shownBy: storm("expected"),
  },
  {
    name: "nobody-is-expected",
    rule: "I13: after some of a class had to go the others are expected to follow",
    file: "src/plan/evacuation/exposure.ts",
    find: "return Math.abs(now - this.#last) < EXPOSED_FOR_MS ? this.#since : null;",
    replace: "return now < 0 ? this.#since : null;",
    shownBy: storm("expected"),
  },
  {
    name: "who-cannot-go-holds-a-place",
    rule: "S12: who is kept back by its failed candidates holds no place",
    file: "src/plan/evacuation/evacuees.ts",
    find: "      if (!candidateGate(pool, idOf(instance), now).open) return false;\n",
    replace: "      void candidateGate;\n",
    shownBy: seeds("spot_notice", "node_death", "boot_failure"),
  },
];
