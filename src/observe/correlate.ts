/**
 * Which node a notice means, and what becomes of the notice. Pure.
 *
 * 1. A machine is known by its node's providerID, never by a name (`notices/machine.ts`); a node without a providerID matches nothing.
 * 2. A notice stays open as long as its machine has a node: several pools may have to record their own evidence from it, and a candidate must not land there.
 * 3. A notice for a machine that nobody knows waits, because the node may be about to register; after `unknownForMs` it was another cluster's. A node that
 *    is gone may register again as long.
 * 4. Several notices of one loss are one finding, with the earliest deadline: one fact, of which the others are witnesses (`witnesses.ts`).
 * 5. What was announced and did not come is over some minutes after its time: a machine that was spared, or a recommendation that no interruption followed.
 *    Else nothing would ever be placed on that node again. The evidence that was recorded meanwhile stays.
 * 6. A withdrawal ends what its source said before about the same subject, at once. It waits for what may still be on its way from another replica.
 * 7. The order of notices and nodes, and how often one was delivered, have no meaning (I17).
 */
import type { Instant } from "../kernel/clock.ts";
import { EVIDENCE_REASONS, type EvidenceReason } from "../model/evidence.ts";
import { LOSSES } from "../model/phase.ts";
import { machineIdOf } from "../notices/machine.ts";
import { subjectOf } from "../notices/notice.ts";
import type { NodeFinding } from "../plan/snapshot.ts";
import type { NoticeRecord } from "../store/port.ts";
import { compareText } from "../plan/view.ts";

/** What a node is known by. */
export interface NodeIdentity {
  readonly metadata: { readonly uid: string };
  readonly spec: { readonly providerID: string };
}

/**
 * `unknown_machine`: no node has the machine, yet. `machine_found`: its node is here and will go, or just went. The others end a notice. `matched`: its
 * node was here and is gone. `node_gone`: its node was gone before the notice was seen. `passed`: its time is over, and its node is still here.
 * `withdrawn`: its sender took it back.
 */
export type NoticeOutcome =
  | "unknown_machine"
  | "machine_found"
  | "matched"
  | "node_gone"
  | "passed"
  | "withdrawn"
  | "other_cluster"
  | "duplicate"
  | "ignored";

export interface CorrelationInput {
  readonly notices: readonly NoticeRecord[];
  readonly nodes: readonly NodeIdentity[];
  /** False while the nodes are not all known: then nothing is said of machines that are not seen. */
  readonly nodesComplete: boolean;
  /** Machines whose nodes were seen to go, as far as that is remembered. */
  readonly departedMachines: ReadonlySet<string>;
  readonly now: Instant;
  readonly unknownForMs?: number;
  /** How long a recommendation to leave a machine is believed. */
  readonly rebalanceForMs?: number;
}

export interface Correlation {
  /** By node UID; nodes without a finding are absent. */
  readonly findings: ReadonlyMap<string, readonly NodeFinding[]>;
  /** Notices whose outcome is another than is stored, by id. */
  readonly settlements: readonly { readonly noticeId: string; readonly outcome: NoticeOutcome }[];
  /** When time alone changes an outcome. */
  readonly nextLookAt: Instant | null;
}

/** A node registers within minutes of its machine's start, or never. */
export const UNKNOWN_FOR_MS = 5 * 60_000;
/** A machine that is to be taken is taken within moments of its time. */
const PASSED_AFTER_MS = 5 * 60_000;
/** While the nodes are not all known. */
const NODES_AGAIN_MS = 1_000;
/** EC2 names no time. The risk is raised while it recommends; an interruption of most machines that it named came within the hour, or not. */
const REBALANCE_FOR_MS = 60 * 60_000;
/** Nothing without a time of its own announces anything longer than this. */
export const OPEN_FOR_MS = 24 * 3_600_000;

export function correlate(input: CorrelationInput): Correlation {
  const { notices, nodes, now } = input;
  const uidsByMachine = nodesByMachine(nodes);
  const { first, duplicates } = collapse(notices);
  const withdrawnAt = withdrawals(first);
  const outcomes = new Map<string, NoticeOutcome>(duplicates.map((notice) => [notice.id, "duplicate"]));
  const collected = new Map<string, NodeFinding[]>();
  let nextLookAt: Instant | null = null;

  for (const notice of first) {
    const finding = findingOf(notice);
    const uids = notice.machineIds.flatMap((machine) => uidsByMachine.get(machine) ?? []);
    const outcome = outcomeOf(notice, { finding, hasNode: uids.length > 0, isWithdrawn: isWithdrawn(notice, withdrawnAt) }, input);
    if (outcome !== undefined) outcomes.set(notice.id, outcome);
    const lookAt = nextLook(notice, outcome, uids.length > 0, input);
    if (lookAt !== null) nextLookAt = Math.min(nextLookAt ?? Number.POSITIVE_INFINITY, Math.max(now, lookAt));
    if (finding !== undefined && outcome === "machine_found")
      for (const uid of uids) collected.set(uid, [...(collected.get(uid) ?? []), finding]);
  }

  const stored = new Map(notices.map((notice) => [notice.id, notice.outcome]));
  return {
    findings: new Map([...collected].toSorted(byKey).map(([uid, findings]) => [uid, mergeFindings(findings)])),
    settlements: [...outcomes]
      .toSorted(byKey)
      .flatMap(([noticeId, outcome]) => (stored.get(noticeId) === outcome ? [] : [{ noticeId, outcome }])),
    nextLookAt,
  };
}

