/** What `relevo explain POOL` says of a size that follows its demand: backlog, slots, what is done, whose the size is, what comes next, what holds it, what was proven. */
import { type Instant, parseInstant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import type { ScaleExplainedView } from "../../server/scale-views.ts";
import { ageOf } from "../output.ts";

const WIDTH = 10;

export function scaleLines(scale: ScaleExplainedView, now: Instant): readonly string[] {
  const line = (head: string, text: string): string => `  ${head.padEnd(WIDTH)}${text}`;
  return [
    line("size", sizeText(scale, now)),
    ...warningsOf(scale, now).map((text) => line("!", text)),
    line("backlog", backlogText(scale, now)),
    line("slots", slotsText(scale)),
    line("done", doneText(scale)),
    line("owner", scale.owner + scale.otherOwners.map((each) => `, and ${each}: two owners fight, see relevo adopt`).join("")),
    line("next", nextText(scale)),
    ...scale.holds.map(({ sentence, code }) => line("held", `${sentence} (${code})`)),
    ...scale.changes.slice(0, 3).map(({ at, from, to, message }) => line("changed", `${ageOf(at, now)} ago ${from} → ${to}: ${message}`)),
    ...scale.exceptions.map(({ id, what, gate, followUps }) =>
      line("exception", `${what}, before ${gate}: ${followUps.filter(({ doneAt }) => doneAt === null).length} to do (${id})`),
    ),
  ];
}

/** Configured maximum and proven capacity, side by side (K7). */
function sizeText({ desired, floor, max, proven, changedAt, pausedAt }: ScaleExplainedView, now: Instant): string {
  const shown = proven === null ? "nothing proven" : `${proven.instances} proven ${ageOf(proven.at, now)} ago`;
  const since = changedAt === null ? "" : ` for ${ageOf(changedAt, now)}`;
  return `${desired} desired${since}, at least ${floor}, at most ${max} configured, ${shown}${pausedAt === null ? "" : `, paused at ${pausedAt}`}`;
}

function warningsOf({ proof, proven, desired, max }: ScaleExplainedView, now: Instant): readonly string[] {
  const warnings: string[] = [];
  if (desired >= max) warnings.push(`it is at its configured maximum: more demand changes nothing any more`);
  if (proof === "above_proven") warnings.push(`it runs above what was proven: ${proven?.instances} instances; run relevo loadtest`);
  if (proof === "proven_for_other")
    warnings.push(`what was proven ${ageOf(proven?.at ?? null, now)} ago is of another configuration; run relevo loadtest`);
  if (proof === "nothing_proven") warnings.push("no load test has shown what it can do; run relevo loadtest");
  return warnings;
}

function backlogText({ backlog, inFlight, oldestAgeMs, readAt, trouble, signal, flow }: ScaleExplainedView, now: Instant): string {
  const taken = inFlight === null ? "" : `, ${inFlight} taken`;
  const sinceRead = readAt === null ? 0 : Math.max(0, now - (parseInstant(readAt) ?? now));
  const oldest = oldestAgeMs === null ? "" : `, the oldest for ${formatDuration(Math.round((oldestAgeMs + sinceRead) / 1_000) * 1_000)}`;
  const known = backlog === null ? "not known yet" : `${backlog} wait${taken}${oldest}`;
  const read = readAt === null ? "" : `, read ${ageOf(readAt, now)} ago`;
  const wrong = trouble === null ? "" : `; for ${ageOf(trouble.since, now)} it cannot be believed (${trouble.code}): ${trouble.detail}`;
  return `${known} (${signal}, of ${flow ?? "no flow that is named"}${read})${wrong}`;
}

function slotsText({ slots }: ScaleExplainedView): string {
  if (slots === null) return "no instance says anything of its slots";
  const { free, progressing, stuck, total, instances } = slots;
  return `${free} free, ${progressing} progressing, ${stuck} stuck (${total} in ${instances} ${instances === 1 ? "instance" : "instances"})`;
}

/** Outcomes of jobs stand beside what the pool does, and not in it (K4). */
function doneText({ slots, jobs }: ScaleExplainedView): string {
  const rate =
    slots === null || slots.throughput === null
      ? "not watched for a minute yet"
      : `${perMinute(slots.throughput / Math.max(1, slots.instances))} jobs a minute and replica, ${perMinute(slots.throughput)} together`;
  if (jobs === null) return rate;
  const ended = jobs.done + jobs.nothing + jobs.reaped + jobs.failed;
  const success = ended === 0 ? "" : `, ${Math.round(((jobs.done + jobs.nothing) / ended) * 1_000) / 10} % in good order`;
  return `${rate}; ${jobs.done} done, ${jobs.nothing} nothing to do, ${jobs.reaped} reaped, ${jobs.failed} failed${success}`;
}

function nextText({ next, wanted, desired }: ScaleExplainedView): string {
  if (next !== null) return `${desired} → ${next.size}: ${next.reason.sentence}`;
  if (wanted === null) return `stays at ${desired}: what is wanted is not known`;
  return wanted === desired ? `stays at ${desired}` : `${wanted} are wanted, stays at ${desired} for now`;
}

function perMinute(perSecond: number): number {
  return Math.round(perSecond * 600) / 10;
}
