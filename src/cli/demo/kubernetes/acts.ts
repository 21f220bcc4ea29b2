/** The acts on a real cluster: Karpenter drifts its nodes, or ends one at a deadline; each waits for the effect, as the controller and the cluster show it. */
import { z } from "zod";
import type { Clock } from "../../../kernel/clock.ts";
import type { KubeApi } from "../../../kube/api.ts";
import { NODE_CLAIMS, NODE_POOLS, NODES, PODS } from "../../../kube/resources.ts";
import { INSTANCE_LABEL, type KubeNode, parseNode, parseNodeClaim, parsePod } from "../../../kube/types.ts";
import { ANNOTATIONS, PROTECTION_MARKS } from "../../../model/marks.ts";
import type { DemoWorld } from "../world.ts";
import { NEXT_REVISION } from "./documents.ts";
import type { Kubectl } from "./kubectl.ts";

/** Karpenter looks every 10 s, and the machine may be busy. */
const DRIFT_WITHIN_MS = 60_000;
/** All instances, one after the other, each with a new machine and the end of its work. */
const ALL_REPLACED_WITHIN_MS = 480_000;
const GONE_WITHIN_MS = 180_000;

export interface KubernetesStage {
  readonly world: DemoWorld;
  readonly kube: KubeApi;
  readonly kubectl: Kubectl;
  readonly clock: Clock;
  /** Key of the pool. */
  readonly pool: string;
  readonly nodePool: string;
  readonly desired: number;
  readonly tell: (sentence: string) => void;
}

export interface DriftResult {
  /** Of the instances that served at the beginning: how many have evidence, stood on a node that Relevo cordoned, are replaced. */
  readonly evidence: number;
  readonly cordoned: number;
  readonly replaced: number;
  /** Nodes of which Karpenter said that a pod of ours keeps it from replacing them. */
  readonly karpenterWaited: number;
}

/** The template of the NodePool changes, and Karpenter finds all of its nodes drifted. */
export async function drift(stage: KubernetesStage): Promise<DriftResult> {
  const { world, pool, tell } = stage;
  const before = await servingIds(stage);
  const protectedPods = await podsWithMarks(stage, before);
  tell(`${protectedPods} of ${before.length} instances carry the mark that Karpenter respects`);
  await changeNodePool(stage);
  tell(`the template of NodePool ${stage.nodePool} changed: Karpenter drifts all of its nodes`);
  const cordoned = watchCordons(stage);
  await world.until("evidence against every instance", DRIFT_WITHIN_MS, async () => {
    const known = new Set((await world.evidence(pool)).map(({ instance }) => instance));
    return before.every((id) => known.has(id));
  });
  tell(`there is evidence against ${before.length} instances; replaced one after the other`);
  await world.until(
    "the end of every instance on a drifted node",
    ALL_REPLACED_WITHIN_MS,
    async () => (await replacedOf(stage, before)) === before.length,
  );
  await whole(stage);
  const known = new Set((await world.evidence(pool)).map(({ instance }) => instance));
  return {
    evidence: before.filter((id) => known.has(id)).length,
    cordoned: await cordoned.stop(),
    replaced: await replacedOf(stage, before),
    karpenterWaited: await blockedNodes(stage),
  };
}

export interface DeadlineResult {
  readonly evidence: number;
  readonly replaced: number;
  /** Sealed and deleted before Karpenter would have ended its pods. */
  readonly drainedInTime: number;
}

/** Somebody deletes a NodeClaim with a termination grace: Karpenter ends what is on the node at a time that it writes down. */
export async function deadline(stage: KubernetesStage): Promise<DeadlineResult> {
  const { world, pool, kubectl, clock, tell } = stage;
  const { node, instance } = await world.victim(pool);
  const claim = await claimOf(stage, node.name);
  await kubectl("delete", "nodeclaim", claim, "--wait=false");
  tell(`NodeClaim ${claim} under ${instance} is deleted: its pods end at a time, whatever they do`);
  await world.until(`evidence against ${instance}`, DRIFT_WITHIN_MS, async () => (await evidenceOf(stage, instance)) !== undefined);
  const evidence = await evidenceOf(stage, instance);
  const end = evidence?.deadline === null || evidence === undefined ? null : Date.parse(evidence.deadline);
  tell(`evidence: ${evidence?.reason}, ${evidence?.loss}${end === null ? "" : `, ${Math.round((end - clock.now()) / 1000)} s are left`}`);
  await world.until(`the end of ${instance}`, GONE_WITHIN_MS, async () => (await phaseOf(stage, instance)) === "deleted");
  const wasInTime = end !== null && clock.now() < end;
  await whole(stage);
  return {
    evidence: evidence?.loss === "deadline" ? 1 : 0,
    replaced: await replacedOf(stage, [instance]),
    drainedInTime: wasInTime ? 1 : 0,
  };
}

