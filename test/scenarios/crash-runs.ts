/** Crash cases on the production composition, and in what a run with a crash differs from the one without. */
import { composeController } from "../../src/cli/processes/controller.ts";
import { type CrashCase, crashAt, crashPointsOf, type EndState, rehearse, type Rehearsal } from "../../src/sim/crash-points.ts";

export function rehearsalOf(crashCase: CrashCase): Promise<Rehearsal> {
  return rehearse(crashCase, composeController);
}

/** `count` points, evenly over the window; all when absent. */
export async function differencesOf(crashCase: CrashCase, count?: number): Promise<readonly string[]> {
  const calm = await rehearsalOf(crashCase);
  const found = calm.violations.map(({ id, sentence }) => `without a crash: ${id}: ${sentence}`);
  const points = crashPointsOf(calm);
  const every = count === undefined ? 1 : Math.max(1, Math.floor(points.length / count));
  for (let at = Math.floor(every / 2); at < points.length; at += every) {
    const point = points[at];
    if (point === undefined) break;
    const { end, violations } = await crashAt(crashCase, composeController, point);
    const where = `${point.side} call ${point.call} (${calm.calls[point.call - 1]?.what})`;
    for (const { id, sentence } of violations) found.push(`${where}: ${id}: ${sentence}`);
    for (const what of Object.keys(end) as (keyof EndState)[]) {
      const [expected, seen] = [JSON.stringify(calm.end[what]), JSON.stringify(end[what])];
      if (seen !== expected) found.push(`${where}: ${what} are ${seen} instead of ${expected}`);
    }
  }
  return found;
}
