/** The planner's moves as changes of the store: all of one move commit together. */
import { assert } from "../kernel/assert.ts";
import type { Ids } from "../kernel/ids.ts";
import { mayMove } from "../model/phase.ts";
import { snapshotOf } from "../model/pool.ts";
import type { Move } from "../plan/decision.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import type { Change, InstanceFacts } from "../store/port.ts";

/** An instance's id goes into names and label values. */
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export function changesOf(move: Move, snapshot: PoolSnapshot, ids: Ids): readonly Change[] {
  switch (move.kind) {
    case "add_instance":
      return [addInstance(move, snapshot, ids)];
    case "take_standby": {
      const { instance, replaces, ordinal } = move;
      return [{ kind: "take_standby", instance, replaces, ordinal }];
    }
    case "pass_writer": {
      const { ordinal, after, to } = move;
      return [{ kind: "pass_writer", ordinal, after, to }];
    }
    case "record_evidence":
      return [{ kind: "record_evidence", id: ids.next("evidence"), evidence: move.evidence }];
    case "move":
      return moveInstance(move, snapshot);
    case "renew_incarnation":
      return renewIncarnation(move);
    case "trust": {
      const { instance, incarnation, from, to } = move;
      return [{ kind: "set_trust", instance, incarnation, from, to }];
    }
    case "set_desired": {
      const { from, to, state, reason } = move;
      return [{ kind: "set_desired", from, to, state, reason }];
    }
    default:
      return move satisfies never;
  }
}

function addInstance({ ordinal, purpose, replaces }: Extract<Move, { kind: "add_instance" }>, snapshot: PoolSnapshot, ids: Ids): Change {
  const id = ids.next(snapshot.name);
  assert(DNS_LABEL.test(id), `the instance id ${id} is no DNS label`);
  const { blueprintHash } = snapshot;
  return { kind: "create_instance", instance: { id, ordinal, purpose, replaces, blueprintHash, blueprint: snapshotOf(snapshot.spec) } };
}

function moveInstance(move: Extract<Move, { kind: "move" }>, snapshot: PoolSnapshot): readonly Change[] {
  const { instance, from, to, drain, seal, failure, lostObligations } = move;
  const set: InstanceFacts = {
    ...(drain === undefined ? {} : { drainLoss: drain.loss, drainDeadline: drain.deadline }),
    ...(seal === undefined ? {} : { seal }),
    ...(failure === undefined ? {} : { failure }),
  };
  const moved: Change = { kind: "move_instance", instance, from, to, set };
  if (seal === undefined && lostObligations === undefined) return [moved];
  const record = snapshot.instances.find((each) => each.record.id === instance)?.record;
  const loss = drain?.loss ?? record?.drainLoss ?? "forced";
  // A seal without a loss of obligations counts the instance in its class (D18).
  return [moved, { kind: "count_loss", instance, loss, obligations: lostObligations ?? 0, seal: seal ?? record?.seal ?? "forced" }];
}

/** What took traffic, or was about to, is prepared anew; what is made or leaving only learns which process it is. */
function renewIncarnation(move: Extract<Move, { kind: "renew_incarnation" }>): readonly Change[] {
  const { instance, after, incarnation, phase, lostObligations } = move;
  const renewed: Change = { kind: "renew_incarnation", instance, after, incarnation };
  const lost: readonly Change[] =
    lostObligations === null ? [] : [{ kind: "count_loss", instance, loss: "forced", obligations: lostObligations, seal: "forced" }];
  return mayMove(phase, "preparing") && phase !== "creating"
    ? [renewed, { kind: "move_instance", instance, from: phase, to: "preparing" }, ...lost]
    : [renewed, ...lost];
}
