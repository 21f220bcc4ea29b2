/** The result as people read it. */
import Table from "cli-table3";
import { ACTS } from "./acts.ts";
import type { DemoReport } from "./report.ts";

export function renderReport(report: DemoReport): string {
  const table = new Table({
    head: ["act", "sent", "completed", "queued", "retried", "rejected", "cut", "lost", "p50 +ms", "p99 +ms"],
    style: { head: [], border: [] },
    colAligns: ["left", ...Array.from({ length: 9 }, () => "right" as const)],
  });
  for (const name of ACTS) {
    const act = report.acts[name];
    table.push([name, act.sent, act.completed, act.queued, act.retried, act.rejected, act.cut, act.lost, act.p50AddedMs, act.p99AddedMs]);
  }
  const { control } = report;
  table.push(["control (mode Off)", control.sent, control.completed, "", "", control.rejected, "", control.lost, "", ""]);
  const verdict = report.held
    ? "Every claim held, and the control lost work."
    : report.broken.map((sentence) => `BROKEN: ${sentence}`).join("\n");
  return [
    table.toString(),
    `never fewer than ${report.servingNeverBelow} of ${report.desired} serving while a node was replaced · ${report.duplicatesCreated} objects made twice · ${report.evidence.length} pieces of evidence · ${report.durationS} s`,
    `level: ${report.level} on this machine; the machines under them are simulated by processes`,
    verdict,
  ].join("\n");
}
