/** What Relevo writes on objects of Kubernetes, each name once. */
import type { Priority } from "./membership.ts";

/** On every object of a blueprint and in its pod templates. */
export const LABELS = {
  /** The pool's name, without its namespace. */
  pool: "relevo.dev/pool",
  instance: "relevo.dev/instance",
  /** On a Lease: which replica of the controller holds it. */
  controller: "relevo.dev/controller",
} as const;

export const ANNOTATIONS = {
  /** On an object: the step that made it. */
  step: "relevo.dev/step",
  /** On a pod whose place was chosen by the health of capacity: JSON, what was avoided. */
  placement: "relevo.dev/placement",
  /** On a pod: JSON, the step that protected it and which of the marks below it set. */
  protectedBy: "relevo.dev/protected-by",
  /** On a node: the step that cordoned it, and the evidence for it. */
  cordonedBy: "relevo.dev/cordoned-by",
  cordonedFor: "relevo.dev/cordoned-for",
  /** On a controller's Lease: the URL at which other replicas and gateways reach it. */
  controllerApi: "relevo.dev/api",
  /** On a controller's Lease: its version; none: from before there was this mark. */
  version: "relevo.dev/version",
} as const;

/** Marks that others read: on a pod they keep a voluntary disruption away. */
export const PROTECTION_MARKS: Readonly<Record<string, string>> = {
  "karpenter.sh/do-not-disrupt": "true",
  "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
};

/** The PriorityClass of the pods of a pool, as `deploy/` makes it. */
export function priorityClassOf(priority: Priority): string {
  return `relevo-${priority}`;
}
