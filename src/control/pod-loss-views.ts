/** What the count of lost pods asks of the passes: whether an instance leaves, and what is known against a node. */
import type { Clock } from "../kernel/clock.ts";
import type { EvidenceReason } from "../model/evidence.ts";
import { isLeaving } from "../model/phase.ts";
import { nodeViews } from "../observe/node-views.ts";
import type { NoticeDesk } from "../observe/notice-desk.ts";
import type { PodLossesOptions } from "../observe/pod-losses.ts";
import type { World } from "../observe/world.ts";
import type { Pass } from "./pass.ts";

/** `lastPass` is of the instance's pool; undefined while there is none. */
export function podLossViews(options: {
  readonly world: World;
  readonly notices: Pick<NoticeDesk, "findings">;
  readonly clock: Clock;
  readonly lastPass: (instance: string) => Pass | undefined;
}): Pick<PodLossesOptions, "isLeaving" | "findingsOf"> {
  const { world, notices, clock, lastPass } = options;
  return {
    isLeaving(instance) {
      const seen = lastPass(instance)?.snapshot.instances.find(({ record }) => record.id === instance);
      return seen === undefined || (isLeaving(seen.record.phase) && seen.record.phase !== "draining");
    },
    findingsOf(node, instance): readonly EvidenceReason[] {
      const seen = nodeViews({ world, noticed: notices.findings(), now: clock.now() })(node)?.findings ?? [];
      const evidence = lastPass(instance)?.snapshot.instances.flatMap((each) => [...each.evidence, ...(each.memberEvidence ?? [])]) ?? [];
      return [...seen, ...evidence.filter(({ nodeName }) => nodeName === node)].map(({ reason }) => reason);
    },
  };
}
