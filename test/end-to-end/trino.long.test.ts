/**
 * The Trino demo as a user starts it (T8, T12–T14): a real cluster is replaced without a lost query, a query outlives its worker with fault tolerance alone, a killed
 * worker comes back only with the cleanup, and whoever asked a killed coordinator is told. Level: real processes. Kept as docs/evidence/trino.json with
 * RELEVO_KEEP_EVIDENCE.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TrinoReport } from "../../src/cli/demo/trino/report.ts";
import { circumstances, keepEvidence } from "../../tools/evidence/keep.ts";

const ROOT = join(import.meta.dirname, "../..");
/** With a cold cache, on two cores. */
const WITHIN_MS = 25 * 60_000;
const ENDED_WITHIN_MS = WITHIN_MS + 60_000;

test("a real Trino is replaced, drained, killed and begun again, and no client gets a wrong answer or none", {
  timeout: ENDED_WITHIN_MS,
}, () => {
  const cwd = mkdtempSync(join(tmpdir(), "relevo-trino-demo-"));
  try {
    const under = circumstances(new Date());
    const load = loadavg();
    const run = spawnSync(process.execPath, [join(ROOT, "bin/relevo.mjs"), "demo", "trino", "--once", "-o", "json"], {
      cwd,
      encoding: "utf8",
      timeout: WITHIN_MS,
      maxBuffer: 64 * 1024 * 1024,
    });
    const last = run.stdout.trim().split("\n").at(-1) ?? "";
    if (last === "") throw new Error(`the demo printed nothing\n${run.stderr.slice(-4_000)}`);
    const report = JSON.parse(last) as TrinoReport;
    console.log(JSON.stringify(report));
    if (process.env["RELEVO_KEEP_EVIDENCE"] !== undefined)
      keepEvidence("trino", under, { command: "npm run demo:trino -- --once -o json", loadBefore: load, loadAfter: loadavg(), report });

    expect(report.broken).toEqual([]);
    expect(run.status).toBe(0);
    const { queries, voluntary, deadline, worker, coordinator } = report;
    expect(queries.sent).toBeGreaterThanOrEqual(50);
    expect([queries.wrong, voluntary.failed, deadline.failed, coordinator.hung]).toEqual([0, 0, 0, 0]);
    expect(deadline.withoutFte.failed).toBeGreaterThan(0);
    expect(worker).toEqual({ back: true, backWithoutCleanup: false });
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});
