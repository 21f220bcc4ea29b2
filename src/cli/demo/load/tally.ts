/** The counts of an act, from the client's own records and the ledger; pure arithmetic. */
import { assert } from "../../../kernel/assert.ts";
import { type Outcome, REQUEST_KINDS, type RequestKind, type RequestRecord, SHORT_KINDS } from "./outcome.ts";

/** How many of the requests that did not complete are told one by one. */
export const MAX_PROBLEMS = 50;

export interface ActResult {
  readonly sent: number;
  readonly completed: number;
  /** Of all, those that waited in the gateway's queue. */
  readonly queued: number;
  readonly rejected: number;
  readonly cut: number;
  readonly lost: number;
  /** Of all, those that the gateway tried more than once. */
  readonly retried: number;
  /** Non-idempotent work that was done twice, by the ledger. */
  readonly doubled: number;
  /** Of the short requests that completed, ms; null when there was none. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly byKind: Readonly<Record<RequestKind, Readonly<Record<Outcome, number>>>>;
  readonly problems: readonly Problem[];
}

export interface Problem {
  readonly id: string;
  readonly kind: RequestKind;
  readonly outcome: Outcome;
  readonly detail: string | null;
  readonly startedAt: number;
  readonly durationMs: number;
}

/** `missing`: acknowledged ids that the ledger does not have; `doubledIds`: those that it has twice and should not. */
export function tallyAct(records: readonly RequestRecord[], missing: ReadonlySet<string>, doubledIds: readonly string[]): ActResult {
  const settled = records.map((record) => withLedger(record, missing));
  const count = (outcome: Outcome): number => settled.filter((record) => record.outcome === outcome).length;
  const ids = new Set(settled.map((record) => record.id));
  const latencies = shortLatencies(settled);
  const result: ActResult = {
    sent: settled.length,
    completed: count("completed"),
    queued: settled.filter((record) => record.queued).length,
    rejected: count("rejected"),
    cut: count("cut"),
    lost: count("lost"),
    retried: settled.filter((record) => record.retried).length,
    doubled: doubledIds.filter((id) => ids.has(rootOf(id))).length,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    byKind: countByKind(settled),
    problems: settled
      .filter((record) => record.outcome !== "completed")
      .slice(0, MAX_PROBLEMS)
      .map(problemOf),
  };
  assert(
    result.sent === result.completed + result.rejected + result.cut + result.lost,
    "every request that was sent ended as completed, rejected, cut or lost",
  );
  return result;
}

/** Whatever else happened to a request: an acknowledged id that is not there is a loss. */
function withLedger(record: RequestRecord, missing: ReadonlySet<string>): RequestRecord {
  const absent = record.acknowledged.find((id) => missing.has(id));
  return absent === undefined ? record : { ...record, outcome: "lost", detail: `acknowledged_but_absent ${absent}` };
}

export function shortLatencies(records: readonly RequestRecord[]): number[] {
  return records.filter((record) => record.outcome === "completed" && SHORT_KINDS.includes(record.kind)).map((record) => record.durationMs);
}

/** Nearest rank: the smallest value that at least this share of all values does not exceed. Null of nothing. */
export function percentile(values: readonly number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

export interface AddedLatency {
  readonly p50AddedMs: number | null;
  readonly p99AddedMs: number | null;
}

/** What an act adds to the short requests, against an undisturbed stretch of the same run; below 0 when it was quicker. Null without a latency on both sides. */
export function addedLatency(act: Pick<ActResult, "p50Ms" | "p99Ms">, undisturbed: Pick<ActResult, "p50Ms" | "p99Ms">): AddedLatency {
  return { p50AddedMs: difference(act.p50Ms, undisturbed.p50Ms), p99AddedMs: difference(act.p99Ms, undisturbed.p99Ms) };
}

function difference(value: number | null, base: number | null): number | null {
  return value === null || base === null ? null : value - base;
}

/** Messages and items are named after their request: `REQUEST.m1`. */
export function rootOf(id: string): string {
  return id.split(".", 1)[0] ?? id;
}

function countByKind(records: readonly RequestRecord[]): ActResult["byKind"] {
  const entries = REQUEST_KINDS.map((kind) => {
    const ofKind = records.filter((record) => record.kind === kind);
    const count = (outcome: Outcome): number => ofKind.filter((record) => record.outcome === outcome).length;
    return [kind, { completed: count("completed"), rejected: count("rejected"), cut: count("cut"), lost: count("lost") }] as const;
  });
  return Object.fromEntries(entries) as ActResult["byKind"];
}

function problemOf({ id, kind, outcome, detail, startedAt, durationMs }: RequestRecord): Problem {
  return { id, kind, outcome, detail, startedAt, durationMs: Math.round(durationMs) };
}
