import type { ScalePolicy } from "../../src/model/scale.ts";
import { seededRandom } from "../../src/sim/seeded.ts";
import { hpa } from "./hpa.ts";
import { relevo } from "./policy.ts";
import { shapesOf } from "./shapes.ts";
import { type Figures, loadOf, run } from "./workers.ts";

interface Outcome {
  readonly overProvisioning: number;
  readonly timeAboveTarget: number;
  readonly meanWaitS: number;
  readonly instanceHours: number;
  readonly changes: number;
  /** The most changes of direction within one cool-down. */
  readonly mostTurns: number;
}

export interface Comparison {
  readonly shapes: readonly {
    readonly name: string;
    readonly relevo: Outcome;
    readonly hpa: Outcome;
    /** Looks at which the growth was held back as saturated: nothing is here. */
    readonly held: number;
  }[];
  /** Means over all shapes. */
  readonly relevo: Outcome;
  readonly hpa: Outcome;
  /** Shapes in which neither figure is worse than the reference's. */
  readonly notWorse: number;
  readonly problems: readonly string[];
}

export function compare(policy: ScalePolicy, seed: number, cooldownMs = policy.cooldown): Comparison {
  const random = seededRandom(seed, "scaling");
  const shapes = shapesOf(random).map((shape) => {
    const load = loadOf(shape, random);
    const asked = relevo(policy);
    const ours = run(load, asked.scaler);
    const theirs = run(load, hpa());
    return {
      name: shape.name,
      relevo: outcomeOf(ours, cooldownMs),
      hpa: outcomeOf(theirs, cooldownMs),
      held: asked.held(),
    };
  });
  const [mine, reference] = [meanOf(shapes.map(({ relevo }) => relevo)), meanOf(shapes.map(({ hpa }) => hpa))];
  const notWorse = shapes.filter(
    ({ relevo, hpa }) => relevo.overProvisioning <= hpa.overProvisioning && relevo.timeAboveTarget <= hpa.timeAboveTarget,
  ).length;
  return { shapes, relevo: mine, hpa: reference, notWorse, problems: [...worse(mine, reference), ...turns(shapes)] };
}

function worse(ours: Outcome, theirs: Outcome): readonly string[] {
  return (["overProvisioning", "timeAboveTarget"] as const)
    .filter((figure) => ours[figure] >= theirs[figure])
    .map((figure) => `${figure} is ${ours[figure].toFixed(3)}, the reference's ${theirs[figure].toFixed(3)}`);
}

function turns(shapes: Comparison["shapes"]): readonly string[] {
  return shapes
    .filter(({ relevo }) => relevo.mostTurns > 1)
    .map(({ name, relevo }) => `${name}: ${relevo.mostTurns} changes of direction within a cool-down`);
}

function outcomeOf({ changes, overProvisioning, timeAboveTarget, meanWaitS, instanceHours }: Figures, cooldownMs: number): Outcome {
  const figures = { overProvisioning, timeAboveTarget, meanWaitS, instanceHours };
  return { ...figures, changes: changes.length, mostTurns: mostTurns(changes, cooldownMs / 1_000) };
}

function mostTurns(changes: Figures["changes"], cooldownS: number): number {
  const signs = changes.map(({ at, from, to }) => ({ at, sign: Math.sign(to - from) }));
  const times = signs.filter(({ sign }, index) => index > 0 && signs[index - 1]?.sign !== sign).map(({ at }) => at);
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + cooldownS).length));
}

function meanOf(outcomes: readonly Outcome[]): Outcome {
  const mean = (figure: keyof Outcome): number => outcomes.reduce((sum, each) => sum + each[figure], 0) / outcomes.length;
  return {
    overProvisioning: mean("overProvisioning"),
    timeAboveTarget: mean("timeAboveTarget"),
    meanWaitS: mean("meanWaitS"),
    instanceHours: mean("instanceHours"),
    changes: mean("changes"),
    mostTurns: Math.max(...outcomes.map((each) => each.mostTurns)),
  };
}