/** The control: the same drift, and nothing keeps Karpenter from ending the pods. Settles when its old nodes are gone. */
export async function unprotectedDrift(stage: KubernetesStage): Promise<void> {
  const before = new Set((await nodesOf(stage)).map(({ metadata }) => metadata.uid));
  await changeNodePool(stage);
  stage.tell(`control: the template of NodePool ${stage.nodePool} changed`);
  await stage.world.until("Karpenter's replacement of every node", ALL_REPLACED_WITHIN_MS, async () => {
    return (await nodesOf(stage)).every(({ metadata }) => !before.has(metadata.uid));
  });
  await whole(stage);
}

/** Looks at the pool until it is told to stop; the lowest number serving that was seen. */
export function watchServing({ world, clock, pool, desired }: KubernetesStage): { stop(): Promise<number> } {
  let lowest = desired;
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      lowest = Math.min(lowest, await world.serving(pool).catch(() => desired)); // what cannot be read is no count
      await clock.sleep(100);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await done;
      return lowest;
    },
  };
}

/** How many nodes of the NodePool have carried Relevo's own cordon since. */
function watchCordons(stage: KubernetesStage): { stop(): Promise<number> } {
  const seen = new Set<string>();
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      for (const { metadata, spec } of await nodesOf(stage).catch(() => []))
        if (spec.unschedulable && metadata.annotations[ANNOTATIONS.cordonedBy] !== undefined) seen.add(metadata.uid);
      await stage.clock.sleep(500);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await done;
      return seen.size;
    },
  };
}

async function changeNodePool({ kubectl, nodePool }: KubernetesStage): Promise<void> {
  await kubectl("patch", NODE_POOLS.plural, nodePool, "--type=merge", "-p", NEXT_REVISION);
}

async function servingIds({ world, pool }: KubernetesStage): Promise<readonly string[]> {
  return (await world.instances(pool)).filter(({ phase }) => phase === "serving").map(({ id }) => id);
}

async function phaseOf({ world, pool }: KubernetesStage, instance: string): Promise<string | undefined> {
  return (await world.instances(pool)).find(({ id }) => id === instance)?.phase;
}

async function replacedOf({ world, pool }: KubernetesStage, ids: readonly string[]): Promise<number> {
  const phases = new Map((await world.instances(pool)).map(({ id, phase }) => [id, phase]));
  return ids.filter((id) => phases.get(id) === "deleted").length;
}

async function evidenceOf({ world, pool }: KubernetesStage, instance: string) {
  return (await world.evidence(pool)).find((each) => each.instance === instance && each.loss === "deadline");
}

async function whole({ world, pool, desired }: KubernetesStage): Promise<void> {
  await world.until(`${desired} serving instances`, GONE_WITHIN_MS, async () => (await world.serving(pool)) >= desired);
}

async function nodesOf({ kube, nodePool }: KubernetesStage): Promise<readonly KubeNode[]> {
  const { items } = await kube.list(NODES, { labelSelector: `karpenter.sh/nodepool=${nodePool}` });
  return items.flatMap((object) => {
    const parsed = parseNode(object);
    return parsed.ok ? [parsed.value] : [];
  });
}

async function claimOf({ kube }: KubernetesStage, node: string): Promise<string> {
  const { items } = await kube.list(NODE_CLAIMS, {});
  for (const object of items) {
    const parsed = parseNodeClaim(object);
    if (parsed.ok && parsed.value.status.nodeName === node) return parsed.value.metadata.name;
  }
  return node;
}

async function podsWithMarks({ kube }: KubernetesStage, ids: readonly string[]): Promise<number> {
  const { items } = await kube.list(PODS, { labelSelector: INSTANCE_LABEL });
  const [mark = "", value = ""] = Object.entries(PROTECTION_MARKS)[0] ?? [];
  return items.filter((object) => {
    const parsed = parsePod(object);
    if (!parsed.ok) return false;
    const { labels, annotations } = parsed.value.metadata;
    return ids.includes(labels[INSTANCE_LABEL] ?? "") && annotations[mark] === value;
  }).length;
}

const blockedEvents = z.object({ items: z.array(z.object({ involvedObject: z.object({ name: z.string() }), message: z.string() })) });

/** By Karpenter's own Events; it blocks fresh nodes for other reasons too. */
async function blockedNodes({ kubectl }: KubernetesStage): Promise<number> {
  const selector = "reason=DisruptionBlocked,involvedObject.kind=Node";
  const { items } = blockedEvents.parse(JSON.parse(await kubectl("get", "events", "-A", "--field-selector", selector, "-o", "json")));
  return new Set(items.filter(({ message }) => message.includes("do-not-disrupt")).map(({ involvedObject }) => involvedObject.name)).size;
}
