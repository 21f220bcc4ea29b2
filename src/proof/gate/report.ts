/** What a gate came to, as a document for programs and as Markdown that can be attached to a change. */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import type { GateReason, Verdict } from "../../model/gate.ts";
import type { GateRecord, Outcome, RunRecord, StatementRecord } from "./record.ts";
import type { Variable } from "./variables.ts";
import { judge, runningOnKilled } from "./verdict.ts";

export interface GateReport {
  readonly kind: "GateReport";
  readonly gate: string;
  /** RFC 3339. */
  readonly at: string;
  /** What was tried: real processes, a cluster as it is, … */
  readonly level: string;
  readonly verdict: Verdict;
  readonly reasons: readonly GateReason[];
  readonly variable: Variable | null;
  readonly found: Verdict | null;
  readonly timings: GateTimings;
  /** Everything that was seen; the verdict follows from it alone. */
  readonly record: GateRecord;
}

export interface GateTimings {
  readonly totalMs: number;
  readonly experiment: RunTimings | null;
  readonly control: RunTimings | null;
}

export interface RunTimings {
  readonly totalMs: number;
  /** The engine's own: from the kill until it no longer named the worker, and until a query failed by its loss. Null: not seen. */
  readonly detection: { readonly unannouncedMs: number | null; readonly firstFailureMs: number | null };
  /** From the kill until a new task had run on the worker that came back. */
  readonly backMs: number | null;
}

export interface ReportOptions {
  readonly gate: string;
  readonly at: Instant;
  readonly level: string;
  readonly totalMs: number;
}

export function reportOf(record: GateRecord, { gate, at, level, totalMs }: ReportOptions): GateReport {
  const { verdict, reasons, variable, found } = judge(record);
  const { experiment, control } = record;
  return {
    kind: "GateReport",
    gate,
    at: formatInstant(at),
    level,
    verdict,
    reasons,
    variable,
    found,
    timings: {
      totalMs,
      experiment: experiment === null ? null : timingsOf(experiment),
      control: control === null ? null : timingsOf(control),
    },
    record,
  };
}

function timingsOf({ startedAt, endedAt, kill, back, statements }: RunRecord): RunTimings {
  const since = (at: number | null | undefined) => (kill === null || at === null || at === undefined ? null : at - kill.at);
  const failures = statements.flatMap(({ outcome }) => (outcome.kind === "failed" ? [outcome.at] : []));
  return {
    totalMs: Math.max(endedAt, back?.task?.at ?? 0) - startedAt,
    detection: {
      unannouncedMs: since(kill?.unannouncedAt),
      firstFailureMs: failures.length === 0 ? null : since(Math.min(...failures)),
    },
    backMs: since(back?.task?.at),
  };
}

/** A page: the verdict first, then what it rests on. */
export function markdownOf(report: GateReport): string {
  const { gate, at, level, verdict, reasons, found, variable, timings, record } = report;
  const lines = [
    `# Gate ${gate}: ${verdict}`,
    "",
    ...reasons.map(({ code, sentence }) => `- ${escaped(sentence)} (\`${code}\`)`),
    "",
    "| | |",
    "|---|---|",
    row("when", at),
    row("level", level),
    row(
      "one variable",
      variable === null ? "none that the runs differ in alone" : `${variable.name}: ${variable.experiment} → ${variable.control}`,
    ),
    ...(found === null ? [] : [row("the runs themselves", found)]),
    row("declared workers", String(record.declaredWorkers)),
    row("took", duration(timings.totalMs)),
    ...(record.stopped === null ? [] : [row("stopped", record.stopped)]),
    "",
    ...baselineOf(record),
    ...runOf("Experiment", record.experiment, timings.experiment),
    ...runOf("Control", record.control, timings.control),
  ];
  return `${lines.join("\n").trimEnd()}\n`;
}

function baselineOf({ baseline }: GateRecord): readonly string[] {
  if (baseline === null || baseline.statements.length === 0) return [];
  return [
    "## Without a kill",
    "",
    "| query | rows | took | problem |",
    "|---|---|---|---|",
    ...baseline.statements.map(({ name, rows, tookMs, problem }) => row(name, String(rows), duration(tookMs), problem ?? "none")),
    "",
  ];
}

function runOf(title: string, run: RunRecord | null, timings: RunTimings | null): readonly string[] {
  if (run === null || timings === null) return [`## ${title}`, "", "It was not run.", ""];
  return [`## ${title}`, "", "| | |", "|---|---|", ...factsOf(run, timings), "", ...queriesOf(run), ...tasksOf(run), ...statementsOf(run)];
}

