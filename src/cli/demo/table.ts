/** The result as people read it; it fits a terminal of 80 characters. */
import Table from "cli-table3";
import { ACTS } from "./acts.ts";
import type { DemoReport } from "./report.ts";

/** No lines: a frame around ten columns would be wider than many terminals. */
export const BARE = Object.fromEntries(
  ["top", "bottom", "mid"]
    .flatMap((line) => [line, `${line}-mid`, `${line}-left`, `${line}-right`])
    .concat(["left", "left-mid", "mid-mid", "right", "right-mid"])
    .map((part) => [part, ""]),
);

export function renderReport(report: DemoReport): string {
  const table = new Table({
    head: ["act", "sent", "completed", "queued", "retried", "rejected", "cut", "lost", "p50", "p99"],
    chars: { ...BARE, middle: "  " },
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: ["left", ...Array.from({ length: 9 }, () => "right" as const)],
  });
  for (const name of ACTS) {
    const act = report.acts[name];
    const times = [inFourDigits(act.p50AddedMs), inFourDigits(act.p99AddedMs)];
    table.push([name, act.sent, act.completed, act.queued, act.retried, act.rejected, act.cut, act.lost, ...times]);
  }
  const { control } = report;
  table.push(["control", control.sent, control.completed, "", "", control.rejected, "", control.lost, "", ""]);
  const verdict = report.held
    ? "Every claim held, and the control lost work."
    : report.broken.map((sentence) => `BROKEN: ${sentence}`).join("\n");
  return [
    table.toString().replaceAll(/ +$/gm, ""),
    "",
    "control: the same with disruption.mode Off; what was cut counts as lost",
    "p50, p99: of short requests, in ms more than while nobody disturbed",
    `while a node was replaced, never fewer than ${report.servingNeverBelow} of ${report.desired} served`,
    `${report.duplicatesCreated} objects made twice, ${report.evidence.length} pieces of evidence, ${report.durationS} s`,
    `level: ${report.level}; the machines under them are simulated`,
    "",
    verdict,
  ].join("\n");
}

function inFourDigits(ms: number): string {
  return ms.toFixed(Math.abs(ms) < 100 ? 1 : 0);
}
