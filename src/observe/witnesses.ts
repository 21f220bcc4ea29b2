/** Finds who else spoke of the loss that evidence records: notices of the same machine, and what the cluster shows of its node now. Pure. */
import { type Evidence, EVIDENCE_REASONS } from "../model/evidence.ts";
import type { Witness } from "../model/witness.ts";
import type { NodeFinding } from "../plan/snapshot.ts";
import type { NoticeRecord } from "../store/port.ts";

export interface WitnessInput {
  readonly notices: readonly NoticeRecord[];
  /** The machine of a node, as long as it is remembered. */
  readonly machineOf: (nodeUid: string) => string | undefined;
  /** What the node shows now, notices included. */
  readonly findingsOf: (nodeUid: string) => readonly NodeFinding[];
}

const MAX_WITNESSES = 20;
/** A machine that is stopped and started is the same: words of another day are of another loss. */
const SAME_LOSS_MS = 24 * 3_600_000;
const NO_WITNESS = new Set(["duplicate", "malformed", "unknown_kind"]);

/** By the id of the evidence; without an entry nobody else spoke. */
export function witnessesOf(evidence: readonly Evidence[], input: WitnessInput): ReadonlyMap<string, readonly Witness[]> {
  const byMachine = Map.groupBy(
    input.notices.flatMap((notice) => notice.machineIds.map((machine) => ({ machine, notice }))),
    ({ machine }) => machine,
  );
  const ofOne = (fact: Evidence): readonly Witness[] => {
    const machine = machineOfEvidence(fact, input);
    const notices = (machine === undefined ? [] : (byMachine.get(machine) ?? []))
      .map(({ notice }) => notice)
      .filter((notice) => isWitness(fact, notice))
      .toSorted((a, b) => a.receivedAt - b.receivedAt || (a.id < b.id ? -1 : 1))
      .map(({ id, source, reason, receivedAt, deadline }) => ({ source, reason: reason ?? "", notice: id, at: receivedAt, deadline }));
    return [...notices, ...ofCluster(fact, input)].slice(0, MAX_WITNESSES);
  };
  return new Map(evidence.map((fact) => [fact.id, ofOne(fact)] as const).filter(([, witnesses]) => witnesses.length > 0));
}

function machineOfEvidence({ nodeUid, noticeId }: Evidence, { machineOf, notices }: WitnessInput): string | undefined {
  const ofNode = nodeUid === null ? undefined : machineOf(nodeUid);
  if (ofNode !== undefined || noticeId === null) return ofNode;
  const named = notices.find(({ id }) => id === noticeId)?.machineIds ?? [];
  return named.length === 1 ? named[0] : undefined;
}

function isWitness({ noticeId, firstSeen }: Evidence, { id, reason, outcome, receivedAt }: NoticeRecord): boolean {
  if (id === noticeId || NO_WITNESS.has(outcome) || Math.abs(receivedAt - firstSeen) > SAME_LOSS_MS) return false;
  return reason === "withdrawn" || (reason !== null && Object.hasOwn(EVIDENCE_REASONS, reason));
}

function ofCluster({ nodeUid, noticeId, reason: recorded }: Evidence, { findingsOf }: WitnessInput): readonly Witness[] {
  if (nodeUid === null) return [];
  return findingsOf(nodeUid)
    .filter((finding) => finding.noticeId === null && !(noticeId === null && finding.reason === recorded))
    .map(({ reason, deadline }) => ({ source: "cluster", reason, notice: null, at: null, deadline }));
}
