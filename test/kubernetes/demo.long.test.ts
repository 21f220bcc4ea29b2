/** The demo on a real control plane as a user starts it: every claim holds, and the control falls below. Kept as docs/evidence/kubernetes-demo.json with RELEVO_KEEP_EVIDENCE. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { KubernetesReport } from "../../src/cli/demo/kubernetes/report.ts";
import { systemClock } from "../../src/kernel/system.ts";
import { circumstances, keepEvidence } from "../../tools/evidence/keep.ts";

const ROOT = join(import.meta.dirname, "../..");
/** What it may take with all that it needs to build first. */
const WITHIN_MS = 1_500_000;

test(
  "drift and a deadline through real Karpenter: claims hold, and without protection fewer serve than desired (D2–D7, D19)",
  () => {
    const under = circumstances(new Date(systemClock.now()));
    const run = spawnSync(process.execPath, [join(ROOT, "bin/relevo.mjs"), "demo", "kubernetes", "--once", "-o", "json"], {
      cwd: ROOT,
      encoding: "utf8",
      timeout: WITHIN_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    const report = JSON.parse(run.stdout.trim().split("\n").at(-1) ?? "") as KubernetesReport;
    console.log(JSON.stringify(report));
    if (process.env["RELEVO_KEEP_EVIDENCE"] !== undefined) keepEvidence("kubernetes-demo", under, { report });

    expect(report.broken).toEqual([]);
    expect(report.control.servingNeverBelow).toBeLessThan(report.desired);
    expect(report.drift.karpenterWaited).toBeGreaterThan(0);
    expect(run.status).toBe(0);
  },
  WITHIN_MS,
);
