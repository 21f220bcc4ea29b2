/** What GCP's metadata server says about the end of its machine. */
import { MetadataUnreadable } from "../read-metadata.ts";
import type { Said } from "../standing.ts";

/** Below `/computeMetadata/v1/`. */
export const GCP_PATHS = { preempted: "instance/preempted", maintenance: "instance/maintenance-event" } as const;
export type GcpPath = (typeof GCP_PATHS)[keyof typeof GCP_PATHS];

export const GCP_ALL_PATHS: readonly GcpPath[] = Object.values(GCP_PATHS);

/** The machine is ended for maintenance of its host; with `MIGRATE_…` it goes on, after a moment, on another host. */
export const TERMINATE = "TERMINATE_ON_HOST_MAINTENANCE";
export const MIGRATE = "MIGRATE_ON_HOST_MAINTENANCE";

/** Throws MetadataUnreadable. */
export function readGcp(kind: GcpPath, text: string): readonly Said[] {
  const value = text.trim();
  if (!/^[A-Za-z_]{1,64}$/.test(value)) throw new MetadataUnreadable(`no value of ${kind}: ${value.slice(0, 40)}`);
  const word = value.toUpperCase();
  switch (kind) {
    case GCP_PATHS.preempted:
      if (word === "FALSE") return [];
      if (word !== "TRUE") throw new MetadataUnreadable(`neither TRUE nor FALSE: ${value}`);
      return [{ kind, meaning: word, time: null, document: word, isGoing: true }];
    case GCP_PATHS.maintenance:
      return word === "NONE" ? [] : [{ kind, meaning: word, time: null, document: word, isGoing: word === TERMINATE }];
    default:
      return kind satisfies never;
  }
}
