/**
 * Members of a cluster whose nodes go at a time (decision 0018): each is drained and made anew elsewhere by itself, and the cluster serves on.
 *
 * 1. Nothing is remembered of it: evidence names a pod, and while a pod of that UID is there, what it says of itself and what is found at its node decide. No such
 *    pod: the evidence is served.
 * 2. Only a proven TASK retry lets a member end for good: what it still runs is then run again elsewhere. Else it finishes what it has, as long as the notice lasts.
 * 3. Its pod is deleted when it has nothing any more, at the latest `drainLead` before its node goes; before that only when its node takes nothing new.
 * 4. A notice that is taken back lets it work again; one that ends for good is started anew by its own workload.
 */
import { formatInstant, type Instant } from "../kernel/clock.ts";
import type { Evidence } from "../model/evidence.ts";
import { isLeaving, isRouted } from "../model/phase.ts";
import { reason, sentenceOf, type Reason } from "../model/reasons.ts";
import type { StepRecord } from "../model/step.ts";
import { isCluster } from "./cluster.ts";
import { cordonNodes } from "./cordon.ts";
import type { MemberDrain } from "./decision.ts";
import type { Draft } from "./draft.ts";
import { indexOf } from "./pool-index.ts";
import type { InstanceSnapshot, MemberStateSeen, PodSnapshot, PoolSnapshot } from "./snapshot.ts";
import { tellStep } from "./step-hold.ts";
import { compareText, idOf } from "./view.ts";

/** One member that must make way. */
interface Leaver {
  readonly pool: PoolSnapshot;
  readonly instance: InstanceSnapshot;
  readonly evidence: Evidence;
  readonly pod: PodSnapshot;
  readonly seen: MemberStateSeen | undefined;
}

export function planMembers(pool: PoolSnapshot, instance: InstanceSnapshot, now: Instant, draft: Draft): void {
  const { phase } = instance.record;
  const { memberEvidence = [], memberStates, pods } = instance;
  if (!isCluster(pool) || (isLeaving(phase) && phase !== "draining")) return;
  for (const evidence of memberEvidence.toSorted((a, b) => compareText(a.id, b.id))) {
    const pod = pods.find(({ uid }) => uid === evidence.podUid);
    if (pod !== undefined && !pod.lead) planMember({ pool, instance, evidence, pod, seen: memberStates?.get(pod.uid) }, now, draft);
  }
}

function planMember(leaver: Leaver, now: Instant, draft: Draft): void {
  const { pool, instance, evidence, pod } = leaver;
  const { mode } = pool.spec.disruption;
  if (pod.deleting) return draft.hold(idOf(instance), reason("member_leaving", { pod: pod.name }));
  if (pod.node === null) return pod.scheduledAt === null ? undefined : replace(leaver, "its node is gone", draft);
  const goesAt = deadlineOf(leaver);
  if (goesAt === null) return takeBack(leaver, draft);
  if (mode !== "Act" && !isTold(leaver)) return draft.hold(idOf(instance), passive(leaver));
  if (mode === "Act") cordonNodes(pool, instance, [evidence], draft);
  const latest = goesAt - pool.spec.disruption.drainLead;
  if (now >= latest) return replace(leaver, `its node goes at ${formatInstant(goesAt)}`, draft);
  draft.lookAgainAt(latest);
  const why = whyIdle(leaver);
  if (why === undefined) return drain(leaver, goesAt, latest, draft);
  // Before its node takes nothing new, the next pod could land there again.
  if (pod.node.unschedulable || mode !== "Act") return replace(leaver, why, draft);
  draft.hold(idOf(instance), reason("member_waits_for_cordon", { pod: pod.name, node: pod.node.name, until: formatInstant(latest) }));
}

/** When its node goes, as it is found now; null: nothing says so any more. A loss without a time may come at any moment. */
function deadlineOf({ pod, evidence }: Leaver): Instant | null {
  const found = (pod.node?.findings ?? []).filter(({ loss }) => loss === "deadline");
  return found.length === 0 ? null : Math.min(...found.map(({ deadline }) => deadline ?? evidence.firstSeen));
}

