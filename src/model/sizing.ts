/** What an operator declares of the place that a pool's clusters run in: what a machine offers, what each takes of a quota, and how long a notice is. */
import { z } from "zod";
import { parseQuantity } from "../kernel/units.ts";
import { someTime } from "./duration.ts";

/** Text such as `1500m` or `2Gi` in documents, cores or bytes in code. */
const quantity = z
  .string()
  .max(40)
  .refine((text) => (parseQuantity(text) ?? -1) >= 0, "a quantity such as 500m, 4 or 16Gi")
  .transform((text) => parseQuantity(text) ?? 0);

const dimension = z.string().min(1).max(100);

const machineSchema = z.strictObject({
  name: z.string().min(1).max(100),
  /** Allocatable, as its node says. */
  cpu: quantity,
  memory: quantity,
  disks: z
    .array(z.strictObject({ type: z.string().min(1).max(60), gb: z.int().min(1).max(1_000_000) }))
    .max(20)
    .default([]),
  /** What one of it takes of other dimensions: `{ CPUS: 4 }`. */
  uses: z.record(dimension, z.number().min(0)).default({}),
});
export type Machine = z.output<typeof machineSchema>;

const quotaSchema = z.strictObject({
  dimension,
  limit: z.number().min(0),
  /** Absent: it is read from the provider, and held where that fails. */
  used: z.number().min(0).optional(),
});
export type Quota = z.output<typeof quotaSchema>;

export const sizingSchema = z.strictObject({
  /** Machines that the pool's nodes may be. */
  machines: z.array(machineSchema).max(50).default([]),
  /** What DaemonSets and the system ask for on each node before any pod of the pool. */
  tax: z.strictObject({ cpu: quantity.prefault("1500m"), memory: quantity.prefault("1894Mi") }).prefault({}),
  quotas: z.array(quotaSchema).max(50).default([]),
  /** From a spot notice to the end of the machine. */
  notice: someTime.prefault("2m"),
});
export type Sizing = z.output<typeof sizingSchema>;

/** Disk types of Google Cloud, by the dimension that they count in. */
const DISK_DIMENSIONS: Readonly<Record<string, string>> = {
  "pd-standard": "DISKS_TOTAL_GB",
  "pd-balanced": "SSD_TOTAL_GB",
  "pd-ssd": "SSD_TOTAL_GB",
  "local-ssd": "LOCAL_SSD_TOTAL_GB",
  "hyperdisk-balanced": "HDB_TOTAL_GB",
};

/** What one machine takes, by dimension; a disk of a type that no dimension is known of counts in none: `uses` says it. */
export function takenByMachine({ disks, uses }: Machine): ReadonlyMap<string, number> {
  const taken = new Map(Object.entries(uses));
  for (const { type, gb } of disks) {
    const of = DISK_DIMENSIONS[type];
    if (of !== undefined) taken.set(of, (taken.get(of) ?? 0) + gb);
  }
  return taken;
}
