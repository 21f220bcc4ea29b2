/** What the commits say that the instances are: kept from the changes alone, so that checkers need no query. */
import type { Epoch } from "../kernel/epoch.ts";
import { isLeaving, type Loss, type Phase } from "../model/phase.ts";
import type { Change, PoolRows } from "../store/port.ts";

export interface MirroredInstance {
  readonly id: string;
  /** `namespace/name`. */
  readonly pool: string;
  readonly ordinal: number;
  readonly replaces: string | null;
  phase: Phase;
  incarnation: number;
  /** Of the process that was admitted; null before. */
  bootId: string | null;
  drainLoss: Loss | null;
  readonly evidence: Map<Loss, string>;
}

export class Mirror {
  readonly instances = new Map<string, MirroredInstance>();
  /** Of the last claim of each pool. */
  readonly epochs = new Map<string, Epoch>();

  get(id: string): MirroredInstance | undefined {
    return this.instances.get(id);
  }

  /** Of one pool, or of all. */
  living(of?: string): readonly MirroredInstance[] {
    return [...this.instances.values()].filter(({ pool, phase }) => phase !== "deleted" && (of === undefined || pool === of));
  }

  serving(of?: string): number {
    return this.living(of).filter(({ phase }) => phase === "serving").length;
  }

  staying(of?: string): readonly MirroredInstance[] {
    return this.living(of).filter(({ phase }) => !isLeaving(phase));
  }

  /** The store is what it was once: what was committed since is not known to it any more. */
  rewind(pools: readonly PoolRows[]): void {
    this.instances.clear();
    this.epochs.clear();
    for (const { pool, authorityEpoch, instances, evidence } of pools) {
      this.epochs.set(pool, authorityEpoch);
      for (const { id, ordinal, replaces, phase, incarnation, drainLoss } of instances)
        this.instances.set(id, {
          id,
          pool,
          ordinal,
          replaces,
          phase,
          incarnation: incarnation.number,
          bootId: incarnation.bootId,
          drainLoss,
          evidence: new Map(),
        });
      for (const { instance, loss, reason } of evidence) this.instances.get(instance)?.evidence.set(loss, reason);
    }
  }

  apply(pool: string, change: Change): void {
    switch (change.kind) {
      case "create_instance": {
        const { id, ordinal, replaces } = change.instance;
        this.instances.set(id, {
          id,
          pool,
          ordinal,
          replaces,
          phase: "pending",
          incarnation: 0,
          bootId: null,
          drainLoss: null,
          evidence: new Map(),
        });
        return;
      }
      case "move_instance":
      case "update_instance": {
        const instance = this.instances.get(change.instance);
        if (instance === undefined) return;
        if (change.kind === "move_instance") instance.phase = change.to;
        instance.drainLoss = change.set?.drainLoss ?? instance.drainLoss;
        instance.bootId = change.set?.bootId ?? instance.bootId;
        return;
      }
      case "take_standby": {
        const { instance, replaces, ordinal } = change;
        const standby = this.instances.get(instance);
        if (standby !== undefined) this.instances.set(instance, { ...standby, replaces, ordinal });
        return;
      }
      case "renew_incarnation": {
        const instance = this.instances.get(change.instance);
        if (instance !== undefined) Object.assign(instance, { incarnation: change.after + 1, bootId: null });
        return;
      }
      case "record_evidence": {
        const { instance, loss, reason } = change.evidence;
        const evidence = this.instances.get(instance)?.evidence;
        if (evidence?.has(loss) === false) evidence.set(loss, reason);
        return;
      }
      case "set_trust":
      case "pass_writer":
      case "record_step":
      case "end_step":
      case "retry_step":
      case "count_loss":
      case "set_reasons":
      case "set_desired":
        return;
      default:
        change satisfies never;
    }
  }
}
