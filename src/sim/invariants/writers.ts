import { compareEpochs, type Epoch } from "../../kernel/epoch.ts";
import { isRouted } from "../../model/phase.ts";
import type { SimEvent } from "../events.ts";
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
      const { workload, epoch, bootId } = event;
      if (workload === null) return;
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

/** A recovery ends every lease without a commit of any pool: the rows say so. */
function forgetWhoHoldsNothing(holders: Map<string, unknown>, event: SimEvent): void {
  if (event.type !== "rows_read") return;
  for (const { pool, ordinal, holder } of event.rows.workloads) if (holder === null) holders.delete(`${pool} ${ordinal}`);
}

/** Watches: commits that pass a lease on. */
export function leaseLeavesWhatIsOver(): Checker {
  const holders = new Map<string, { readonly instance: string; readonly incarnation: number }>();
  const fenced = new Set<string>();
  return {
    id: "I1/pass",
    rule: "a lease leaves its holder when that one is sealed, fenced, or another process by now",
    watches: ["committed", "rows_read"],
    on(event, { mirror, violate }) {
      forgetWhoHoldsNothing(holders, event);
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

/** Watches: what each gateway replica was sent and has applied, and the answers that it passes on. */
export function gatewaysGoForward(): Checker {
  const applied = new Map<string, Epoch>();
  const tombstones = new Map<string, Epoch>();
  return {
    id: "I2/gateway",
    rule: "a gateway replica applies no older membership and passes on no answer under an epoch that it was told is over",
    watches: ["membership_applied", "answer_landed"],
    on(event, { violate }) {
      if (event.type === "answer_landed") {
        const tombstone = tombstones.get(`${event.replica} ${event.route} ${event.ordinal}`);
        if (tombstone !== undefined && compareEpochs(event.epoch, tombstone) < 0)
          violate(
            `${event.replica} passes on an answer of ${event.route}#${event.ordinal} under ${event.epoch}, and was told ${tombstone}`,
          );
      }
      if (event.type !== "membership_applied") return;
      const { replica, route, generation, writers } = event;
      const before = applied.get(`${replica} ${route}`);
      if (before !== undefined && compareEpochs(generation, before) < 0)
        violate(`${replica} applies ${generation} of ${route} after ${before}`);
      applied.set(`${replica} ${route}`, generation);
      for (const { ordinal, minAccepted } of writers) {
        const key = `${replica} ${route} ${ordinal}`;
        const known = tombstones.get(key);
        if (known === undefined || compareEpochs(minAccepted, known) > 0) tombstones.set(key, minAccepted);
      }
    },
  };
}

/** Watches: commits that admit. Holders as they were passed the lease; who is lost and not fenced may still write. */
export function nobodyIsLetOnBeforeTheFence(): Checker {
  const holders = new Map<string, string>();
  const fenced = new Set<string>();
  return {
    id: "I1/fence",
    rule: "nobody takes traffic in the place of a lost writer before that one is fenced",
    watches: ["committed", "rows_read"],
    on(event, { mirror, violate }) {
      forgetWhoHoldsNothing(holders, event);
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind === "set_trust" && change.to === "fenced") fenced.add(change.instance);
        if (change.kind === "pass_writer") {
          const key = `${event.authority.pool} ${change.ordinal}`;
          if (change.to === null) holders.delete(key);
          else holders.set(key, change.to.instance);
        }
        if (change.kind !== "move_instance" || change.to !== "admitted") continue;
        const holder = holders.get(`${event.authority.pool} ${mirror.get(change.instance)?.ordinal}`);
        const known = mirror.get(holder ?? "");
        if (holder === undefined || holder === change.instance || known === undefined || fenced.has(holder)) continue;
        if ((isRouted(known.phase) || known.phase === "draining") && known.evidence.has("forced"))
          violate(`${change.instance} is admitted while ${holder}, which is lost and not fenced, holds the lease`);
      }
    },
  };
}

/** From the look at the lease to the landing. */
const ON_ITS_WAY_MS = 50;

/** Watches: renewals, and what is written, whether it was taken or not. */
export function holdersStopThemselves(): Checker {
  const until = new Map<string, number>();
  return {
    id: "I1/stop",
    rule: "a holder that could not renew its lease writes nothing after it",
    watches: ["lease_renewed", "landed", "landing_refused"],
    on(event, { truth, violate }) {
      if (event.type === "lease_renewed") until.set(event.bootId, Math.max(until.get(event.bootId) ?? 0, event.sentAt + event.ttlMs));
      if (event.type !== "landed" && event.type !== "landing_refused") return;
      const end = until.get(event.bootId);
      if (end === undefined || truth.now() <= end + ON_ITS_WAY_MS) return;
      const process = truth.processes().find(({ bootId }) => bootId === event.bootId);
      if (process === undefined || process.defiesLease || process.hasStoodStill) return;
      violate(`${process.podName} writes to ${event.workload} ${truth.now() - end} ms after its lease was over`);
    },
  };
}
