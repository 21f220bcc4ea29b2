/** A schedule of faults that broke a rule once, as a file to be kept: what happened as a transcript to read, and the schedule to run again. */
import { parse, stringify } from "yaml";
import { z } from "zod";
import { FAULT_KINDS, type PlannedFault } from "./faults.ts";
import type { Schedule } from "./shrink.ts";
import type { Violation } from "./run-seed.ts";

export interface Regression extends Schedule {
  /** The invariant that was broken. */
  readonly rule: string;
  /** What was said of it, or what was mended. */
  readonly sentence: string;
  readonly transcript: string;
}

const regressionSchema = z.strictObject({
  rule: z.string(),
  sentence: z.string(),
  seed: z.int(),
  faultsForMs: z.int(),
  faults: z.array(z.strictObject({ atMs: z.number(), fault: z.looseObject({ kind: z.enum(FAULT_KINDS) }) })),
  transcript: z.string().default(""),
});

/** Throws what zod throws: a kind of fault that is gone makes the file useless, and that must be seen. */
export function parseRegression(text: string): Regression {
  const parsed = regressionSchema.parse(parse(text));
  return { ...parsed, faults: parsed.faults as unknown as readonly PlannedFault[] };
}

export function formatRegression({ seed, faultsForMs, faults }: Schedule, { id, sentence }: Violation, log: readonly string[]): string {
  const transcript = transcriptOf(log);
  return stringify(
    { rule: id, sentence: sentence.split("\n", 1)[0], seed, faultsForMs, faults, transcript },
    { lineWidth: 0, flowCollectionPadding: true },
  );
}

/** More than a screen or two nobody reads: then what happened right before the end. */
const LINES_MAX = 80;
const ALWAYS = /^\S+ (fault|VIOLATION|the faults stop)/;
const TOLD =
  /^\S+ (fault|VIOLATION|notice|node|instance|pool|the faults stop|(controller|gateway)-\d+ (starts|dies|stands|applied|create|delete|patch (nodes|pods)|commit (evidence|add|move|incarnation|trust|step|loss)))/;

/** What happened, one line each, virtual seconds first: the faults, what was decided and done, up to what was broken. */
export function transcriptOf(log: readonly string[]): string {
  const end = log.findIndex((line) => line.includes(" VIOLATION "));
  const told = (end === -1 ? log : log.slice(0, end + 1)).filter((line) => TOLD.test(line)).map((line) => line.slice(0, 160));
  const kept = told.filter((line, index) => index >= told.length - LINES_MAX || ALWAYS.test(line));
  return `${kept.join("\n")}\n`;
}
