/** How far the size may go in one direction within a time. */
import type { Instant } from "../../kernel/clock.ts";
import type { ScalePolicy, ScaleState } from "../../model/scale.ts";
import { isSetBack } from "./set-back.ts";

type Step = ScalePolicy["up"]["step"];

export interface Stride {
  /** As near to what is wanted as may be gone now. */
  readonly size: number;
  /** How many may be changed within the time. */
  readonly most: number;
  /** When more may be; null: nothing is kept back. */
  readonly until: Instant | null;
}

/**
 * As Kubernetes' own autoscaler counts: the larger of a number and of a share of the size that was when the time began, less what was changed in this direction
 * since.
 */
export function stride(wanted: number, desired: number, step: Step, recent: ScaleState["recent"], now: Instant): Stride {
  const direction = Math.sign(wanted - desired);
  const counted = recent.filter(({ at, by }) => at > now - step.per && !isSetBack(at, step.per, now) && Math.sign(by) === direction);
  const changed = counted.reduce((sum, { by }) => sum + by, 0);
  const before = desired - changed;
  const most = Math.max(step.instances, Math.ceil((before * step.percent) / 100));
  const left = Math.max(0, most - Math.abs(changed));
  if (Math.abs(wanted - desired) <= left) return { size: wanted, most, until: null };
  const [oldest] = counted;
  return { size: desired + direction * left, most, until: (oldest?.at ?? now) + step.per };
}

/** Changes that are kept: a policy with a long `per` and short steps would keep one a second. */
const MOST_RECENT = 200;

/** What is to be kept of the changes after another one; those that stand together count as of the later time, which allows no more than they do apart. */
export function rememberChange(
  recent: ScaleState["recent"],
  change: ScaleState["recent"][number],
  { up, down }: Pick<ScalePolicy, "up" | "down">,
): ScaleState["recent"] {
  const longest = Math.max(up.step.per, down.step.per);
  const kept = [...recent.filter(({ at }) => at > change.at - longest), change];
  if (kept.length <= MOST_RECENT) return kept;
  const after = kept.findIndex(({ by }, at) => at > 0 && Math.sign(by) === Math.sign(kept[at - 1]?.by ?? 0));
  const [first, second] = [kept[after - 1], kept[after]];
  // In a list in which each change is in the other direction than the one before, the cool-down has bounded them long since.
  if (first === undefined || second === undefined) return kept.slice(1);
  return [...kept.slice(0, after - 1), { at: second.at, by: first.by + second.by }, ...kept.slice(after + 1)];
}
