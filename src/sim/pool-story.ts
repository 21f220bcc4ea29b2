/** What Relevo did in a run, as sentences in order of time: from what was committed, nothing that only was tried. */
import type { SimEvent } from "./events.ts";

export interface StoryLine {
  readonly atMs: number;
  readonly sentence: string;
}

/** More is no story. */
const MAX_LINES = 5_000;

export class PoolStory {
  readonly lines: StoryLine[] = [];

  told(event: SimEvent, atMs: number): void {
    if (event.type !== "committed") return;
    for (const change of event.changes) {
      const sentence = sentenceOf(change);
      if (sentence !== undefined && this.lines.length < MAX_LINES) this.lines.push({ atMs, sentence });
    }
  }
}

function sentenceOf(change: Extract<SimEvent, { type: "committed" }>["changes"][number]): string | undefined {
  switch (change.kind) {
    case "create_instance":
      return `${change.instance.id} is made${change.instance.replaces === null ? "" : ` in place of ${change.instance.replaces}`}`;
    case "move_instance":
      return `${change.instance}: ${change.from} → ${change.to}${change.set?.drainLoss === undefined ? "" : ` (${change.set.drainLoss})`}`;
    case "record_evidence":
      return `${change.evidence.instance} must be replaced: ${change.evidence.reason} (${change.evidence.loss})`;
    case "set_trust":
      return `${change.instance} is ${change.to}`;
    case "renew_incarnation":
      return change.after === 0 ? undefined : `${change.instance} is another process`;
    case "count_loss":
      return `${change.instance}: ${change.obligations} obligations lost (${change.loss}), its seal was ${change.seal}`;
    default:
      return undefined;
  }
}
