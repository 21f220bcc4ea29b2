/** What the demo came to: one JSON document, one table, and whether its claims and its control held. */
import type { ActName } from "./acts.ts";
import { ACTS } from "./acts.ts";
import type { ActResult } from "./load/tally.ts";
import type { EvidenceView } from "./world.ts";

/** Short requests of an act may be this much slower in the 99th percentile than undisturbed ones (issue's figure). */
const P99_ADDED_LIMIT_MS = 45;

export interface ActReport {
  readonly sent: number;
  readonly completed: number;
  readonly queued: number;
  readonly rejected: number;
  readonly cut: number;
  readonly lost: number;
  readonly retried: number;
  readonly p50AddedMs: number;
  readonly p99AddedMs: number;
}

export interface DemoReport {
  readonly acts: Readonly<Record<ActName, ActReport>>;
  readonly control: { readonly sent: number; readonly completed: number; readonly rejected: number; readonly lost: number };
  readonly servingNeverBelow: number;
  readonly desired: number;
  readonly evidence: readonly {
    readonly instance: string;
    readonly loss: string;
    readonly reason: string;
    readonly node: string | null;
    readonly firstSeen: string;
  }[];
  readonly duplicatesCreated: number;
  readonly durationS: number;
  /** Of the claims above: real processes on this machine, simulated machines under them. */
  readonly level: "real processes";
  readonly held: boolean;
  readonly broken: readonly string[];
}

export interface DemoFacts {
  readonly acts: Readonly<Record<ActName, ActResult>>;
  readonly undisturbed: ActResult;
  readonly control: ActResult;
  readonly servingNeverBelow: number;
  readonly desired: number;
  readonly evidence: readonly EvidenceView[];
  readonly duplicatesCreated: number;
  readonly durationMs: number;
}

export function reportOf(facts: DemoFacts): DemoReport {
  const acts = Object.fromEntries(ACTS.map((name) => [name, actReport(facts.acts[name], facts.undisturbed)])) as Record<ActName, ActReport>;
  const { control } = facts;
  const figures = {
    acts,
    // Lost and cut together: what a client without Relevo would have noticed without being told.
    control: { sent: control.sent, completed: control.completed, rejected: control.rejected, lost: control.lost + control.cut },
    servingNeverBelow: facts.servingNeverBelow,
    desired: facts.desired,
    evidence: facts.evidence.map(({ instance, loss, reason, node, firstSeen }) => ({
      instance,
      loss,
      reason,
      node: node?.name ?? null,
      firstSeen,
    })),
    duplicatesCreated: facts.duplicatesCreated,
    durationS: Math.round(facts.durationMs / 100) / 10,
    level: "real processes" as const,
  };
  const broken = brokenClaims(figures);
  return { ...figures, held: broken.length === 0, broken };
}

function actReport(act: ActResult, undisturbed: ActResult): ActReport {
  const { sent, completed, queued, rejected, cut, lost, retried } = act;
  const added = (value: number | null, base: number | null) => (value === null || base === null ? 0 : Math.round((value - base) * 10) / 10);
  return {
    sent,
    completed,
    queued,
    rejected,
    cut,
    lost,
    retried,
    p50AddedMs: added(act.p50Ms, undisturbed.p50Ms),
    p99AddedMs: added(act.p99Ms, undisturbed.p99Ms),
  };
}

/** Each claim in words, when it did not hold; the control must fail, or the acts proved nothing. */
export function brokenClaims(figures: Omit<DemoReport, "held" | "broken">): readonly string[] {
  const broken: string[] = [];
  const claim = (holds: boolean, sentence: string) => {
    if (!holds) broken.push(sentence);
  };
  for (const name of ACTS) {
    const act = figures.acts[name];
    claim(act.sent >= 100, `${name}: only ${act.sent} requests were sent`);
    claim(act.sent === act.completed + act.rejected + act.cut + act.lost, `${name}: the counts do not add up`);
    claim(act.lost === 0, `${name}: ${act.lost} lost`);
  }
  for (const name of ["voluntary", "deadline"] as const) {
    const act = figures.acts[name];
    claim(act.rejected === 0, `${name}: ${act.rejected} rejected`);
    claim(act.cut === 0, `${name}: ${act.cut} cut`);
    claim(
      act.p99AddedMs <= P99_ADDED_LIMIT_MS,
      `${name}: p99 is ${act.p99AddedMs} ms above undisturbed, allowed are ${P99_ADDED_LIMIT_MS}`,
    );
  }
  claim(
    figures.servingNeverBelow >= figures.desired,
    `only ${figures.servingNeverBelow} of ${figures.desired} served at times during voluntary`,
  );
  claim(figures.duplicatesCreated === 0, `${figures.duplicatesCreated} objects were created twice`);
  claim(figures.control.lost > 0, "the control lost nothing: this run proves nothing");
  return broken;
}
