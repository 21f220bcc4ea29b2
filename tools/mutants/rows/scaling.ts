/** Faults of pools whose size follows their demand. */
import { type Mutant, workers } from "../mutant.ts";

export const SCALING: readonly Mutant[] = [
  {
    name: "stuck-pool-grows",
    rule: "I23: no scale-up while the stuck share is above the threshold",
    file: "src/plan/scaling/saturation.ts",
    find: "if (busy === 0 || slots.stuck / busy <= policy.stuck.share) return undefined;",
    replace: "if (busy === 0 || slots.stuck / busy <= 1) return undefined;",
    shownBy: workers,
  },
  {
    name: "another-flow-is-believed",
    rule: "K1, K11: a signal of another flow changes nothing",
    file: "src/demand/validity.ts",
    find: "if (expected === null || found === expected) return null;",
    replace: "if (expected === null || found !== undefined) return null;",
    shownBy: workers,
  },
  {
    name: "limit-is-not-kept",
    rule: "I21: the size that is decided stays within its bounds",
    file: "src/plan/scaling/decide-scale.ts",
    find: "  return Math.max(floor, Math.min(limit, size));",
    replace: "  return Math.max(floor, size);",
    shownBy: workers,
  },
  {
    name: "busy-worker-is-sealed",
    rule: "I14: nothing is deleted while it still has work",
    file: "src/plan/worker.ts",
    find: "if (ownObligations === 0 && isWithout) return",
    replace: "if (ownObligations !== null) return",
    shownBy: workers,
  },
  {
    name: "size-is-forgotten",
    rule: "I20: each size begins where the one before it ended",
    file: "src/plan/scaling/size-of.ts",
    find: "return spec.scale === undefined ? spec.size.desired : (scale?.desired ?? spec.size.desired);",
    replace: "return scale === null || scale.desired < spec.size.max ? spec.size.desired : scale.desired;",
    shownBy: workers,
  },
  {
    name: "slot-is-never-free-again",
    rule: "I22: slots never leak",
    file: "src/sdk/slots.ts",
    find: "        this.#busy.delete(index);\n",
    replace: "",
    shownBy: workers,
  },
];
