/**
 * The life of an instance: one table; what is not in it is refused.
 *
 *   pending → creating → preparing → validating → [standby →] admitted → serving → draining → sealed → retiring → retired → deleted
 *
 * `failed` is where a candidate ends that never served; it is cleaned up through `retiring` like the others. A new incarnation (restarted container,
 * replaced pod) goes back to `preparing`. A lost process leaves through the same door as a drained one: `draining` with loss `forced`, then `sealed`.
 */
export const PHASES = [
  "pending",
  "creating",
  "preparing",
  "validating",
  "standby",
  "admitted",
  "serving",
  "draining",
  "sealed",
  "retiring",
  "retired",
  "deleted",
  "failed",
] as const;
export type Phase = (typeof PHASES)[number];

const NEXT: Readonly<Record<Phase, readonly Phase[]>> = {
  pending: ["creating", "failed"],
  creating: ["preparing", "failed"],
  preparing: ["validating", "failed", "draining"],
  validating: ["standby", "admitted", "preparing", "failed", "draining"],
  standby: ["admitted", "preparing", "failed"],
  admitted: ["serving", "preparing", "draining"],
  serving: ["preparing", "draining"],
  draining: ["sealed"],
  sealed: ["retiring"],
  failed: ["retiring"],
  retiring: ["retired"],
  retired: ["deleted"],
  deleted: [],
};

export function mayMove(from: Phase, to: Phase): boolean {
  return NEXT[from].includes(to);
}

export function nextPhases(from: Phase): readonly Phase[] {
  return NEXT[from];
}

/** A candidate: made, not yet serving. `failed` is no candidate any more. */
export function isCandidate(phase: Phase): boolean {
  return phase === "pending" || phase === "creating" || phase === "preparing" || phase === "validating" || phase === "admitted";
}

/** Still the gateway's to route new work to. */
export function isRouted(phase: Phase): boolean {
  return phase === "admitted" || phase === "serving";
}

/** Everything not deleted occupies capacity. */
export function occupiesCapacity(phase: Phase): boolean {
  return phase !== "deleted";
}

/** On its way out: it will never serve again. */
export function isLeaving(phase: Phase): boolean {
  return (
    phase === "draining" || phase === "sealed" || phase === "retiring" || phase === "retired" || phase === "deleted" || phase === "failed"
  );
}

export const TRUSTS = ["ok", "suspect", "fenced"] as const;
/** Belongs to the incarnation: suspect can return to ok, fenced never does. */
export type Trust = (typeof TRUSTS)[number];

const NEXT_TRUST: Readonly<Record<Trust, readonly Trust[]>> = { ok: ["suspect", "fenced"], suspect: ["ok", "fenced"], fenced: [] };

export function mayTrust(from: Trust, to: Trust): boolean {
  return NEXT_TRUST[from].includes(to);
}

export const LOSSES = ["voluntary", "deadline", "forced"] as const;
/** The class of a loss; it only escalates, in this order. */
export type Loss = (typeof LOSSES)[number];

/** The graver of two. */
export function graverLoss(a: Loss, b: Loss): Loss {
  return LOSSES.indexOf(a) >= LOSSES.indexOf(b) ? a : b;
}

export const SEALS = ["confirmed", "forced", "assumed"] as const;
/**
 * How it is known that nothing runs on a sealed instance: every registered gateway replica said so; its process is gone; or a replica was silent for its
 * TTL and the door at the instance was shut (outside the zero-loss claim).
 */
export type Seal = (typeof SEALS)[number];
