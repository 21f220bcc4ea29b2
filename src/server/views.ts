/** The JSON of the HTTP API: one schema each for the answers, the OpenAPI document and the CLI. Times are RFC 3339 in UTC. */
import { z } from "zod";
import { FINDING_STATES } from "../model/finding.ts";
import { LOSSES, PHASES, SEALS, TRUSTS } from "../model/phase.ts";
import { POD_LOSS_CAUSES } from "../model/pod-loss.ts";
import { SUPPLY_KINDS } from "../plan/evacuation/types.ts";
import { PRIORITIES, routeCountsSchema } from "../model/membership.ts";
import { scaleExplainedView, scaleView } from "./scale-views.ts";
import { ROLES } from "./roles.ts";

const time = z.iso.datetime();
const maybeTime = time.nullable();

export const reasonView = z.object({
  code: z.string().meta({ description: "from the registry of reasons; programs match on it" }),
  sentence: z.string(),
});
export const standingReasonView = reasonView.extend({
  subject: z.string().meta({ description: "an instance, a node, or empty for the pool" }),
  since: maybeTime,
});
export type StandingReasonView = z.infer<typeof standingReasonView>;

export const whoamiView = z.object({
  name: z.string().nullable().meta({ description: "null: the one token, or a program on this machine: nobody verified a name" }),
  role: z.enum(ROLES).nullable(),
});

export const freezeView = z.object({ until: time, why: z.string(), by: z.string() });

const podLossesView = z
  .record(z.enum(POD_LOSS_CAUSES), z.int())
  .meta({ description: "pods of its instances that were lost since this controller began, by cause" });

export const poolView = z.object({
  pool: z.string(),
  namespace: z.string(),
  name: z.string(),
  driver: z.string(),
  mode: z.enum(["Off", "Observe", "Act"]),
  priority: z.enum(PRIORITIES),
  desired: z.int(),
  floor: z.int(),
  max: z.int(),
  serving: z.int(),
  standby: z.object({ wanted: z.int(), ready: z.int().meta({ description: "warm and not taken" }) }),
  phases: z.partialRecord(z.enum(PHASES), z.int()),
  route: z.string(),
  provisioners: z.array(z.string()),
  generation: z.string(),
  authorityEpoch: z.string(),
  owner: z.string().nullable(),
  resourceVersion: z.string().nullable(),
  freeze: freezeView.nullable(),
  heldSteps: z.int(),
  reasons: z.array(standingReasonView),
  losses: z.array(z.object({ loss: z.enum(LOSSES), instances: z.int(), obligations: z.int(), assumedSeals: z.int() })),
  podLosses: podLossesView.optional(),
  traffic: routeCountsSchema.nullable(),
  scale: scaleView.optional().meta({ description: "of a pool whose size follows its demand" }),
});
export type PoolView = z.infer<typeof poolView>;

export const instanceView = z.object({
  id: z.string(),
  pool: z.string(),
  ordinal: z.int(),
  purpose: z.string(),
  replaces: z.string().nullable(),
  phase: z.enum(PHASES),
  phaseSince: time,
  createdAt: time,
  trust: z.enum(TRUSTS),
  health: z.enum(["unknown", "passing", "failing"]),
  incarnation: z.int(),
  pod: z.string().nullable(),
  node: z.string().nullable(),
  address: z.string().nullable(),
  requests: z.int().nullable().meta({ description: "obligations over all gateway replicas; null while no complete report is there" }),
  sessions: z.int().nullable(),
  drain: z.object({ loss: z.enum(LOSSES), since: maybeTime, deadline: maybeTime }).nullable(),
  seal: z.enum(SEALS).nullable(),
  failure: z.string().nullable(),
});
export type InstanceView = z.infer<typeof instanceView>;

export const unfrozenView = z.object({
  pools: z.array(z.string()),
  stillFrozen: z.array(freezeView.extend({ pool: z.string() })).meta({ description: "by a ConfigMap, which only its writer can lift" }),
});

/** Given up by an operator: outside the zero-loss claim. */
export const forcedSealView = z.object({
  pool: z.string(),
  instance: z.string(),
  phase: z.enum(PHASES),
  at: time,
  by: z.string(),
  why: z.string(),
  until: time.meta({ description: "until then somebody looks after what was lost" }),
  obligations: z.int().nullable().meta({ description: "null: no complete report was there" }),
});
export type ForcedSealView = z.infer<typeof forcedSealView>;

