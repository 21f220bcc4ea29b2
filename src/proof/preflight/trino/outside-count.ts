/**
 * Whether an engine can be scaled from outside (T18): a count that is not its owner's must outlast a number of the owner's reconciles. Tried with one more than there
 * are, and taken back whatever happens. The owner's reconciliation is never paused.
 */
import type { Clock } from "../../../kernel/clock.ts";
import { formatDuration } from "../../../kernel/units.ts";
import { fine, found, type Judgement } from "./facts.ts";

export interface OutsideCount {
  read(): Promise<{
    readonly replicas: number /** Of the owner, as far as its own traces tell. */;
    readonly reconciles: number;
    readonly isPaused: boolean;
  }>;
  write(replicas: number): Promise<void>;
}

export interface ProbeBounds {
  readonly reconciles: number;
  readonly withinMs: number;
  readonly everyMs: number;
}

export async function probeOutsideCount(count: OutsideCount, clock: Clock, bounds: ProbeBounds): Promise<Judgement> {
  const before = await count.read();
  if (before.isPaused)
    return found("refused", "its owner is paused: what is written would survive and mean nothing", "let its operator go on first");
  const wanted = before.replicas + 1;
  const until = clock.monotonic() + bounds.withinMs;
  await count.write(wanted);
  try {
    for (;;) {
      const seen = await count.read();
      const passed = seen.reconciles - before.reconciles;
      if (seen.replicas !== wanted)
        return found(
          "refused",
          `its owner put ${wanted} back to ${seen.replicas} at reconcile ${passed}`,
          "scale it by its owner's own field, or leave that field unset where the owner allows it",
        );
      if (passed >= bounds.reconciles) return fine(`a count from outside outlasted ${passed} reconciles of its owner`);
      if (clock.monotonic() >= until)
        return found(
          "held",
          `only ${passed} of ${bounds.reconciles} reconciles of its owner were seen within ${formatDuration(bounds.withinMs)}`,
          "try again for longer: nothing is shown by an owner that did not look",
        );
      await clock.sleep(bounds.everyMs);
    }
  } finally {
    const { replicas } = await count.read();
    if (replicas === wanted) await count.write(before.replicas);
  }
}
