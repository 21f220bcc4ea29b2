/** `relevo demo storm` as a process of its own, in a folder of its own. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StormReport } from "../../src/cli/demo/storm/report.ts";

const ROOT = join(import.meta.dirname, "../..");

export function playStormCommand(
  args: readonly string[],
  withinMs: number,
): { readonly report: StormReport; readonly code: number | null } {
  const cwd = mkdtempSync(join(tmpdir(), "relevo-storm-"));
  try {
    const run = spawnSync(process.execPath, [join(ROOT, "bin/relevo.mjs"), "demo", "storm", "--once", "-o", "json", ...args], {
      cwd,
      encoding: "utf8",
      timeout: withinMs,
      maxBuffer: 64 * 1024 * 1024,
    });
    const last = run.stdout.trim().split("\n").at(-1) ?? "";
    if (last === "") throw new Error(`the storm printed nothing\n${run.stderr.slice(-4_000)}`);
    return { report: JSON.parse(last) as StormReport, code: run.status };
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
