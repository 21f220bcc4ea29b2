/**
 * The instance protocol: HTTP and JSON under `/relevo/v1/` on the instance's own port, so that any language can speak it. Every POST carries an
 * `Idempotency-Key` (the step id) and the boot id that the caller means; another boot id is answered 409 `boot_id_mismatch`. The same key with the
 * same call answers what it answered first. An instance that does not speak it (`protocol: none`) is judged by its container id and the gateway's counts.
 */
import { z } from "zod";
import { EPOCH_PATTERN, type Epoch } from "../kernel/epoch.ts";

export const PROTOCOL_PREFIX = "/relevo/v1";

export const INSTANCE_STATES = ["starting", "ready", "admitted", "draining", "closed"] as const;

/** GET /relevo/v1/identity */
export const identitySchema = z.object({
  protocol: z.literal("relevo/v1"),
  instance: z.string(),
  /** New with every process. */
  bootId: z.string().min(1),
  state: z.enum(INSTANCE_STATES),
  /** The step that admitted this process; null before. */
  admittedBy: z.string().nullable(),
});
export type Identity = z.infer<typeof identitySchema>;

/** GET /relevo/v1/obligations: accepted work not yet finished. */
export const obligationsSchema = z.object({
  bootId: z.string(),
  requests: z.int().min(0),
  upgraded: z.int().min(0),
  transactions: z.int().min(0),
});
export type Obligations = z.infer<typeof obligationsSchema>;

/** GET /relevo/v1/health: 200 when it can take work, 503 otherwise. */
export const healthSchema = z.object({ ok: z.boolean(), bootId: z.string(), reason: z.string().nullable() });
export type Health = z.infer<typeof healthSchema>;

/** With `admit`, when the pool has a writer lease: where and as whom the instance renews it, and for how long one renewal lasts. The token is a secret. */
export const leaseAccessSchema = z.object({
  /** POST here, with `Authorization: Bearer <token>`. */
  url: z.url(),
  token: z.string().min(1),
  /** `namespace/name`. */
  pool: z.string(),
  instance: z.string(),
  ttlMs: z.int().min(1),
});
export type LeaseAccess = z.infer<typeof leaseAccessSchema>;

/** How the reason of a health answer begins while the instance may not write because it was not able to renew in time: it may again once it is. */
export const LEASE_LAPSED = "lease_lapsed";

/** POST to the `url` of the access: a renewal; with `epoch: null` the holder asks for its epoch. */
export const leaseRenewalSchema = z.object({
  pool: z.string().min(1).max(100),
  instance: z.string().min(1).max(100),
  bootId: z.string().min(1).max(256),
  epoch: z
    .string()
    .regex(EPOCH_PATTERN)
    .transform((text) => text as Epoch)
    .nullable(),
  /** With an epoch: the place at which it was given. It tells a store that was rewound, and does not know the instance, which epochs to compare with. */
  ordinal: z.int().min(0).optional(),
  /** With an epoch: the `proof` of the grant. Without it the epoch is only what the caller says, and no witness against the store. */
  proof: z.string().max(100).optional(),
});

/** The answer: the epoch to write under, and for how long from before the request was sent. */
export const leaseGrantSchema = z.object({
  pool: z.string(),
  ordinal: z.int().min(0),
  writerEpoch: z.string(),
  ttlMs: z.int().min(1),
  /** Shown again with each renewal: that this process was given this epoch at this place. */
  proof: z.string().optional(),
});
export type LeaseGrant = z.infer<typeof leaseGrantSchema>;

/** How the key of a drain begins that is only a hint, of the agent on the node: without a deadline, and taken back by `resume`. */
export const HINT_PREFIX = "hint-";

/** POST /relevo/v1/{prepare,admit,drain,resume,close} */
export const callSchema = z.object({
  bootId: z.string(),
  /** For `drain`: when it must be over (RFC 3339), or null for a drain without an end. Upgraded connections are closed with 1012 before it. */
  deadline: z.iso.datetime({ offset: true }).nullable().optional(),
  lease: leaseAccessSchema.optional(),
});
export type ProtocolCall = z.infer<typeof callSchema>;

export const callAnswerSchema = z.object({ bootId: z.string(), step: z.string(), state: z.enum(INSTANCE_STATES) });
export type ProtocolAnswer = z.infer<typeof callAnswerSchema>;

/** Of an error answer: `{ error: { code, message } }`. */
export const protocolErrorSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });
