/**
 * Act 2: a spot notice for a worker's node. The same query runs with and without fault tolerance, and nothing but the session property differs: with it the query
 * survives its worker, without it the query is lost once the drain has gone as far as the notice allows.
 */
import { ownQuery, ownRowsOf } from "../../../proof/gate/own-query.ts";
import type { KubePod } from "../../../kube/types.ts";
import type { RetryPolicy } from "../../../model/trino.ts";
import type { ActName, Checked, Ended } from "./clients.ts";
import { whyOf } from "./clients.ts";
import { engineOf, happens, note, POOL, seconds, servingCluster, type Stage, WORKER_WITHIN_MS, within, workersOf } from "./stage.ts";

const ACT = "deadline";
/** With retries a stage may land whole on one worker: of several queries some run on each. */
const WITH_FTE = 2;
const CALIBRATION_ROWS = 8_000_000;
/** How much longer than the notice the queries are to run. */
const LONGER = 2.5;
const LEAST_ROWS = 8_000_000;
/** Queries that ended before the worker went prove nothing: once more, with longer ones. */
const ATTEMPTS = 2;
const MOST_ROWS = 400_000_000;
/** Whose list of queries can be asked for by several states. */
const ENGINE = "483";
/** A list may show only the beginning of a statement. */
const SHOWN = 60;
const RUNNING_WITHIN_MS = 60_000;
const ENDED_WITHIN_MS = 8 * 60_000;

export interface PlayedDeadline {
  readonly survivedAfterMs: number | null;
  readonly withoutFteFailed: number;
  readonly outlasted: boolean;
  /** How the worker was told: `reversible` (it finishes what it has), `final`; null: it was not. */
  readonly memberDrain: string | null;
}

export async function playDeadline(stage: Stage): Promise<PlayedDeadline> {
  const over = new AbortController();
  const counting = stage.clients.keepCounting(ACT, "TASK", over.signal);
  try {
    return await playNotices(stage);
  } finally {
    over.abort();
    await counting;
  }
}

async function playNotices(stage: Stage): Promise<PlayedDeadline> {
  const wantedMs = stage.deadlineMs * LONGER;
  let rows = await rowsThatOutlast(stage, wantedMs);
  for (let attempt = 1; ; attempt++) {
    const { tookMs, ...played } = await playNotice(stage, rows);
    if (played.outlasted || attempt === ATTEMPTS) return played;
    rows = boundedRows((rows * wantedMs) / Math.max(1, tookMs));
    note(stage, ACT, `the queries ended before the worker went, which proves nothing: once more, over ${rows} numbers`);
  }
}

async function playNotice(stage: Stage, rows: number): Promise<PlayedDeadline & { readonly tookMs: number }> {
  const { site, clock, deadlineMs } = stage;
  const cluster = await servingCluster(stage);
  const engine = engineOf(stage, cluster);
  const checked = { sql: ownOrdered(rows), rows: ownRows(rows) };
  const started = clock.monotonic();
  const ours = async () => (await engine.unfinished(ENGINE)).filter(({ sql }) => sql.startsWith(checked.sql.slice(0, SHOWN)));
  const plain = [follow(stage, "withoutFte", "NONE", checked)];
  await happens(stage, RUNNING_WITHIN_MS, async () => (await ours()).length === 1);
  const [plainQuery] = await ours();
  const tolerant = Array.from({ length: WITH_FTE }, () => follow(stage, ACT, "TASK", checked));
  const queries = [...tolerant, ...plain];
  const victim = await victimOf(stage, cluster.id, async (pod) => {
    const running = new Set((await ours()).map(({ queryId }) => queryId));
    const tasks = (await engine.tasks()).filter(({ nodeId, state }) => nodeId === pod.metadata.name && state === "RUNNING");
    const ids = new Set(tasks.map(({ queryId }) => queryId).filter((id) => running.has(id)));
    return running.size === queries.length && ids.size >= 2 && ids.has(plainQuery?.queryId ?? "");
  });
  if (victim === undefined) {
    note(stage, ACT, "no worker had running tasks of queries with and without fault tolerance");
    await Promise.all(queries.map(({ ended }) => ended));
    return { survivedAfterMs: null, withoutFteFailed: 0, outlasted: false, memberDrain: null, tookMs: clock.monotonic() - started };
  }
  const node = victim.spec.nodeName ?? "";
  note(
    stage,
    ACT,
    `${queries.length} queries over ${rows} numbers run, ${WITH_FTE} of them with retry_policy TASK; a spot notice for ${node} of the worker ${victim.metadata.name}: it goes in ${seconds(deadlineMs)}`,
  );
  const noticedAt = clock.monotonic();
  await site.world.interrupt(node, deadlineMs);

  const isGone = async () => !(await workersOf(stage, cluster.id)).some(({ metadata }) => metadata.uid === victim.metadata.uid);
  const isEnding = async () =>
    (await workersOf(stage, cluster.id)).every(
      ({ metadata }) => metadata.uid !== victim.metadata.uid || metadata.deletionTimestamp !== null,
    );
  await happens(stage, deadlineMs * 2, isEnding);
  const lostAt = clock.monotonic();
  const running = queries.filter((query) => query.endedAt() === undefined).length;
  note(stage, ACT, `the worker goes ${seconds(lostAt - noticedAt)} after the notice; ${running} of ${queries.length} queries still run`);
  const outlasted = running === queries.length;
  await happens(stage, deadlineMs * 2, isGone);

  const ends = await within(stage, ENDED_WITHIN_MS, Promise.all(queries.map(({ ended }) => ended)));
  if (ends === undefined) note(stage, ACT, `not all queries ended within ${seconds(ENDED_WITHIN_MS)}`);
  tell(stage, { name: "with fault tolerance", queries: tolerant, lostAt });
  tell(stage, { name: "without it", queries: plain, lostAt });
  const tookMs = Math.max(0, ...queries.map((query) => (query.endedAt() ?? clock.monotonic()) - started));
  note(stage, ACT, `the queries took ${seconds(tookMs)}`);
  const isBack = await happens(
    stage,
    WORKER_WITHIN_MS,
    async () => (await engine.nodes()).filter(({ isCoordinator, state }) => !isCoordinator && state === "active").length >= 2,
  );
  note(stage, ACT, isBack ? "the worker was made anew on another node and belongs to the cluster" : "no other worker came for it");
  const survived = tolerant.map((query) => survivalOf(query, lostAt));
  return {
    survivedAfterMs: survived.includes(null) ? null : Math.round(Math.max(...survived.map(Number))),
    withoutFteFailed: plain.filter((query) => query.result()?.how !== "right").length,
    outlasted,
    memberDrain: await memberDrainOf(stage),
    tookMs,
  };
}