/** D16: typed and sanitised; no free text of others. */
export const evidenceView = z.object({
  id: z.string(),
  pool: z.string(),
  instance: z.string(),
  incarnation: z.int(),
  loss: z.enum(LOSSES),
  reason: z.string(),
  firstSeen: time,
  deadline: maybeTime,
  node: z.object({ name: z.string(), uid: z.string().nullable() }).nullable(),
  nodeClaim: z.object({ name: z.string(), uid: z.string().nullable() }).nullable(),
  pod: z.object({ name: z.string(), uid: z.string().nullable() }).nullable(),
  notice: z.string().nullable(),
  /** The first word is the fact itself. */
  witnesses: z
    .array(z.object({ source: z.string(), reason: z.string(), notice: z.string().nullable(), at: maybeTime, deadline: maybeTime }))
    .meta({ description: "who else spoke of the same loss" }),
  authorityEpoch: z.string(),
});
export type EvidenceView = z.infer<typeof evidenceView>;

/** Who writes for one place of a pool. */
export const workloadView = z.object({
  pool: z.string(),
  ordinal: z.int(),
  holder: z.string().nullable().meta({ description: "the instance that may write; null while nobody may" }),
  incarnation: z.int().nullable(),
  writerEpoch: z.string(),
  minAccepted: z.string().meta({ description: "results of an older epoch are stale; never falls" }),
  lease: z.enum(["none", "unwatched", "unasked", "unproven", "renewed", "late", "expired"]),
  renewals: z.int(),
});
export type WorkloadView = z.infer<typeof workloadView>;

/** Whether the store was rewound. */
export const storeView = z.object({
  era: z.int().meta({ description: "rises only by a recovery" }),
  recovered: z.object({ at: time, from: z.int(), why: z.string(), by: z.string() }).nullable(),
  pools: z.array(
    z.object({
      pool: z.string(),
      authorityEpoch: z.string().nullable(),
      generation: z.string().nullable(),
      rewound: z
        .object({
          witness: z.string(),
          what: z.enum(["generation", "authority epoch", "writer epoch", "instance"]),
          seen: z.string(),
          stored: z.string().nullable(),
        })
        .nullable()
        .meta({ description: "who has seen more than the store; the pool is held" }),
      strangers: z.array(z.string()).meta({ description: "instances with objects that the store does not know" }),
    }),
  ),
});
export type StoreView = z.infer<typeof storeView>;

export const stepView = z.object({
  id: z.string(),
  operation: z.string(),
  pool: z.string(),
  instance: z.string().nullable(),
  kind: z.string(),
  state: z.string(),
  outcome: z.string().nullable(),
  attempts: z.int(),
  recordedAt: time,
  endedAt: maybeTime,
  reason: reasonView,
  authorityEpoch: z.string(),
});
export type StepView = z.infer<typeof stepView>;

/** Without the body: it is somebody else's text. */
export const noticeView = z.object({
  id: z.string(),
  source: z.string(),
  receivedAt: time,
  outcome: z.string(),
  reason: z.string().nullable(),
  machines: z.array(z.string()),
  deadline: maybeTime,
});
export type NoticeView = z.infer<typeof noticeView>;

export const senderView = z.object({
  source: z.string(),
  from: z.string(),
  state: z.enum(["heard", "silent", "never heard"]),
  lastHeardAt: maybeTime,
  everyMs: z.int(),
  trouble: z.string().nullable(),
});
export type SenderView = z.infer<typeof senderView>;

export const cordonView = z.object({
  node: z.string(),
  nodeUid: z.string(),
  step: z.string(),
  evidence: z.string().nullable(),
  at: maybeTime,
});
export type CordonView = z.infer<typeof cordonView>;

export const nodeView = z.object({
  name: z.string(),
  uid: z.string(),
  zone: z.string().nullable(),
  instanceType: z.string().nullable(),
  capacityType: z.string().nullable(),
  machine: z.string().nullable(),
  ready: z.boolean(),
  unschedulable: z.boolean(),
  cordonedByUs: z.boolean(),
  deleting: z.boolean(),
  owner: z.object({ provisioner: z.string(), name: z.string(), uid: z.string() }).nullable(),
  findings: z.array(z.object({ reason: z.string(), loss: z.string(), deadline: maybeTime })),
  instances: z.array(z.string()),
});
export type NodeView = z.infer<typeof nodeView>;

export const gatewayView = z.object({
  replica: z.string(),
  registeredAt: time,
  connected: z.boolean(),
  silent: z.boolean(),
  lastReportAt: maybeTime,
  routes: z.array(z.object({ route: z.string(), applied: z.string(), current: z.string(), counts: routeCountsSchema })),
});
export type GatewayView = z.infer<typeof gatewayView>;

export const controllerView = z.object({
  controller: z.string(),
  api: z.string().nullable().meta({ description: "how other replicas and gateways reach it" }),
  here: z.boolean().meta({ description: "it is the one that answers" }),
  live: z.boolean().meta({ description: "false: it is gone, and its pools are about to be taken" }),
  pools: z.array(z.string()),
});
export type ControllerView = z.infer<typeof controllerView>;

