/** What differs for instances that take their work by themselves: nobody has to be told that they serve, and that they are done is their own word. */
import type { Seal } from "../model/phase.ts";
import { reason, type Reason } from "../model/reasons.ts";
import { isCluster } from "./cluster.ts";
import type { Draft } from "./draft.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import { describeEvidence, gravestEvidence, idOf } from "./view.ts";

export function isWorker({ spec }: Pick<PoolSnapshot, "spec">): boolean {
  return spec.driver === "worker";
}

export function beginWork(instance: InstanceSnapshot, draft: Draft): void {
  if (instance.health.state !== "passing") return draft.hold(idOf(instance), reason("waiting_for_health"));
  draft.decide({ kind: "move", instance: idOf(instance), from: "admitted", to: "serving", reason: reason("worker_admitted") });
}

/** How a draining one may be sealed; undefined: it has work, or did not say that it has none. */
export function workerSeal(
  { spec }: PoolSnapshot,
  instance: InstanceSnapshot,
): { readonly seal: Seal; readonly reason: Reason } | undefined {
  const { ownObligations, slots, slotsAwaited } = instance;
  const isWithout = busyOf(instance) === 0;
  if (ownObligations === 0 && isWithout) return { seal: "confirmed", reason: reason("worker_done") };
  if (spec.service.protocol !== "none") return undefined;
  // One that cannot be told to finish is told by the end of its pod, whose grace period is all that it has.
  if (slots === null) return slotsAwaited ? undefined : { seal: "assumed", reason: reason("worker_silent") };
  return isWithout ? { seal: "confirmed", reason: reason("worker_done") } : undefined;
}

export function workerFinishes(instance: InstanceSnapshot): Reason {
  const jobs = instance.ownObligations ?? (instance.slots === null ? "?" : busyOf(instance));
  return reason("worker_finishes", { jobs, evidence: describeEvidence(gravestEvidence(instance)) });
}

/** Jobs that are tied to it, as far as it said so. */
export function jobsOf(instance: InstanceSnapshot): number {
  return Math.max(instance.ownObligations ?? 0, busyOf(instance));
}

/**
 * What ends with its process: of whom nobody sends anything to, the jobs in its slots. A query of a cluster is one, though the gateways hold it as a session, the
 * engine runs it and a client's poll of it is in flight.
 */
export function tiedTo(pool: Pick<PoolSnapshot, "spec">, instance: InstanceSnapshot): number {
  const { obligations, ownObligations } = instance;
  if (obligations === null) return jobsOf(instance);
  const { requests, sessions } = obligations;
  return isCluster(pool) ? Math.max(requests, sessions, ownObligations ?? 0) : requests + sessions;
}

function busyOf({ slots }: InstanceSnapshot): number {
  return slots === null ? 0 : slots.progressing + slots.stuck;
}
