import { compareEpochs, type Epoch } from "../../kernel/epoch.ts";
import { isRouted } from "../../model/phase.ts";
import type { Checker } from "./checker.ts";

/** Watches: results as they land at a sink, the ground truth of who writes. */
export function oneWriterPerWorkload(): Checker {
  /** By workload: the newest epoch under which anything landed. */
  const newest = new Map<string, string>();
  /** By workload and epoch: the process. */
  const writers = new Map<string, string>();
  return {
    id: "I1",
    rule: "at most one accepted writer per workload, only at the current epoch",
    watches: ["landed", "answer_landed"],
    on(event, { violate }) {
      if (event.type !== "landed" && event.type !== "answer_landed") return;
      const { epoch, bootId } = event;
      const workload = event.type === "landed" ? event.workload : `${event.route}#${event.ordinal}`;
      const writer = writers.get(`${workload} ${epoch}`);
      if (writer !== undefined && writer !== bootId) violate(`${workload} is written under ${epoch} by ${writer} and by ${bootId}`);
      writers.set(`${workload} ${epoch}`, bootId);
      if (event.type === "answer_landed") return;
      const before = newest.get(workload);
      if (before !== undefined && compareEpochs(epoch as Epoch, before as Epoch) < 0)
        violate(`${workload}: a result under ${epoch} landed after one under ${before}`);
      newest.set(workload, epoch);
    },
  };
}

/** Watches: the rows of workloads, and what each gateway replica refused and takes. */
export function tombstonesStay(): Checker {
  const rows = new Map<string, { readonly writerEpoch: Epoch; readonly minAcceptedEpoch: Epoch }>();
  const refused = new Map<string, Epoch>();
  return {
    id: "I2",
    rule: "a tombstoned epoch never regains acceptance",
    watches: ["rows_read", "answer_landed", "answer_refused", "store_rewound"],
    on(event, { violate }) {
      if (event.type === "store_rewound") rows.clear();
      if (event.type === "answer_landed" || event.type === "answer_refused") {
        const key = `${event.replica} ${event.route} ${event.ordinal}`;
        const known = refused.get(key);
        const isOld = known !== undefined && compareEpochs(event.epoch, known) <= 0;
        if (event.type === "answer_landed" && isOld) violate(`${key} takes ${event.epoch} again, having refused ${known}`);
        if (event.type === "answer_refused" && !isOld) refused.set(key, event.epoch);
        return;
      }
      if (event.type !== "rows_read") return;
      for (const { pool, ordinal, writerEpoch, minAcceptedEpoch, holder } of event.rows.workloads) {
        const key = `${pool} ${ordinal}`;
        // Of all that ever wrote only the holder is accepted, and nobody while there is none.
        const order = compareEpochs(minAcceptedEpoch, writerEpoch);
        if (holder === null ? order <= 0 : order !== 0)
          violate(`${key}: ${minAcceptedEpoch} and newer is accepted while ${holder?.instance ?? "nobody"} holds ${writerEpoch}`);
        const before = rows.get(key);
        if (before && compareEpochs(writerEpoch, before.writerEpoch) < 0)
          violate(`${key}: the writer's epoch fell from ${before.writerEpoch} to ${writerEpoch}`);
        if (before && compareEpochs(minAcceptedEpoch, before.minAcceptedEpoch) < 0)
          violate(`${key}: the tombstone fell from ${before.minAcceptedEpoch} to ${minAcceptedEpoch}`);
        rows.set(key, { writerEpoch, minAcceptedEpoch });
      }
    },
  };
}

/** Watches: commits that pass a lease on. */
export function leaseLeavesWhatIsOver(): Checker {
  const holders = new Map<string, { readonly instance: string; readonly incarnation: number }>();
  const fenced = new Set<string>();
  return {
    id: "I1/pass",
    rule: "a lease leaves its holder when that one is sealed, fenced, or another process by now",
    watches: ["committed"],
    on(event, { mirror, violate }) {
      if (event.type !== "committed") return;
      const ended = new Set<string>();
      for (const change of event.changes) {
        if (change.kind === "set_trust" && change.to === "fenced") fenced.add(`${change.instance} ${change.incarnation}`);
        if (change.kind === "renew_incarnation") ended.add(change.instance);
        if (change.kind === "move_instance" && change.to !== "serving" && change.to !== "draining") ended.add(change.instance);
      }
      for (const change of event.changes) {
        if (change.kind !== "pass_writer") continue;
        const key = `${event.authority.pool} ${change.ordinal}`;
        const holder = holders.get(key);
        const known = mirror.get(holder?.instance ?? "");
        const isThere =
          known !== undefined && known.incarnation === holder?.incarnation && (isRouted(known.phase) || known.phase === "draining");
        if (holder && isThere && !ended.has(holder.instance) && !fenced.has(`${holder.instance} ${holder.incarnation}`))
          violate(`the lease of ${key} leaves ${holder.instance}, which is ${known.phase}, for ${change.to?.instance ?? "nobody"}`);
        if (change.to === null) holders.delete(key);
        else holders.set(key, change.to);
      }
    },
  };
}