/** It was told to take no new work, and does so: what was begun is finished in any mode (D10). */
function isTold({ seen }: Leaver): boolean {
  return seen?.state === "draining" || seen?.state === "drained" || seen?.state === "shutting_down";
}

function passive({ pool, instance, evidence, pod }: Leaver): Reason {
  if (pool.spec.disruption.mode === "Off") return reason("mode_off");
  const facts = { instance: idOf(instance), pod: pod.name, evidence: evidence.reason };
  return reason("mode_observe", { would: sentenceOf(reason("member_condemned", facts)) });
}

/** Why nothing is lost with it; undefined: it may have work. */
function whyIdle({ instance: { record }, pod: { process }, evidence, seen }: Leaver): string | undefined {
  if (!isRouted(record.phase) && record.phase !== "draining") return "its cluster takes no work yet";
  if (process === undefined) return "nothing runs in it";
  if (seen?.state === "drained" || seen?.state === "gone") return "it has finished what it had";
  // It ended for good, and its kubelet started it anew where it cannot stay.
  if (process.startedAt !== null && process.startedAt > evidence.firstSeen) return "its process is new";
  return undefined;
}

function drain(leaver: Leaver, goesAt: Instant, latest: Instant, draft: Draft): void {
  const { pool, instance, pod, seen } = leaver;
  const open = stepOf(leaver, "drain-member");
  if (open !== undefined) return tellStep(idOf(instance), open, draft);
  if (seen === undefined) return draft.hold(idOf(instance), reason("member_unread", { pod: pod.name, deadline: formatInstant(goesAt) }));
  if (isTold(leaver))
    return draft.hold(idOf(instance), reason("member_finishes", { pod: pod.name, state: seen.state, until: formatInstant(latest) }));
  const how: MemberDrain = pool.proofs?.retryPolicy === "TASK" ? "final" : "reversible";
  draft.decide({
    kind: "drain_member",
    instance: idOf(instance),
    pod: { name: pod.name, uid: pod.uid },
    how,
    deadline: goesAt,
    since: seen.since,
    reason: reason("member_drain", { pod: pod.name, deadline: formatInstant(goesAt), how }),
  });
}

function replace(leaver: Leaver, why: string, draft: Draft): void {
  const { instance, pod } = leaver;
  const open = stepOf(leaver, "replace-member");
  if (open !== undefined) return tellStep(idOf(instance), open, draft);
  draft.decide({
    kind: "replace_member",
    instance: idOf(instance),
    pod: { name: pod.name, uid: pod.uid },
    reason: reason("member_replace", { pod: pod.name, why }),
  });
}

function takeBack(leaver: Leaver, draft: Draft): void {
  const { instance, pod, seen } = leaver;
  if (seen?.state === "shutting_down") return draft.hold(idOf(instance), reason("member_ends", { pod: pod.name }));
  if (seen?.state !== "draining" && seen?.state !== "drained") return;
  const open = stepOf(leaver, "drain-member");
  if (open !== undefined) return tellStep(idOf(instance), open, draft);
  draft.decide({
    kind: "drain_member",
    instance: idOf(instance),
    pod: { name: pod.name, uid: pod.uid },
    how: "back",
    deadline: null,
    since: seen.since,
    reason: reason("member_back", { pod: pod.name }),
  });
}

function stepOf({ pool, instance, pod }: Leaver, name: "drain-member" | "replace-member"): StepRecord | undefined {
  const ofPod = (id: string): boolean =>
    id === `${name}/${pod.uid}` || id.startsWith(`${name}/${pod.uid}/`) || id.startsWith(`${name}/${pod.uid}#`);
  return indexOf(pool)
    .steps.get(idOf(instance))
    ?.find(({ id }) => ofPod(id));
}
