/** What a proof of scaling by effect claims, from what was seen; nothing where nothing could have failed (K9). */
import { formatDuration } from "../../kernel/units.ts";
import type { Claim } from "../verify/report.ts";
import { doneOf, endedOf, type ScaleLook } from "./look.ts";

export interface ScalingTrial {
  /** While nothing was put in: the control. */
  readonly control: readonly ScaleLook[];
  /** From the injection on, to the end or to the end of the window. */
  readonly looks: readonly ScaleLook[];
  readonly injectedAt: number;
  readonly jobs: number;
  /** Of the jobs that were taken back, and of those that are left. */
  readonly cleared: { readonly removed: number; readonly left: number };
}

/** The size that is there before anything is put in. */
function before({ control }: ScalingTrial): ScaleLook | undefined {
  return control.at(-1);
}

/** Why it shows nothing: what moves without the injection may move for another reason with it. */
export function nothingShownBy({ control }: ScalingTrial): readonly string[] {
  const [first] = control;
  if (first === undefined) return ["nobody looked before the injection"];
  const moved = control.filter(({ desired, serving }) => desired !== first.desired || serving !== first.serving);
  return moved.length === 0 ? [] : ["the size changed before anything was put in: somebody else's work, or an earlier change that goes on"];
}

export function scalingClaims(trial: ScalingTrial): readonly Claim[] {
  const base = before(trial);
  const { looks, jobs, injectedAt, cleared } = trial;
  const from = base?.desired ?? 0;
  const serving = base?.serving ?? 0;
  const firstAt = (holds: (look: ScaleLook) => boolean) => looks.find(holds)?.at;
  const after = (at: number | undefined) =>
    at === undefined ? "not within the window" : `after ${formatDuration(Math.round(at - injectedAt))}`;
  const most = (of: (look: ScaleLook) => number) => Math.max(...looks.map(of), 0);
  const roseAt = firstAt(({ desired }) => desired > from);
  const servedAt = firstAt((look) => look.serving > serving);
  const last = looks.at(-1)?.jobs;
  const done = last === undefined ? 0 : doneOf(last);
  const drainedAt = firstAt((look) => endedOf(look.jobs) >= jobs);
  return [
    {
      claim: "the size rose when work came",
      held: roseAt !== undefined,
      found: `${from} → ${most(({ desired }) => desired)}, ${after(roseAt)}`,
    },
    {
      claim: "more instances served",
      held: servedAt !== undefined,
      found: `${serving} → ${most((look) => look.serving)}, ${after(servedAt)}`,
    },
    { claim: "the backlog fell: no injected job is left", held: drainedAt !== undefined, found: `${jobs} jobs, ${after(drainedAt)}` },
    { claim: "each injected job was done", held: done === jobs, found: `${done} of ${jobs}` },
    {
      claim: "nothing of the injected work stayed behind",
      held: cleared.left === 0,
      found: `${cleared.removed} taken back, ${cleared.left} left`,
    },
  ];
}
