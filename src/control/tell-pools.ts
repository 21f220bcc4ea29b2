/** Each transition is an Event on its Pool too. */
import type { Informer } from "../kube/informer.ts";
import { sentenceOf } from "../model/reasons.ts";
import type { JournalEntry } from "../server/control-plane.ts";
import type { Journal } from "./journal.ts";
import type { PoolEntry } from "./pool-informer.ts";
import type { PoolWriter } from "./pool-writer.ts";

const WARNINGS: readonly string[] = ["failed", "node_lost", "pod_lost", "process_unreachable", "lease_expired"];

export function tellPools(journal: Journal, writer: PoolWriter, pools: Informer<PoolEntry>): void {
  journal.subscribe((entry) => {
    if (entry.kind !== "phase" && entry.kind !== "evidence" && entry.kind !== "size") return;
    const pool = pools.list().find(({ key }) => key === entry.pool);
    if (pool) writer.tell(pool, nameOf(entry), messageOf(entry), WARNINGS.includes(entry.code));
  });
}

function nameOf({ kind, code, from }: JournalEntry): string {
  if (kind === "size") return Number(code) > Number(from) ? "ScaledUp" : "ScaledDown";
  return kind === "phase" ? `Instance${pascal(code)}` : "EvidenceRecorded";
}

function messageOf({ kind, subject, code, from, reason }: JournalEntry): string {
  if (kind === "size") return `${from} → ${code} instances${reason ? `: ${sentenceOf(reason)}` : ""}`;
  const what = kind === "evidence" ? `${subject} must be replaced: ${code}` : `${subject}: ${from === null ? code : `${from} → ${code}`}`;
  return reason ? `${what}: ${sentenceOf(reason)}` : what;
}

function pascal(code: string): string {
  return code.replaceAll(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
}
