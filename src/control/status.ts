/** A pool's status: counts and conditions, made from a pass. */
import { compareText } from "../plan/view.ts";
import { isCandidate } from "../model/phase.ts";
import { sentenceOf, type ReasonCode } from "../model/reasons.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { sizeOf } from "../plan/scaling/size-of.ts";
import { scaleConditions, scaleStatus } from "./scale-status.ts";
import { servingCountOf } from "./scale-owner-report.ts";
import { scaleReportOf } from "./scale-report.ts";
import type { Pass } from "./pass.ts";

export interface Condition {
  readonly type: "Ready" | "Progressing" | "Held" | "ScaleReady" | "WithinProven";
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

export interface PoolStatus {
  /** One word for a table: `Serving`, `Below`, `Replacing`, `Held`, `Deleting`. */
  readonly phase: "Serving" | "Below" | "Replacing" | "Held" | "Deleting";
  /** Those of the condition that decides the phase. */
  readonly reason: string;
  readonly message: string;
  readonly desired: number;
  readonly serving: number;
  readonly candidates: number;
  /** Warm and not taken. */
  readonly standby: number;
  readonly draining: number;
  readonly condemned: number;
  readonly generation: string;
  readonly mode: string;
  readonly observedGeneration: number;
  /** Of a pool whose size follows its demand; null for any other one. */
  readonly demand: {
    readonly backlog: number | null;
    readonly inFlight: number | null;
    /** In seconds. */
    readonly oldestAge: number | null;
    readonly trouble: string | null;
  } | null;
  readonly slots: { readonly total: number; readonly free: number; readonly progressing: number; readonly stuck: number } | null;
  /** Instances: what somebody configured, and what a load test has shown (K7). */
  readonly capacity: { readonly configured: number; readonly proven: number | null; readonly provenAt: string | null } | null;
  readonly conditions: readonly Condition[];
}

/** Reasons that an operator should hear of: they do not go away by themselves soon. */
export const HELD: readonly ReasonCode[] = [
  "candidates_held",
  "no_capacity",
  "evacuation_unsavable",
  "step_held",
  "step_forbidden",
  "finalizer_forbidden",
  "step_from_newer_version",
  "drain_overdue",
  "brake",
  "lease_brake",
  "lease_unasked",
  "writer_unknown",
  "frozen",
  "older_replica",
  "inventory_error",
  "deletion_refused",
  "deletion_cause_unknown",
  "store_unavailable",
  "store_rewound",
  "spec_invalid",
  "route_taken",
  "service_fixed",
  "scale_held_long",
  "scale_other_owner",
  "scale_not_adopted",
  "scale_target_unseen",
  "scale_target_gone",
  "scale_target_replaced",
  "scale_target_paused",
];

export function statusOf(entry: PoolEntry, { snapshot, plan, at }: Pass): PoolStatus {
  const count = (matches: (phase: string) => boolean) => snapshot.instances.filter(({ record }) => matches(record.phase)).length;
  const serving = servingCountOf(snapshot);
  // A standby that is refilled moves nothing that serves.
  const candidates = snapshot.instances.filter(({ record }) => isCandidate(record.phase) && record.purpose !== "standby").length;
  const standby = snapshot.instances.filter(({ record }) => record.phase === "standby" && record.purpose === "standby").length;
  const draining = count((phase) => phase === "draining");
  const condemned = snapshot.instances.filter(({ evidence, record }) => evidence.length > 0 && record.phase === "serving").length;
  const desired = sizeOf(snapshot);
  const scale = scaleReportOf({ snapshot, plan, at });
  const held = plan.holds
    .filter(({ reason }) => HELD.includes(reason.code))
    .toSorted((a, b) => compareText(a.reason.code, b.reason.code))[0];
  const isMoving = candidates + draining > 0;
  const phase = entry.isDeleting
    ? "Deleting"
    : held
      ? "Held"
      : serving < desired
        ? "Below"
        : isMoving || condemned > 0
          ? "Replacing"
          : "Serving";
  const conditions: readonly Condition[] = [
    {
      type: "Ready",
      status: serving >= desired ? "True" : "False",
      reason: serving >= desired ? "AsDesired" : "BelowDesired",
      message: `${serving} of ${desired} instances serve`,
    },
    {
      type: "Progressing",
      status: isMoving ? "True" : "False",
      reason: isMoving ? "Moving" : "Settled",
      message: `${candidates} candidates, ${draining} draining`,
    },
    {
      type: "Held",
      status: held ? "True" : "False",
      reason: held ? pascal(held.reason.code) : "NothingHeld",
      message: held ? sentenceOf(held.reason) : "",
    },
    ...(scale === undefined ? [] : scaleConditions(scale)),
  ];
  const decisive = held ? "Held" : serving < desired ? "Ready" : isMoving ? "Progressing" : "Ready";
  const why = conditions.find(({ type }) => type === decisive);
  return {
    phase,
    reason: why?.reason ?? "",
    message: why?.message ?? "",
    desired,
    serving,
    candidates,
    standby,
    draining,
    condemned,
    generation: snapshot.generation,
    mode: snapshot.spec.disruption.mode,
    observedGeneration: entry.generation,
    ...scaleStatus(scale),
    conditions,
  };
}

/** Since when each condition has its value. */
export type Transitions = ReadonlyMap<Condition["type"], { readonly status: Condition["status"]; readonly since: string }>;

export function transitionsOf(status: PoolStatus, former: Transitions, at: string): Transitions {
  return new Map(
    status.conditions.map(({ type, status: value }) => {
      const known = former.get(type);
      return [type, known?.status === value ? known : { status: value, since: at }];
    }),
  );
}

/** As Kubernetes writes conditions. */
export function conditionsOf(entry: PoolEntry, status: PoolStatus, transitions: Transitions): readonly Readonly<Record<string, unknown>>[] {
  return status.conditions.map((condition) => ({
    ...condition,
    observedGeneration: entry.generation,
    lastTransitionTime: transitions.get(condition.type)?.since,
  }));
}

function pascal(code: string): string {
  return code.replaceAll(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
}
