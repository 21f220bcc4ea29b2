import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { countRecords, type JobRecord, readRecords } from "./job-records.ts";

const dir = mkdtempSync(join(tmpdir(), "relevo-records-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const record = (event: JobRecord["event"], job: string, attempt = 1, instance = "a"): JobRecord => ({ event, job, attempt, instance });

describe("what workers noted of their jobs", () => {
  test("a job that came to its end in two places is done twice, and an attempt without an end was interrupted", () => {
    const records = [
      record("start", "one"),
      record("end", "one"),
      record("start", "two"),
      record("start", "two", 2, "b"),
      record("end", "two", 2, "b"),
      record("start", "three"),
      record("end", "three"),
      record("start", "three", 2, "b"),
      record("end", "three", 2, "b"),
    ];
    expect(countRecords(records)).toEqual({ started: 5, ended: 3, duplicated: 1, interrupted: 1, reaped: 0 });
  });

  test("a job that was reaped or failed has come to an end, and was not done", () => {
    const records = [record("start", "one"), record("reaped", "one"), record("start", "two"), record("failed", "two")];
    expect(countRecords(records)).toEqual({ started: 2, ended: 0, duplicated: 0, interrupted: 0, reaped: 1 });
  });

  test("a line that is being written is left out, and so is a file that is not there yet", () => {
    const file = join(dir, "jobs.jsonl");
    writeFileSync(file, `${JSON.stringify({ at: 1, ...record("start", "one") })}\n{"event":"en`);
    expect(readRecords(file)).toEqual([record("start", "one")]);
    expect(readRecords(join(dir, "none.jsonl"))).toEqual([]);
  });
});
