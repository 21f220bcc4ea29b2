/**
 * `relevo gate run -f GATE`: kills a worker in the middle of a query, with fault tolerance and without (T8–T14), and says what that shows. Progress goes to
 * stderr, the report to stdout.
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { formatInstant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import type { GateDocument, Verdict } from "../../model/gate.ts";
import { promotionDraftSchema } from "../../model/promotion.ts";
import type { GateRecord } from "../../proof/gate/record.ts";
import { type GateReport, markdownOf, reportOf } from "../../proof/gate/report.ts";
import { runGate } from "../../proof/gate/run.ts";
import { trinoEngine } from "../../proof/gate/trino-engine.ts";
import { exceptionView } from "../../server/scale-views.ts";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { palette, renderDocument } from "../output.ts";
import { readText, shownName } from "../text-file.ts";
import { readGate } from "./gate-file.ts";
import { findPlace, type PlaceOptions } from "./place.ts";

export interface GateRunOptions extends PlaceOptions {
  readonly filename: string;
  readonly report?: string;
  readonly exception?: string;
  readonly followUp?: readonly string[];
}

/** `non-discriminating` and `invalid` are refusals: nothing was shown. */
const EXIT_OF: Readonly<Record<Verdict, ExitCode>> = {
  pass: EXIT.done,
  fail: EXIT.failed,
  invalid: EXIT.refused,
  "non-discriminating": EXIT.refused,
  exception: EXIT.held,
};

export async function runGateCommand(context: CliContext, options: GateRunOptions): Promise<ExitCode> {
  const { filename: file } = options;
  const gate = readGate(shownName(file), await readText(context, file));
  const began = context.clock.monotonic();
  const { record, level } =
    options.exception === undefined ? await experiment(context, gate, options) : await except(context, gate, options);
  const report = reportOf(record, {
    gate: gate.metadata.name,
    at: context.clock.now(),
    level,
    totalMs: Math.round(context.clock.monotonic() - began),
  });
  if (options.report !== undefined) writeReport(context, options.report, report);
  context.out(renderDocument(report, options.output) ?? textOf(context, report));
  return EXIT_OF[report.verdict];
}

interface Ended {
  readonly record: GateRecord;
  readonly level: string;
}

async function experiment(context: CliContext, gate: GateDocument, options: GateRunOptions): Promise<Ended> {
  if (options.followUp !== undefined)
    throw new UsageError("follow_up_without_exception", "--follow-up is of an exception.", {
      todo: "add --exception WHY, or leave it out",
    });
  const { clock, signal } = context;
  const place = await findPlace(context, gate, options);
  const engine = trinoEngine({ base: place.base, user: gate.spec.where.user, clock });
  const began = clock.monotonic();
  const tell = (line: string): void => context.err(`${formatDuration(Math.round((clock.monotonic() - began) / 100) * 100)}  ${line}\n`);
  try {
    const { killer, ready, listing, declaredWorkers, level } = place;
    return { record: await runGate(gate.spec, declaredWorkers, { engine, killer, listing, ready, clock, tell, signal }), level };
  } finally {
    await engine.close();
    await place.close();
  }
}

/** Where the gate names a pool, its controller lists the exception until the follow-ups are done (K10). */
async function except(context: CliContext, { metadata, spec }: GateDocument, options: GateRunOptions): Promise<Ended> {
  const draft = promotionDraftSchema.safeParse({
    what: spec.where.pool === undefined ? `the engine at ${spec.where.coordinator?.url}` : `pool ${spec.where.pool.name}`,
    gate: metadata.name,
    why: options.exception,
    followUps: options.followUp ?? [],
  });
  if (!draft.success)
    throw new UsageError("exception_incomplete", "An exception says why, and what is still to be done.", {
      found: draft.error.issues[0]?.message,
      allowed: "--exception WHY --follow-up WHAT (may be repeated)",
    });
  const { why, followUps } = draft.data;
  if (spec.where.pool !== undefined) {
    const pool = poolKeyOf(spec.where.pool.name, metadata.namespace ?? options.namespace);
    await connect(context, options).post(`/v1/pools/${pool}/exceptions`, { ...draft.data, by: context.user }, exceptionView);
  }
  const record: GateRecord = {
    declared: { experiment: spec.experiment.session, control: spec.control.session },
    declaredWorkers: spec.where.workers.count ?? spec.where.workers.urls.length,
    exchangeLocation: spec.exchange.location,
    experiment: null,
    control: null,
    stopped: `not run: an exception of ${formatInstant(context.clock.now())}`,
    baseline: null,
    exception: { by: context.user, why, followUps },
  };
  return { record, level: "nothing was run" };
}

function writeReport(context: CliContext, file: string, report: GateReport): void {
  const path = resolve(context.cwd, file);
  try {
    writeFileSync(path, file.endsWith(".json") ? `${JSON.stringify(report, null, 2)}\n` : markdownOf(report));
  } catch (cause) {
    // The run cost minutes: what it showed is printed all the same.
    context.err(`the report could not be written to ${file}: ${(cause as NodeJS.ErrnoException).code}\n`);
  }
}

function textOf(context: CliContext, report: GateReport): string {
  const { green, red, yellow } = palette(context);
  const colour = report.verdict === "pass" ? green : report.verdict === "fail" ? red : yellow;
  return `${markdownOf(report)}\nverdict: ${colour(report.verdict)}\n`;
}
