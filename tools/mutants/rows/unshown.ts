/**
 * Faults that some sixty seeds did not show: each is a hole to close, or something else keeps the rule too. `npm run mutants -- --unshown` runs them; one that
 * is caught goes to the others.
 */
import { type Mutant, seeds } from "../mutant.ts";

export const UNSHOWN: readonly Mutant[] = [
  {
    name: "pass-does-not-wait-for-records",
    rule: "I5: the same spare instance is not spent twice",
    file: "src/control/controller.ts",
    find: "    await this.#parts.executor.recorded(key);\n",
    replace: "",
    shownBy: seeds("node_drift", "operator_drain", "store_busy"),
  },
  {
    name: "lost-processes-are-never-found",
    rule: "I16: what is lost is replaced",
    file: "src/plan/evidence.ts",
    find: "  if (lost === null) {",
    replace: "  if (lost === null || lost.length > 0) {",
    shownBy: seeds("node_death", "node_frozen"),
  },
  {
    name: "spare-spent-twice",
    rule: "I5: the same spare instance is not spent twice",
    file: "src/plan/budget.ts",
    find: "  takeVoluntaryDrain(): void {\n    this.#spare -= 1;",
    replace: "  takeVoluntaryDrain(): void {\n    this.#spare -= 0;",
    shownBy: seeds("node_drift", "operator_drain"),
  },
  {
    name: "seal-without-confirmation",
    rule: "D5: a confirmed seal implies that no gateway replica holds anything",
    file: "src/plan/lifecycle.ts",
    find: "  if (behind.length > 0)\n    return draft.hold(",
    replace: "  if (behind.length > 99)\n    return draft.hold(",
    shownBy: seeds("node_drift"),
  },
  {
    name: "room-without-a-bound",
    rule: "I21: all that is not deleted is bounded",
    file: "src/plan/budget.ts",
    find: "    if (this.#room <= 0) return false;",
    replace: "    if (this.#room <= -99) return false;",
    shownBy: seeds("node_drift", "boot_failure", "spot_notice", "node_deletion"),
  },
  {
    name: "candidates-without-a-bound",
    rule: "I18: candidate failures per window are bounded",
    file: "src/plan/candidates.ts",
    find: "  if (recent.length > retries) {",
    replace: "  if (recent.length > retries * 99) {",
    shownBy: seeds("node_drift", "boot_failure", "foreign_cordon"),
  },
  {
    name: "cordon-on-an-incomplete-inventory",
    rule: "I6: a cordon implies a complete inventory",
    file: "src/plan/disruption.ts",
    find: '    if (pool.inventory.state === "incomplete") {',
    replace: '    if (pool.inventory.state === "incomplete" && pool.inventory.missing === "") {',
    shownBy: seeds("node_drift", "boot_failure", "capacity_exhausted"),
  },
  {
    name: "brake-ignored",
    rule: "the brake holds while the observer is suspected",
    file: "src/control/brake.ts",
    find: "  return suspect > watched.length * BRAKE_SHARE ? { suspect, total: watched.length } : null;",
    replace: "  return suspect > watched.length ? { suspect, total: watched.length } : null;",
    shownBy: seeds(),
  },
];
