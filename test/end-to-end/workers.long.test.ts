/**
 * The workers' demo as a user starts it (K1, K4–K6): their number follows the backlog, jobs that hang are repaired before it grows, and neither of the controls
 * drains the same backlog. Level: real processes. Kept as docs/evidence/workers.json with RELEVO_KEEP_EVIDENCE.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { WorkersReport } from "../../src/cli/demo/workers/report.ts";
import { circumstances, keepEvidence } from "../../tools/evidence/keep.ts";

const ROOT = join(import.meta.dirname, "../..");
const WITHIN_MS = 480_000;

test("workers follow their backlog, what hangs is repaired first, and both controls fail", () => {
  const cwd = mkdtempSync(join(tmpdir(), "relevo-workers-"));
  try {
    const under = circumstances(new Date());
    const load = loadavg();
    const run = spawnSync(process.execPath, [join(ROOT, "bin/relevo.mjs"), "demo", "workers", "--once", "-o", "json"], {
      cwd,
      encoding: "utf8",
      timeout: WITHIN_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    const last = run.stdout.trim().split("\n").at(-1) ?? "";
    if (last === "") throw new Error(`the demo printed nothing\n${run.stderr.slice(-4_000)}`);
    const report = JSON.parse(last) as WorkersReport;
    console.log(JSON.stringify(report));
    if (process.env["RELEVO_KEEP_EVIDENCE"] !== undefined)
      keepEvidence("workers", under, { command: "npm run demo:workers -- --once -o json", loadBefore: load, loadAfter: loadavg(), report });

    expect(report.broken).toEqual([]);
    expect(run.status).toBe(0);
    const { healthy, stuck, control } = report;
    expect([healthy.duplicatedJobs, healthy.interruptedJobs, stuck.scaleUpsWhileStuck, stuck.oomKills, stuck.restartsAfterRepair]).toEqual([
      0, 0, 0, 0, 0,
    ]);
    expect([healthy.drained, stuck.drained, control.cpu.drained, control.backlogOnly.drained]).toEqual([true, true, false, false]);
    expect(control.backlogOnly.oomKills).toBeGreaterThan(0);
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});
