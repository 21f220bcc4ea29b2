/** Proof of configuration by its effect (T1): what was declared, hop by hop, to what the running process has. */
import { z } from "zod";

/** Each kind is proven in its own way (`src/proof/effect/judge.ts`). */
export const KEY_KINDS = ["config", "jvm", "exchange", "access", "session"] as const;
export type KeyKind = (typeof KEY_KINDS)[number];

/** In their order; each needs the one before. */
export const HOPS = ["declared", "rendered", "delivered", "effective"] as const;
export type Hop = (typeof HOPS)[number];

/**
 * How far a key has come: the four hops, or that it will not come further. `dropped`: who was to render it did not, or the process did not take it. `stale`: a
 * process has it as it was before the change.
 */
export const EFFECT_STATES = [...HOPS, "dropped", "stale"] as const;
export type EffectState = (typeof EFFECT_STATES)[number];

export const TRINO_ROLES = ["coordinator", "worker"] as const;
export type TrinoRole = (typeof TRINO_ROLES)[number];

/** One setting of one role: `config.properties`, `query.max-memory`; of `jvm.config` the option without its value; of the session its property. */
export interface EffectKey {
  readonly kind: KeyKind;
  readonly role: TrinoRole;
  readonly file: string;
  readonly name: string;
}

export const hopSchema = z.object({
  hop: z.enum(HOPS),
  /** Null: it is not there, or nobody could read it (`where` says which). Secrets are not shown. */
  value: z.string().nullable(),
  /** Where it was seen, or why it was not: `ConfigMap trino-a-coordinator`, `SHOW SESSION at 10.0.0.7`. */
  where: z.string(),
});
export type HopSeen = z.output<typeof hopSchema>;

export const effectRowSchema = z.object({
  instance: z.string(),
  /** Null: of an instance without such a pod. */
  pod: z.string().nullable(),
  kind: z.enum(KEY_KINDS),
  role: z.enum(TRINO_ROLES),
  file: z.string(),
  name: z.string(),
  hops: z.array(hopSchema),
  state: z.enum(EFFECT_STATES),
  message: z.string(),
  todo: z.string().nullable(),
});
export type EffectRow = z.output<typeof effectRowSchema>;

/** Of the owner of an instance's configuration: an operator that was found paused or stopped (T18). */
export const ownerNoteSchema = z.object({ instance: z.string(), owner: z.string(), message: z.string(), todo: z.string().nullable() });
export type OwnerNote = z.output<typeof ownerNoteSchema>;

export const effectReportSchema = z.object({ rows: z.array(effectRowSchema), notes: z.array(ownerNoteSchema) });
export type EffectReport = z.output<typeof effectReportSchema>;

export function isEffective({ rows, notes }: EffectReport): boolean {
  return notes.length === 0 && rows.every(({ state }) => state === "effective");
}