export const capacityView = z.object({
  at: time,
  spots: z.array(
    z.object({
      site: z.string(),
      zone: z.string(),
      instanceType: z.string(),
      capacityType: z.string(),
      heat: z.number().meta({ description: "0 is well, 1 is dying" }),
      hot: z.boolean().meta({ description: "avoided while another one is there" }),
      machines: z.int(),
      losses: z.int(),
      launches: z.int(),
      failedLaunches: z.int(),
      lastLossAt: maybeTime,
      lastFailureAt: maybeTime,
    }),
  ),
  placement: z.object({
    avoid: z.object({ zones: z.array(z.string()), instanceTypes: z.array(z.string()), nodes: z.array(z.string()) }),
    capacityType: z.string().nullable(),
  }),
  quotas: z.array(z.object({ nodePool: z.string(), limit: z.int().nullable(), machines: z.int() })),
  readyInMs: z.int().meta({ description: "from the decision to make an instance to one that is ready, as measured" }),
  supplies: z.array(
    z.object({
      id: z.string(),
      kind: z.enum(SUPPLY_KINDS),
      pool: z.string().nullable(),
      free: z.int(),
      reserved: z.int(),
      preemptible: z.int().meta({ description: "of these, how many make room for a higher class" }),
      readyInMs: z.int(),
      boundBy: z.string().nullable(),
    }),
  ),
  absorption: z.object({ site: z.string(), perSecond: z.number(), burst: z.number(), tokens: z.number() }),
  prediction: z
    .object({
      withinMs: z.int(),
      within: z.int(),
      beforeDeadline: z.int(),
      of: z.int(),
      attainable: z.boolean(),
      bottleneck: z.string().nullable(),
    })
    .nullable(),
});
export type CapacityViewJson = z.infer<typeof capacityView>;

export const planView = z.object({
  pool: z.string(),
  at: time,
  decisions: z.array(z.object({ kind: z.string(), subject: z.string(), detail: z.string().nullable(), reason: reasonView })),
  holds: z.array(z.object({ subject: z.string(), until: maybeTime, reason: reasonView })),
  nextLookAt: maybeTime,
});
export type PlanView = z.infer<typeof planView>;

export const explanationView = z.object({
  kind: z.enum(["pool", "instance"]),
  subject: z.string(),
  pool: z.string(),
  at: time,
  reasons: z.array(standingReasonView),
  scale: scaleExplainedView.optional().meta({ description: "of a pool whose size follows its demand" }),
  podLosses: podLossesView.optional(),
  instance: instanceView.nullable(),
  evidence: z.array(evidenceView),
  steps: z.array(stepView),
});
export type ExplanationView = z.infer<typeof explanationView>;

export const journalView = z.object({
  type: z.literal("transition"),
  at: time,
  kind: z.string(),
  pool: z.string().nullable(),
  subject: z.string(),
  code: z.string(),
  from: z.string().nullable(),
  reason: reasonView.nullable(),
});
export type JournalView = z.infer<typeof journalView>;

export const receiptView = z.object({ accepted: z.array(z.string()), duplicates: z.array(z.string()), ignored: z.array(z.string()) });
export type ReceiptView = z.infer<typeof receiptView>;

export const applyView = z.object({ pool: z.string(), result: z.enum(["created", "configured", "unchanged"]), dryRun: z.boolean() });
export type ApplyView = z.infer<typeof applyView>;

export const healthView = z.object({ ok: z.boolean(), now: time, version: z.string() });
export type HealthView = z.infer<typeof healthView>;

export const readinessView = z.object({
  ready: z.boolean(),
  checks: z.array(z.object({ name: z.string(), ok: z.boolean(), message: z.string() })),
});
export type ReadinessView = z.infer<typeof readinessView>;

export const protectionView = z.object({
  instance: z.string(),
  pod: z.string(),
  uid: z.string(),
  node: z.string().nullable(),
  provisioner: z.string().nullable(),
  owners: z.array(z.string()),
  isOwned: z.boolean(),
  isMarked: z.boolean(),
  marks: z.record(z.string(), z.boolean()),
});
export type ProtectionView = z.infer<typeof protectionView>;

export const findingView = z.object({ check: z.string(), state: z.enum(FINDING_STATES), message: z.string(), todo: z.string().nullable() });

export const errorView = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    field: z.string().optional(),
    found: z.unknown().optional(),
    allowed: z.string().optional(),
    todo: z.string().optional(),
  }),
});
export type ErrorView = z.infer<typeof errorView>;
