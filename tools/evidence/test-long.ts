/**
 * `npm run test:long`: runs the long tests and keeps what they gave, with the commit, in docs/evidence/test-long.json. Further arguments go to vitest;
 * with any, nothing is kept, because it is not the whole.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { circumstances, keepEvidence } from "./keep.ts";

const root = join(import.meta.dirname, "..", "..");
const args = process.argv.slice(2);

/** The part of vitest's JSON report that is used. */
interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly startTime: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string; readonly duration?: number | null }[];
  }[];
}

const scratch = mkdtempSync(join(tmpdir(), "relevo-long-"));
try {
  const output = join(scratch, "report.json");
  const vitest = [
    "node_modules/vitest/vitest.mjs",
    "run",
    ...["--project", "long", "--project", "long-virtual"],
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${output}`,
  ];
  // Tests that measure keep what they measured, too.
  const env = args.length === 0 ? { ...process.env, RELEVO_KEEP_EVIDENCE: "1" } : process.env;
  const run = spawnSync(process.execPath, [...vitest, ...args], { cwd: root, env, stdio: ["ignore", "inherit", "inherit"] });
  process.exitCode = run.status ?? 1;
  if (args.length === 0) keep(JSON.parse(readFileSync(output, "utf8")) as Report);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function keep(report: Report): void {
  if (report.testResults.length === 0) return;
  const tests = report.testResults.flatMap((file) =>
    file.assertionResults.map(({ fullName, status, duration }) => ({
      file: relative(root, file.name),
      test: fullName.trim(),
      status,
      durationMs: duration === null || duration === undefined ? null : Math.round(duration),
    })),
  );
  const { startTime, numPassedTests: passed, numFailedTests: failed } = report;
  keepEvidence("test-long", circumstances(new Date(startTime)), { passed, failed, tests });
}