/** One finding per class of loss: the earliest deadline, then the registry's order of reasons, then the one with a notice, the smallest id first. */
export function mergeFindings(findings: readonly NodeFinding[]): readonly NodeFinding[] {
  return LOSSES.flatMap((loss) =>
    findings
      .filter((finding) => finding.loss === loss)
      .toSorted(compareFindings)
      .slice(0, 1),
  );
}

interface Seen {
  readonly finding: NodeFinding | undefined;
  readonly hasNode: boolean;
  readonly isWithdrawn: boolean;
}

/** Undefined: leave it as it is. */
function outcomeOf(
  notice: NoticeRecord,
  { finding, hasNode, isWithdrawn: isTakenBack }: Seen,
  input: CorrelationInput,
): NoticeOutcome | undefined {
  const { nodesComplete, departedMachines, now, unknownForMs = UNKNOWN_FOR_MS } = input;
  const isOver = now - notice.receivedAt >= unknownForMs;
  if (isWithdrawal(notice)) return isOver ? "passed" : undefined;
  if (finding === undefined || notice.machineIds.length === 0) return "ignored";
  if (isTakenBack) return "withdrawn";
  if (hasNode) return now >= expiryOf(notice, input) ? "passed" : "machine_found";
  if (!nodesComplete) return undefined;
  if (notice.outcome === "machine_found") return isOver ? "matched" : "machine_found";
  if (notice.machineIds.some((machine) => departedMachines.has(machine))) return "node_gone";
  return isOver ? "other_cluster" : "unknown_machine";
}

/** When time alone may change what is said of a notice; null: never. */
function nextLook(notice: NoticeRecord, outcome: NoticeOutcome | undefined, hasNode: boolean, input: CorrelationInput): Instant | null {
  const { unknownForMs = UNKNOWN_FOR_MS } = input;
  if (isWithdrawal(notice)) return outcome === undefined ? notice.receivedAt + unknownForMs : null;
  if (outcome === "machine_found" && hasNode) return expiryOf(notice, input);
  if (outcome === "unknown_machine" || outcome === "machine_found") return notice.receivedAt + unknownForMs;
  return outcome === undefined ? input.now + NODES_AGAIN_MS : null;
}

/** When what a notice says of a machine that is still here is no longer believed. */
function expiryOf({ deadline, reason, receivedAt }: NoticeRecord, { rebalanceForMs = REBALANCE_FOR_MS }: CorrelationInput): Instant {
  if (deadline !== null) return deadline + PASSED_AFTER_MS;
  return receivedAt + (reason === "node_rebalance" ? rebalanceForMs : OPEN_FOR_MS);
}

const isWithdrawal = ({ reason }: NoticeRecord): boolean => reason === "withdrawn";

/** By subject: when it was last taken back. */
function withdrawals(notices: readonly NoticeRecord[]): ReadonlyMap<string, Instant> {
  const latest = new Map<string, Instant>();
  for (const notice of notices) {
    const subject = isWithdrawal(notice) ? subjectOf(notice) : undefined;
    if (subject !== undefined) latest.set(subject, Math.max(latest.get(subject) ?? 0, notice.receivedAt));
  }
  return latest;
}

function isWithdrawn(notice: NoticeRecord, withdrawnAt: ReadonlyMap<string, Instant>): boolean {
  const subject = withdrawnAt.size === 0 || isWithdrawal(notice) ? undefined : subjectOf(notice);
  const at = subject === undefined ? undefined : withdrawnAt.get(subject);
  return at !== undefined && notice.receivedAt <= at;
}

function nodesByMachine(nodes: readonly NodeIdentity[]): ReadonlyMap<string, readonly string[]> {
  const uids = new Map<string, Set<string>>();
  for (const { metadata, spec } of nodes) {
    const machine = machineIdOf(spec.providerID);
    if (machine !== undefined) uids.set(machine, (uids.get(machine) ?? new Set()).add(metadata.uid));
  }
  return new Map([...uids].map(([machine, set]) => [machine, [...set]]));
}

/** Of several deliveries of one notice the oldest counts. */
function collapse(notices: readonly NoticeRecord[]): {
  readonly first: readonly NoticeRecord[];
  readonly duplicates: readonly NoticeRecord[];
} {
  const first = new Map<string, NoticeRecord>();
  const duplicates: NoticeRecord[] = [];
  for (const notice of notices.toSorted((a, b) => a.receivedAt - b.receivedAt || compareText(a.id, b.id))) {
    const key = `${notice.source} ${notice.dedupeKey}`;
    const known = first.get(key);
    if (known === undefined) first.set(key, notice);
    else if (known.id !== notice.id) duplicates.push(notice);
  }
  return { first: [...first.values()], duplicates };
}

function findingOf({ id, reason, deadline }: NoticeRecord): NodeFinding | undefined {
  if (reason === null || !Object.hasOwn(EVIDENCE_REASONS, reason)) return undefined;
  const known = reason as EvidenceReason;
  return { reason: known, loss: EVIDENCE_REASONS[known], deadline, noticeId: id };
}

const REASON_ORDER = Object.keys(EVIDENCE_REASONS) as readonly EvidenceReason[];

function compareFindings(a: NodeFinding, b: NodeFinding): number {
  return (
    compareDeadlines(a.deadline, b.deadline) ||
    REASON_ORDER.indexOf(a.reason) - REASON_ORDER.indexOf(b.reason) ||
    Number(a.noticeId === null) - Number(b.noticeId === null) ||
    compareText(a.noticeId ?? "", b.noticeId ?? "")
  );
}

function compareDeadlines(a: Instant | null, b: Instant | null): number {
  if (a === b) return 0;
  return (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY);
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return compareText(a, b);
}
