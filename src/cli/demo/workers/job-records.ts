/** What the workers themselves noted of each job (examples/capture, `RECORD`): who ran it, and how it ended. Pure but for the reading of the file. */
import { existsSync, readFileSync } from "node:fs";
import { z } from "zod";

const lineSchema = z.object({
  event: z.enum(["start", "end", "reaped", "failed"]),
  job: z.string(),
  attempt: z.number(),
  instance: z.string(),
});
export type JobRecord = z.infer<typeof lineSchema>;

/** A line that is not whole yet is left out: the next look has it. */
export function readRecords(file: string): readonly JobRecord[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        const parsed = lineSchema.safeParse(JSON.parse(line));
        return parsed.success ? [parsed.data] : [];
      } catch {
        return [];
      }
    });
}

export interface JobCounts {
  readonly started: number;
  readonly ended: number;
  /** Jobs whose work came to its end more than once, each counted once for each time too many. */
  readonly duplicated: number;
  /** Attempts that began and came to no end of any kind. */
  readonly interrupted: number;
  readonly reaped: number;
}

export function countRecords(records: readonly JobRecord[]): JobCounts {
  const ends = new Map<string, number>();
  const open = new Set<string>();
  let reaped = 0;
  for (const { event, job, attempt } of records) {
    const key = `${job}\n${attempt}`;
    if (event === "start") open.add(key);
    else open.delete(key);
    if (event === "end") ends.set(job, (ends.get(job) ?? 0) + 1);
    if (event === "reaped") reaped++;
  }
  return {
    started: records.filter(({ event }) => event === "start").length,
    ended: ends.size,
    duplicated: [...ends.values()].reduce((sum, times) => sum + times - 1, 0),
    interrupted: open.size,
    reaped,
  };
}