interface Followed {
  readonly ended: Promise<Ended>;
  result(): Ended | undefined;
  /** Monotonic. */
  endedAt(): number | undefined;
}

/** In ms; null: it was lost, or had ended before its worker did. */
function survivalOf(query: Followed, lostAt: number): number | null {
  const afterMs = (query.endedAt() ?? 0) - lostAt;
  return query.result()?.how === "right" && afterMs > 0 ? afterMs : null;
}

function follow({ clients, clock }: Stage, act: ActName, retryPolicy: RetryPolicy, checked: Checked): Followed {
  let [result, endedAt]: [Ended | undefined, number | undefined] = [undefined, undefined];
  const ended = clients.check(act, clients.client(retryPolicy), checked).then((each) => {
    [result, endedAt] = [each, clock.monotonic()];
    return each;
  });
  ended.catch(() => undefined); // the demo ends: whoever awaits it is told
  return { ended, result: () => result, endedAt: () => endedAt };
}

function tell(
  stage: Stage,
  { name, queries, lostAt }: { readonly name: string; readonly queries: readonly Followed[]; readonly lostAt: number },
): void {
  for (const query of queries) {
    const [result, endedAt] = [query.result(), query.endedAt()];
    const says =
      result === undefined || endedAt === undefined
        ? "has not ended"
        : `ended ${seconds(Math.abs(endedAt - lostAt))} ${endedAt < lostAt ? "before" : "after"} the loss: ${whyOf(result)}`;
    note(stage, ACT, `${name}: a query ${says}`);
  }
}

/** A worker for which it holds, once there is one. */
async function victimOf(stage: Stage, instance: string, isLoaded: (pod: KubePod) => Promise<boolean>): Promise<KubePod | undefined> {
  let found: KubePod | undefined;
  await happens(stage, RUNNING_WITHIN_MS, async () => {
    for (const pod of await workersOf(stage, instance)) if (found === undefined && (await isLoaded(pod))) found = pod;
    return found !== undefined;
  });
  return found;
}

/** So many numbers that all the queries together take so long here, measured by one of them alone. */
async function rowsThatOutlast({ clients, clock }: Stage, wantedMs: number): Promise<number> {
  const checked = { sql: ownOrdered(CALIBRATION_ROWS), rows: ownRows(CALIBRATION_ROWS) };
  // The first one compiles what the second one runs.
  await clients.check(ACT, clients.client("TASK"), checked);
  const startedAt = clock.monotonic();
  await clients.check(ACT, clients.client("NONE"), checked);
  const rowsPerMs = CALIBRATION_ROWS / Math.max(1, clock.monotonic() - startedAt);
  // They share the cores, so that each alone would take its part of the time.
  return boundedRows((rowsPerMs * wantedMs) / (WITH_FTE + 1));
}

/** A split is a million of them. */
function boundedRows(rows: number): number {
  return Math.round(Math.min(MOST_ROWS, Math.max(LEAST_ROWS, rows)) / 1_000_000) * 1_000_000;
}

function ownOrdered(rows: number): string {
  return `SELECT * FROM (${ownQuery(rows)}) ORDER BY bucket`;
}

function ownRows(rows: number): readonly (readonly unknown[])[] {
  return ownRowsOf(rows).toSorted(([a], [b]) => Number(a) - Number(b));
}

async function memberDrainOf({ site }: Stage): Promise<string | null> {
  const step = (await site.world.steps(POOL)).findLast(({ kind }) => kind.startsWith("drain_member/"));
  return step === undefined ? null : `${step.state} ${step.outcome ?? ""}`.trim();
}
