/**
 * `relevo loadtest POOL`: tagged jobs through the pool's own queue, first sound ones, then with a stated share that hang on purpose. What was measured is written
 * as the pool's proven capacity, with its date, configuration and figures (K7); what was put in is taken back whatever happens.
 */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { formatInstant } from "../../kernel/clock.ts";
import { formatDuration } from "../../kernel/units.ts";
import { provenView } from "../../server/scale-views.ts";
import { nodeView, poolView } from "../../server/views.ts";
import { type ControllerClient, connect, poolKeyOf } from "../client.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";
import { levelOf } from "../verify/report.ts";
import { capacityOf, drainedAfter, LEAST_MEASURED_MS, type LoadPhase, mixOf, undoneOf } from "./loadtest-report.ts";
import { endedOf, hindrancesOf, lookAt, type ScaleLook } from "./look.ts";
import { assertReportCanBeWritten, clearWork, openTaggedWork, payloadOf, type TaggedOptions, type TaggedWork } from "./tagged-work.ts";

export interface LoadtestOptions extends TaggedOptions {
  /** Of each of both phases. */
  readonly jobs: number;
  readonly stuckShare: number;
  readonly stuckPayload?: string;
  /** Each phase may take so long, in ms. */
  readonly for: number;
  /** Where the full report goes. */
  readonly report?: string;
}

const POLL_MS = 250;

interface Told {
  readonly pool: string;
  readonly at: string;
  readonly level: string;
  readonly verdict: "proven" | "not proven" | "nothing shown";
  readonly why: readonly string[];
  readonly instances: number | null;
  readonly throughputPerInstance: number | null;
  readonly measuredMs: number | null;
  readonly drainedMs: number | null;
  readonly stuckShare: number;
  readonly recoveryMs: number | null;
  readonly jobs: number;
  readonly undone: number;
  readonly configHash: string | null;
}

export async function loadtest(context: CliContext, name: string, options: LoadtestOptions): Promise<ExitCode> {
  const client = connect(context, options);
  const pool = poolKeyOf(name, options.namespace);
  assertReportCanBeWritten(context, options.report);
  const good = payloadOf(context, "--payload", options.payload);
  const stuck = options.stuckPayload === undefined ? undefined : payloadOf(context, "--stuck-payload", options.stuckPayload);
  if (options.stuckShare > 0 && stuck === undefined)
    throw new UsageError("stuck_payload_missing", "A share of jobs that hang needs a payload that hangs.", {
      found: `--stuck-share ${options.stuckShare}`,
      allowed: "--stuck-payload JSON, or --stuck-share 0 to prove the throughput alone",
    });
  const level = levelOf(await client.list("/v1/nodes", nodeView));
  const hindrances = hindrancesOf(await client.get(`/v1/pools/${pool}`, poolView)).filter((each) => !each.includes("at its maximum"));
  const told =
    hindrances.length > 0
      ? nothing(context, pool, level, options, hindrances)
      : await run(context, client, { pool, level, good, stuck, options });
  if (options.report !== undefined) writeFileSync(resolve(context.cwd, options.report), `${JSON.stringify(told, null, 2)}\n`);
  context.out(renderDocument(told, options.output) ?? textOf(told));
  if (told.verdict === "nothing shown") return EXIT.refused;
  return told.verdict === "proven" ? EXIT.done : EXIT.failed;
}

interface Running {
  readonly pool: string;
  readonly level: string;
  readonly good: unknown;
  readonly stuck: unknown;
  readonly options: LoadtestOptions;
}