function factsOf({ conditions, nodes, kill, exchange, back }: RunRecord, timings: RunTimings): readonly string[] {
  const { unannouncedMs, firstFailureMs } = timings.detection;
  return [
    row("engine", `Trino ${conditions.version}, ${conditions.environment}, coordinator ${conditions.bootId}`),
    row("session, as the engine took it", told(conditions.session)),
    row("announced workers", nodes.announced.map(({ nodeId, uri }) => `${nodeId} (${uri})`).join(", ") || "none"),
    row("ready workers", nodes.ready === null ? "nobody could tell" : nodes.ready.join(", ") || "none"),
    row(
      "killed",
      kill === null
        ? "nobody"
        : `${kill.worker.nodeId} (${kill.worker.uri}), ${duration(kill.at)} after the gate began: ${kill.what ?? kill.error}`,
    ),
    ...(kill === null
      ? []
      : [row("its process was gone", kill.goneAt === null ? `not seen: ${kill.error}` : `after ${duration(kill.goneAt - kill.at)}`)]),
    row(
      "the engine's own detection",
      `no longer announced after ${duration(unannouncedMs)}; first query failed after ${duration(firstFailureMs)}`,
    ),
    row(
      "exchange",
      `${exchange.location}: ${exchange.entries} files, ${exchange.bytes} bytes at the most, in ${exchange.listings} listings while the queries ran; ${exchange.left ?? "?"} left afterwards${exchange.error === null ? "" : `; a listing failed: ${exchange.error}`}`,
    ),
    ...exchange.sample.slice(0, 2).map((path) => row("", path)),
    row(
      "back",
      back === null
        ? "not looked for"
        : back.task === null
          ? `no: ${back.seen}`
          : `${back.task.nodeId} ran the new task ${back.task.taskId}, ${duration(timings.backMs)} after the kill`,
    ),
    row("took", duration(timings.totalMs)),
  ];
}

function queriesOf(run: RunRecord): readonly string[] {
  return [
    "| query | id | retry policy | running tasks on the killed worker | outcome |",
    "|---|---|---|---|---|",
    ...run.statements.map((statement) =>
      row(
        statement.name,
        statement.queryId,
        statement.retryPolicy ?? "not told",
        String(runningOnKilled(run, statement)),
        outcomeOf(run, statement),
      ),
    ),
    "",
  ];
}

function tasksOf({ looks, kill }: RunRecord): readonly string[] {
  const last = looks.at(-1);
  if (last === undefined) return ["The engine was never asked for its tasks.", ""];
  const age = kill === null ? "nobody was killed" : `${duration(kill.at - last.at)} before the kill`;
  return [
    `Active workers by the engine (\`system.runtime.nodes\`), ${age}: ${last.announced.join(", ") || "none"}. Running tasks (\`system.runtime.tasks\`):`,
    "",
    "| worker | query | tasks |",
    "|---|---|---|",
    ...(last.running.length === 0
      ? [row("none", "", "")]
      : last.running.map(({ nodeId, queryId, tasks }) => row(nodeId, queryId, String(tasks)))),
    "",
  ];
}

function statementsOf({ conditions }: RunRecord): readonly string[] {
  return ["```sql", ...conditions.statements.map((sql) => `${sql.replaceAll("```", "` ` `")};`), "```", ""];
}

function outcomeOf({ kill }: RunRecord, { outcome, startedAt }: StatementRecord): string {
  const when = kill === null ? `${duration(outcome.at - startedAt)} after its start` : relative(outcome.at - kill.at);
  return `${tell(outcome)}, ${when}`;
}

function relative(ms: number): string {
  return ms < 0 ? `${duration(-ms)} before the kill` : `${duration(ms)} after the kill`;
}

function tell(outcome: Outcome): string {
  switch (outcome.kind) {
    case "finished":
      return outcome.difference === null ? `finished, its ${outcome.rows} rows right` : `finished, rows wrong: ${outcome.difference}`;
    case "failed":
      return `failed by ${outcome.error.name} (${outcome.error.code}): ${outcome.error.message}`;
    case "lost":
      return `lost with its coordinator: ${outcome.message}`;
    case "hung":
      return `did not end (${outcome.state}; ${outcome.tasks})`;
    default:
      return outcome satisfies never;
  }
}

function told(session: Readonly<Record<string, string>> | null): string {
  if (session === null) return "not told";
  return (
    Object.entries(session)
      .map(([name, value]) => `${name}=${value}`)
      .join(", ") || "nothing set"
  );
}

function duration(ms: number | null): string {
  return ms === null ? "not seen" : formatDuration(ms);
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map(escaped).join(" | ")} |`;
}

/** What comes from others must not end a cell, begin a heading, or carry markup. */
function escaped(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("`", "'");
}
