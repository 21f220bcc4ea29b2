/** What the HTTP API asks of nodes: what is seen of them, who cordoned them, who spoke of their end. */
import type { Clock } from "../kernel/clock.ts";
import type { Evidence } from "../model/evidence.ts";
import { ANNOTATIONS } from "../model/marks.ts";
import type { Witness } from "../model/witness.ts";
import { machineIdOf } from "../notices/machine.ts";
import type { NoticeDesk } from "../observe/notice-desk.ts";
import { nodeViews } from "../observe/node-views.ts";
import { witnessesOf } from "../observe/witnesses.ts";
import type { World } from "../observe/world.ts";
import type { CordonState, NodeState } from "../server/control-plane.ts";
import type { Store } from "../store/port.ts";

/** Notices that are looked through for witnesses: the newest. */
const WITNESSING_NOTICES = 2_000;

interface NodeParts {
  readonly store: Store;
  readonly world: World;
  readonly notices: NoticeDesk;
  readonly clock: Clock;
}

/** Nodes that Relevo cordoned and nobody uncordoned since. */
export function listCordons({ world }: Pick<NodeParts, "world">): readonly CordonState[] {
  return world.nodes.list().flatMap(({ metadata, spec }) => {
    const step = metadata.annotations[ANNOTATIONS.cordonedBy];
    if (step === undefined || !spec.unschedulable) return [];
    return [
      { node: metadata.name, nodeUid: metadata.uid, step, evidence: metadata.annotations[ANNOTATIONS.cordonedFor] ?? null, at: null },
    ];
  });
}

export function listNodes({ world, notices, clock }: NodeParts): readonly NodeState[] {
  const view = nodeViews({ world, noticed: notices.findings(), now: clock.now() });
  return world.nodes.list().flatMap((node) => {
    const seen = view(node.metadata.name);
    if (!seen) return [];
    const instances = world.pods.byIndex("node", seen.name).flatMap(({ metadata }) => metadata.labels["relevo.dev/instance"] ?? []);
    return [
      {
        name: seen.name,
        uid: seen.uid,
        zone: seen.spot.zone || null,
        instanceType: seen.spot.instanceType || null,
        capacityType: seen.spot.capacityType || null,
        machineId: machineIdOf(node.spec.providerID) ?? null,
        ready: seen.ready,
        unschedulable: seen.unschedulable,
        cordonedByUs: seen.cordonedBy !== null,
        deleting: seen.deleting,
        owner: seen.owner,
        findings: seen.findings.map(({ reason, loss, deadline }) => ({ reason, loss, deadline })),
        instances: [...new Set(instances)].toSorted(),
      },
    ];
  });
}

/** Who else spoke of the same losses, by the evidence's id. */
export async function findWitnesses(
  { store, world, notices, clock }: NodeParts,
  evidence: readonly Evidence[],
): Promise<ReadonlyMap<string, readonly Witness[]>> {
  if (evidence.length === 0) return new Map();
  const view = nodeViews({ world, noticed: notices.findings(), now: clock.now() });
  return witnessesOf(evidence, {
    notices: await store.listNotices(WITNESSING_NOTICES),
    machineOf: (uid) => notices.machineOf(uid),
    findingsOf: (uid) => {
      const [node] = world.nodes.byIndex("uid", uid);
      return (node && view(node.metadata.name)?.findings) ?? [];
    },
  });
}
