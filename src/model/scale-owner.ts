/** Who sets the replica count of a workload: there is to be exactly one (K3, I20). */
import type { Instant } from "../kernel/clock.ts";

/** Who owns `spec.replicas` of an object, as its managedFields say. */
export interface FieldManager {
  readonly manager: string;
  readonly operation: string;
  /** `scale`, or empty: the object itself. */
  readonly subresource: string;
  /** When it last changed what it owns, to the second; null: not said. */
  readonly at: Instant | null;
}

/** Somebody else who sets it, or is about to. */
export type ScaleOwner =
  | {
      readonly kind: "HorizontalPodAutoscaler";
      readonly name: string;
      readonly uid: string;
      readonly min: number;
      readonly max: number;
      /** The ScaledObject that makes it again when it is deleted; null: none. */
      readonly madeBy: string | null;
    }
  | {
      readonly kind: "ScaledObject";
      readonly name: string;
      readonly uid: string;
      readonly min: number;
      readonly max: number;
      readonly triggers: readonly string[];
      /** By its annotations it scales nothing at present. */
      readonly isPaused: boolean;
      /** When it is deleted KEDA puts the count back to what it was before it: to so many, or null where that is not said; undefined: it does not. */
      readonly restores?: number | null;
      /** The Pool (`namespace/name`) whose size it asks for, when that is all that it asks for. */
      readonly asks: string | null;
    }
  | { readonly kind: "Pool"; readonly name: string; readonly uid: string }
  /** A field manager: whoever it is will write the count again. */
  | { readonly kind: "Manager"; readonly name: string; readonly uid: string; readonly role: ManagerRole; readonly at: Instant | null };

/**
 * `gitops` writes what its repository says, again and again; `autoscaler` is what wrote for an autoscaler; `writer` is any other one, which writes when somebody
 * calls it.
 */
export type ManagerRole = "gitops" | "autoscaler" | "writer";

/** That a Pool owns the count of its target from then on. */
export interface Adoption {
  readonly uid: string;
  readonly by: string;
  readonly at: Instant;
  /** As it was found: the hand-over changes nothing. */
  readonly replicas: number;
  /** Who had written it before: that is of the past. */
  readonly managers: readonly FieldManager[];
  /** Who was removed for it, as `HorizontalPodAutoscaler/web`; null: nobody had to be. */
  readonly removed: string | null;
}

/** The workload whose count a Pool owns, as it is seen now. */
export interface TargetView {
  readonly kind: "Deployment" | "StatefulSet";
  readonly name: string;
  /** Null: there is none of that name. */
  readonly object: TargetObject | null;
  /** Autoscalers and other Pools; field managers are in `object`. */
  readonly owners: readonly ScaleOwner[];
  /** Why what is seen may be old, or not all of it; null: it is all that there is. */
  readonly trouble: string | null;
  /** Since when all its replicas are ready; null: they are not. */
  readonly fullSince: Instant | null;
  /** When the count ceased to be as Relevo wrote it, as far as that was seen: the times of managers are whole seconds. Null: it is, or nobody saw. */
  readonly takenAt: Instant | null;
}

export interface TargetObject {
  readonly uid: string;
  readonly replicas: number;
  readonly readyReplicas: number;
  /** Of a Deployment whose roll-out somebody paused. */
  readonly isPaused: boolean;
  readonly isDeleting: boolean;
  /** Who owns `spec.replicas`, Relevo too. */
  readonly managers: readonly FieldManager[];
}

/** The name under which Relevo writes. */
export const OWN_MANAGER = "relevo";

export function isSameManager(a: FieldManager, b: FieldManager): boolean {
  return a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource;
}

const GITOPS =
  /^(argocd-|argo-?cd|kustomize-controller|helm-controller|flux|configsync|config-sync|fleet|objectset|kapp|sveltos|pulumi-kubernetes-operator|rancher)/i;
const AUTOSCALERS = /^(kube-controller-manager|keda|keda-operator|cluster-proportional-autoscaler)$/i;

export function roleOf(manager: string): ManagerRole {
  if (GITOPS.test(manager)) return "gitops";
  return AUTOSCALERS.test(manager) ? "autoscaler" : "writer";
}

/** `HorizontalPodAutoscaler/web`. */
export function nameOfOwner({ kind, name }: Pick<ScaleOwner, "kind" | "name">): string {
  return `${kind}/${name}`;
}

/** What it does to the count, as a part of a sentence. */
export function deedOf(owner: ScaleOwner): string {
  switch (owner.kind) {
    case "HorizontalPodAutoscaler": {
      const again = owner.madeBy === null ? "" : `, and ScaledObject/${owner.madeBy} makes it again when it is deleted`;
      return `keeps it between ${owner.min} and ${owner.max} by metrics of its own${again}`;
    }
    case "ScaledObject": {
      const pause = owner.isPaused ? ", paused at present" : "";
      const { restores } = owner;
      const back = restores === undefined ? "" : `, and puts it back to ${restores ?? "what it was"} when it is deleted`;
      return `keeps it between ${owner.min} and ${owner.max} by ${owner.triggers.join(", ") || "no trigger"} through a HorizontalPodAutoscaler of its own${pause}${back}`;
    }
    case "Pool":
      return "names the same target: two Pools would write it in turn";
    case "Manager":
      return deedOfManager(owner.name, owner.role);
    default:
      return owner satisfies never;
  }
}

function deedOfManager(name: string, role: ManagerRole): string {
  switch (role) {
    case "gitops":
      return "writes what its repository says, and again at each reconciliation";
    case "autoscaler":
      return "wrote it for an autoscaler";
    case "writer":
      return name.startsWith("helm") ? "sets it at each upgrade of the release" : "owns the field and sets it when it is called again";
    default:
      return role satisfies never;
  }
}