async function run(context: CliContext, client: ControllerClient, { pool, level, good, stuck, options }: Running): Promise<Told> {
  const { jobs, stuckShare } = options;
  const sound = await playPhase(context, client, { pool, options, word: "load", payloads: mixOf(jobs, 0, good, stuck) });
  const sick =
    stuckShare === 0
      ? null
      : await playPhase(context, client, {
          pool,
          options,
          word: "stuck",
          payloads: mixOf(jobs, stuckShare, good, stuck),
          stuck: Math.floor(jobs * stuckShare),
        });
  const capacity = capacityOf(sound);
  const recoveryMs = sick === null ? null : drainedAfter(sick);
  const undone = undoneOf(sound) + (sick === null ? 0 : undoneOf(sick));
  const why = [
    ...(capacity === undefined
      ? [`work waited for the largest size for less than ${formatDuration(LEAST_MEASURED_MS)}: more or longer jobs are needed (--jobs)`]
      : []),
    ...(drainedAfter(sound) === null ? [`the sound jobs were not done within ${formatDuration(options.for)}`] : []),
    ...(sick !== null && recoveryMs === null ? [`it did not recover from the stuck jobs within ${formatDuration(options.for)}`] : []),
    ...(undone > 0 ? [`${undone} jobs that could be done were not`] : []),
  ];
  const figures = {
    instances: capacity?.instances ?? null,
    throughputPerInstance: capacity?.throughputPerInstance ?? null,
    measuredMs: capacity?.measuredMs ?? null,
    drainedMs: drainedAfter(sound),
    recoveryMs,
    stuckShare,
    jobs: sound.jobs + (sick?.jobs ?? 0),
    undone,
  };
  const common = { pool, at: formatInstant(context.clock.now()), level, why, ...figures };
  if (why.length > 0 || capacity === undefined) return { ...common, verdict: "not proven", configHash: null };
  const { configHash } = await client.put(
    `/v1/pools/${pool}/proven`,
    {
      instances: capacity.instances,
      throughputPerInstance: capacity.throughputPerInstance,
      stuckShare,
      recoveryMs,
      jobs: figures.jobs,
      evidence: options.report ?? `relevo loadtest, ${common.at}, level: ${level}, measured for ${formatDuration(capacity.measuredMs)}`,
      by: context.user,
    },
    provenView,
  );
  return { ...common, verdict: "proven", configHash };
}

interface Phase {
  readonly pool: string;
  readonly options: LoadtestOptions;
  readonly word: string;
  readonly payloads: readonly unknown[];
  readonly stuck?: number;
}

async function playPhase(context: CliContext, client: ControllerClient, phase: Phase): Promise<LoadPhase> {
  const { clock, signal } = context;
  const { pool, options, payloads } = phase;
  const work: TaggedWork = await openTaggedWork(context, client, pool, options, phase.word);
  const looks: ScaleLook[] = [];
  let injectedAt = clock.monotonic();
  try {
    await work.feed.add(payloads);
    injectedAt = clock.monotonic();
    context.err(`${payloads.length} jobs were put in, of which ${phase.stuck ?? 0} hang on purpose\n`);
    for (const end = injectedAt + options.for; clock.monotonic() < end; await clock.sleep(POLL_MS, signal)) {
      const look = await lookAt(client, pool, await work.feed.counts(), clock);
      looks.push(look);
      if (endedOf(look.jobs) >= payloads.length) break;
    }
  } finally {
    // Also when the user has had enough, or the controller went away.
    const { removed, left } = await clearWork(work, context);
    if (removed + left > 0) context.err(`${removed} of them were taken back, ${left} are left\n`);
  }
  return { jobs: payloads.length, stuck: phase.stuck ?? 0, injectedAt, looks };
}

function nothing(context: CliContext, pool: string, level: string, { stuckShare }: LoadtestOptions, why: readonly string[]): Told {
  const none = { instances: null, throughputPerInstance: null, measuredMs: null, drainedMs: null, recoveryMs: null, configHash: null };
  return { pool, at: formatInstant(context.clock.now()), level, verdict: "nothing shown", why, ...none, stuckShare, jobs: 0, undone: 0 };
}

function textOf(told: Told): string {
  const ms = (value: number | null) => (value === null ? "-" : formatDuration(value));
  return [
    `pool ${told.pool}; level: ${told.level}`,
    ...(told.verdict === "nothing shown"
      ? []
      : [
          `  instances    ${told.instances ?? "-"} at once`,
          `  throughput   ${told.throughputPerInstance ?? "-"} jobs a second of each, measured for ${ms(told.measuredMs)}`,
          `  drained      after ${ms(told.drainedMs)}`,
          `  recovery     after ${ms(told.recoveryMs)} with ${Math.round(100 * told.stuckShare)} % of the jobs stuck`,
          `  jobs         ${told.jobs}, of which ${told.undone} were not done that could be`,
        ]),
    ...told.why.map((each) => `  ${told.verdict === "nothing shown" ? "shows nothing" : "not proven"}: ${each}`),
    told.verdict === "proven" ? `verdict: proven, for configuration ${told.configHash ?? "-"}` : `verdict: ${told.verdict}`,
    "",
  ].join("\n");
}
