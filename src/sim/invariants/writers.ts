import { compareEpochs, type Epoch } from "../../kernel/epoch.ts";
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
      for (const { pool, ordinal, writerEpoch, minAcceptedEpoch } of event.rows.workloads) {
        const key = `${pool} ${ordinal}`;
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
