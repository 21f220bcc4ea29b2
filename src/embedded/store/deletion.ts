/** What a DELETE makes of an object. Pure. */
import { formatInstant, type Instant, parseInstant } from "../../kernel/clock.ts";
import type { DeleteOptions, KubeObject } from "../../kube/api.ts";
import type { KindSpec } from "../kinds.ts";
import { valueAt } from "./json.ts";

const POD_GRACE_DEFAULT_S = 30;

/** The API's times have whole seconds. */
export function formatSeconds(at: Instant): string {
  return `${formatInstant(at).slice(0, 19)}Z`;
}

/** `gone`: removed at once. `marked`: stays, with a deletionTimestamp. `unchanged`: it was marked already. */
export type Deletion =
  | { readonly outcome: "gone" }
  | { readonly outcome: "marked"; readonly object: KubeObject }
  | { readonly outcome: "unchanged" };

export function planDeletion(kind: KindSpec, object: KubeObject, options: DeleteOptions, now: Instant): Deletion {
  const finalizers = finalizersAfter(object, options.propagationPolicy);
  const graceS = graceOf(kind, object, options.gracePeriodSeconds);
  const { deletionTimestamp, deletionGracePeriodSeconds: oldGraceS = 0 } = object.metadata;
  if (graceS === 0 && finalizers.length === 0) return { outcome: "gone" };
  // A second delete may shorten the grace and never prolong it.
  if (deletionTimestamp !== undefined && graceS >= oldGraceS) return { outcome: "unchanged" };
  const begun = deletionTimestamp === undefined ? now : (parseInstant(deletionTimestamp) ?? now) - oldGraceS * 1_000;
  const { generation } = object.metadata;
  return {
    outcome: "marked",
    object: {
      ...object,
      metadata: {
        ...object.metadata,
        ...(finalizers.length === 0 ? {} : { finalizers }),
        ...(generation === undefined || deletionTimestamp !== undefined ? {} : { generation: generation + 1 }),
        deletionTimestamp: formatSeconds(begun + graceS * 1_000),
        deletionGracePeriodSeconds: graceS,
      },
    },
  };
}

/** The garbage collector takes these off when it has seen to the dependents. */
function finalizersAfter(object: KubeObject, policy: DeleteOptions["propagationPolicy"]): readonly string[] {
  const finalizers = object.metadata.finalizers ?? [];
  const added = policy === "Foreground" ? "foregroundDeletion" : policy === "Orphan" ? "orphan" : undefined;
  return added === undefined || finalizers.includes(added) || object.metadata.deletionTimestamp !== undefined
    ? finalizers
    : [...finalizers, added];
}

/** Only pods have a grace: none without a node or after their end, else what was asked, what they were marked with, their own, 30 s. */
function graceOf(kind: KindSpec, object: KubeObject, askedS: number | undefined): number {
  if (kind.kind !== "Pod" || kind.custom) return 0;
  const phase = valueAt(object, "status.phase");
  const nodeName = valueAt(object, "spec.nodeName");
  if (nodeName === undefined || nodeName === "" || phase === "Succeeded" || phase === "Failed") return 0;
  const ownS = valueAt(object, "spec.terminationGracePeriodSeconds");
  return Math.max(0, askedS ?? object.metadata.deletionGracePeriodSeconds ?? (typeof ownS === "number" ? ownS : POD_GRACE_DEFAULT_S));
}

/** Nothing holds the object any more: the write that took the last finalizer off deletes it. */
export function isReleased(object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  const held = valueAt(object, "spec.finalizers");
  const namespaceHeld = object.kind === "Namespace" && Array.isArray(held) && held.length > 0;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && finalizers.length === 0 && !namespaceHeld;
}
