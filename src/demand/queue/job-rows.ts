/** The statements of the queue, prepared once. Each runs within a turn of its caller, except those that only read. */
import type { DatabaseSync } from "node:sqlite";

export interface QueueRow {
  readonly key: number;
  readonly name: string | null;
  readonly created_at: number;
  readonly max_attempts: number;
  readonly waiting: number;
  readonly taken: number;
  readonly dead: number;
  readonly done: number;
  readonly nothing: number;
  readonly failed: number;
  readonly reaped: number;
}

export const WAITING = 0;
export const TAKEN = 1;
export const DEAD = 2;
export const FINISHED = 3;

export interface JobRow {
  readonly seq: number;
  readonly queue: number;
  readonly id: string;
  readonly payload: string;
  readonly state: number;
  readonly attempt: number;
  readonly worker: string | null;
  readonly lease: string | null;
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly ended_at: number | null;
}

type Counter = "waiting" | "taken" | "dead" | "done" | "nothing" | "failed" | "reaped";
export type CounterChanges = Partial<Readonly<Record<Counter, number>>>;

export type JobRows = ReturnType<typeof prepareRows>;

export function prepareRows(database: DatabaseSync) {
  const one = <T>(sql: string) => {
    const statement = database.prepare(sql);
    return (...values: (string | number | null)[]): T | undefined => statement.get(...values) as T | undefined;
  };
  const all = <T>(sql: string) => {
    const statement = database.prepare(sql);
    return (...values: (string | number | null)[]): readonly T[] => statement.all(...values) as unknown as T[];
  };
  const run = (sql: string) => {
    const statement = database.prepare(sql);
    return (...values: (string | number | null)[]): number => Number(statement.run(...values).changes);
  };
  const count = run(
    `UPDATE queues SET waiting = waiting + ?, taken = taken + ?, dead = dead + ?, done = done + ?, "nothing" = "nothing" + ?, failed = failed + ?,
      reaped = reaped + ? WHERE key = ?`,
  );
  return {
    queue: one<QueueRow>("SELECT * FROM queues WHERE name = ?"),
    queueByKey: one<QueueRow>("SELECT * FROM queues WHERE key = ?"),
    queues: all<QueueRow>("SELECT * FROM queues WHERE name IS NOT NULL ORDER BY name"),
    queueCount: one<{ readonly count: number }>("SELECT count(*) AS count FROM queues WHERE name IS NOT NULL"),
    lastCreated: one<{ readonly at: number | null }>("SELECT max(created_at) AS at FROM queues"),
    insertQueue: run("INSERT INTO queues (name, created_at, max_attempts) VALUES (?, ?, ?)"),
    setMaxAttempts: run("UPDATE queues SET max_attempts = ? WHERE key = ?"),
    dropQueue: run("UPDATE queues SET name = NULL WHERE key = ?"),
    droppedQueue: one<QueueRow>("SELECT * FROM queues WHERE name IS NULL LIMIT 1"),
    deleteQueue: run("DELETE FROM queues WHERE key = ?"),
    deleteJobsOf: run("DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE queue = ? LIMIT ?)"),
    change: (key: number, by: CounterChanges): number =>
      count(by.waiting ?? 0, by.taken ?? 0, by.dead ?? 0, by.done ?? 0, by.nothing ?? 0, by.failed ?? 0, by.reaped ?? 0, key),
    insertJob: run(`INSERT INTO jobs (queue, id, payload, state, enqueued_at) VALUES (?, ?, ?, ${WAITING}, ?) ON CONFLICT DO NOTHING`),
    job: one<JobRow>("SELECT * FROM jobs WHERE queue = ? AND id = ?"),
    nextJobs: all<JobRow>(`SELECT * FROM jobs WHERE queue = ? AND state = ${WAITING} ORDER BY seq LIMIT ?`),
    oldest: one<{ readonly enqueued_at: number }>(
      `SELECT enqueued_at FROM jobs WHERE queue = ? AND state = ${WAITING} ORDER BY seq LIMIT 1`,
    ),
    newest: one<{ readonly enqueued_at: number }>("SELECT enqueued_at FROM jobs ORDER BY seq DESC LIMIT 1"),
    take: run(
      `UPDATE jobs SET state = ${TAKEN}, attempt = attempt + 1, worker = ?, lease = ?, lease_until = ?, reason = NULL WHERE seq = ?`,
    ),
    extend: run("UPDATE jobs SET lease_until = ? WHERE seq = ?"),
    /** Its lease stays: the answer to its completion may be asked for again. */
    finish: run(
      `UPDATE jobs SET state = ${FINISHED}, payload = '', outcome = ?, result = ?, lease_until = NULL, ended_at = ? WHERE seq = ?`,
    ),
    giveBack: run(
      `UPDATE jobs SET state = ${WAITING}, attempt = ?, worker = NULL, lease = NULL, lease_until = NULL, reason = ? WHERE seq = ?`,
    ),
    kill: run(`UPDATE jobs SET state = ${DEAD}, worker = NULL, lease = NULL, lease_until = NULL, reason = ?, ended_at = ? WHERE seq = ?`),
    expired: all<JobRow>(`SELECT * FROM jobs WHERE state = ${TAKEN} AND lease_until <= ? LIMIT ?`),
    lengthen: run(`UPDATE jobs SET lease_until = ? WHERE state = ${TAKEN} AND lease_until < ?`),
    deadJobs: all<JobRow>(`SELECT * FROM jobs WHERE queue = ? AND state = ${DEAD} ORDER BY seq LIMIT ?`),
    /** `from` inclusive, `to` exclusive. */
    tagged: all<{ readonly state: number; readonly outcome: string | null; readonly count: number; readonly oldest: number }>(
      "SELECT state, outcome, count(*) AS count, min(enqueued_at) AS oldest FROM jobs WHERE queue = ? AND id >= ? AND id < ? GROUP BY state, outcome",
    ),
    removeTagged: run("DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE queue = ? AND id >= ? AND id < ? AND state = ? LIMIT ?)"),
    finishedCount: one<{ readonly count: number }>(`SELECT count(*) AS count FROM jobs WHERE state = ${FINISHED}`),
    forgetFinishedBefore: run(
      `DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE state = ${FINISHED} AND ended_at < ? ORDER BY ended_at LIMIT ?)`,
    ),
    writer: one<{ readonly era: number; readonly counter: number }>("SELECT era, counter FROM writers WHERE workload = ?"),
    writerCount: one<{ readonly count: number }>("SELECT count(*) AS count FROM writers"),
    setWriter: run("INSERT OR REPLACE INTO writers (workload, era, counter, seen_at) VALUES (?, ?, ?, ?)"),
  };
}
