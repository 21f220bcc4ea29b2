/** A pool that is suspended runs nothing; what goes on running, and billing, beside it is named with its price (T19, T20). */
import { z } from "zod";

const objectName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, "a name of lower-case letters, digits, dashes and dots");

export const COMPANION_KINDS = ["Deployment", "StatefulSet"] as const;

export const residueSchema = z.strictObject({
  /** `node pool trino-1 does not go below one`, `the cluster's fee`. */
  what: z.string().min(1).max(200),
  price: z.number().min(0),
  currency: z.string().regex(/^[A-Z]{3}$/, "a currency of three letters, EUR"),
  per: z.enum(["hour", "month"]),
});
export type Residue = z.output<typeof residueSchema>;

export const suspensionSchema = z.strictObject({
  /** While it is, the pool's size is 0; `relevo suspend` and `relevo resume` write it. */
  suspended: z.boolean().default(false),
  /** Whose own field says that the engine stands: `spec.clusterOperation.stopped`. Of the Pool's namespace, as the companions. */
  owner: z.strictObject({ kind: z.literal("TrinoCluster"), name: objectName }).optional(),
  /** Scaled to 0 with the pool, and back to as many as they had. */
  companions: z
    .array(z.strictObject({ kind: z.enum(COMPANION_KINDS), name: objectName }))
    .max(20)
    .default([]),
  /** What a suspension leaves running, as its operator knows. */
  residue: z.array(residueSchema).max(50).default([]),
});
export type SuspensionSpec = z.output<typeof suspensionSchema>;

/** `stopping`, `starting`: asked for, and not there yet. */
export const SUSPENSION_PHASES = ["on", "stopping", "off", "starting"] as const;
export type SuspensionPhase = (typeof SUSPENSION_PHASES)[number];

export const suspendedPartSchema = z.object({
  /** `Deployment/web`. */
  object: z.string(),
  /** Pods that it has now; null: it is not there, or says none. */
  running: z.int().nullable(),
  /** What it goes back to; null: it is not marked as ours to restore. */
  restoresTo: z.string().nullable(),
  trouble: z.string().nullable(),
});
export type SuspendedPart = z.output<typeof suspendedPartSchema>;

export const suspensionStatusSchema = z.object({
  pool: z.string(),
  phase: z.enum(SUSPENSION_PHASES),
  suspended: z.boolean(),
  serving: z.int(),
  /** As the document says when it is not suspended. */
  desired: z.int(),
  /** Instances that are not gone yet. */
  instances: z.int(),
  parts: z.array(suspendedPartSchema),
  residue: z.array(residueSchema),
  /** By currency, per month of 730 hours. */
  perMonth: z.record(z.string(), z.number()),
});
export type SuspensionStatus = z.output<typeof suspensionStatusSchema>;

const HOURS_PER_MONTH = 730;

/** What goes on billing, by currency; to the cent. */
export function pricePerMonth(residue: readonly Residue[]): Readonly<Record<string, number>> {
  const sums = new Map<string, number>();
  for (const { price, currency, per } of residue)
    sums.set(currency, (sums.get(currency) ?? 0) + price * (per === "hour" ? HOURS_PER_MONTH : 1));
  return Object.fromEntries([...sums].map(([currency, sum]) => [currency, Math.round(sum * 100) / 100]));
}

/** Off is what shows nothing running; on is what serves as many as are wanted. */
export function phaseOf(
  seen: Pick<SuspensionStatus, "suspended" | "serving" | "desired" | "instances"> & { readonly parts: readonly SuspendedPart[] },
): SuspensionPhase {
  const isTrouble = seen.parts.some(({ trouble }) => trouble !== null);
  if (seen.suspended)
    return seen.instances === 0 && !isTrouble && seen.parts.every(({ running }) => (running ?? 0) === 0) ? "off" : "stopping";
  return seen.serving >= seen.desired && !isTrouble && seen.parts.every(({ restoresTo }) => restoresTo === null) ? "on" : "starting";
}
