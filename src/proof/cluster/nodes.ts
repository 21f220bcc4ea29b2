/** Who owns the nodes that instances may land on (D17), and where Relevo itself runs. */
import { parsePod } from "../../kube/types.ts";
import { PODS } from "../../kube/resources.ts";
import { bad, type Finding, ok } from "../../model/finding.ts";
import { mayLandOn } from "./eligible.ts";
import { actingPools, type ClusterFacts, type InspectedNode } from "./facts.ts";
import { itemsOf, listAll, unseen } from "./read.ts";

const NAMES_MAX = 10;

/** D17: a replacement is safe only where every node that a pool's pods may land on is owned by a provisioner that the pool declares. */
export async function checkOwners(facts: ClusterFacts): Promise<readonly Finding[]> {
  const nodes = facts.nodes();
  if (nodes.length === 0) return [bad("nodes", "warning", "no node is known", "see kubectl get nodes")];
  const active = actingPools(facts).filter(({ document }) => !document.spec.disruption.provisioners.includes("none"));
  if (active.length === 0) return [ok("nodes", `${nodes.length} are known; no pool in mode Act asks who owns them`)];
  return active.map(({ key, document }) => {
    const declared: readonly string[] = document.spec.disruption.provisioners;
    const eligible = nodes.filter((node) => mayLandOn(document, node));
    const foreign = eligible.filter(({ provisioner }) => provisioner === null || !declared.includes(provisioner));
    const check = `nodes for ${key}`;
    if (foreign.length === 0)
      return ok(check, `all ${eligible.length} that its pods may land on belong to a declared provisioner (${declared.join(", ")})`);
    return bad(
      check,
      "refused",
      `belong to no declared provisioner (${declared.join(", ")}): ${named(foreign.map(({ name, provisioner }) => `${name} (${provisioner ?? "none"})`))}`,
      "declare their owner in spec.disruption.provisioners, or keep the pool's pods off them",
    );
  });
}

/** Each provisioner's word for capacity that is taken away at any time. */
const SPOT: Readonly<Record<string, string>> = {
  "karpenter.sh/capacity-type": "spot",
  "eks.amazonaws.com/capacityType": "SPOT",
  "cloud.google.com/gke-spot": "true",
  "cloud.google.com/gke-preemptible": "true",
  "kubernetes.azure.com/scalesetpriority": "spot",
};
const GROUP_LABELS = [
  "karpenter.sh/nodepool",
  "eks.amazonaws.com/nodegroup",
  "cloud.google.com/gke-nodepool",
  "kubernetes.azure.com/agentpool",
];

/** Whoever evacuates must not stand on what is evacuated. */
export async function checkOwnPlace(facts: ClusterFacts): Promise<readonly Finding[]> {
  if (facts.ownNamespace === null)
    return [ok("own place", "the controller runs outside of the cluster, or was not told its namespace (POD_NAMESPACE)")];
  const listed = await listAll(facts.kube, PODS, { namespace: facts.ownNamespace, labelSelector: "app.kubernetes.io/part-of=relevo" });
  const nodes = new Map(facts.nodes().map((node) => [node.name, node]));
  const acting = new Set(actingPools(facts).map(({ key }) => key));
  const evacuated = facts.nodes().filter(({ pools }) => pools.some((pool) => acting.has(pool)));
  const groups = new Set(evacuated.flatMap((node) => groupOf(node) ?? []));
  const pods = itemsOf(listed).flatMap((object) => {
    const pod = parsePod(object);
    // An agent belongs on every node.
    return pod.ok && pod.value.metadata.labels["app.kubernetes.io/component"] !== "agent" ? [pod.value] : [];
  });
  const wrong = pods.flatMap(({ metadata, spec }) => {
    const node = nodes.get(spec.nodeName ?? "");
    const why = node && whyNotHere(node, evacuated, groups);
    return why === undefined ? [] : [`${metadata.name} on ${node?.name ?? "?"} (${why})`];
  });
  const unlisted = unseen("own place", { pods: listed });
  if (wrong.length === 0)
    return unlisted.length > 0 ? unlisted : [ok("own place", `${pods.length} pods of Relevo, none on what it evacuates`)];
  return [
    bad(
      "own place",
      "refused",
      `runs on capacity that it evacuates: ${named(wrong)}`,
      "give controllers and gateways nodes of their own that are not spot, by node affinity or a taint (docs/kubernetes.md)",
    ),
  ];
}

function whyNotHere(node: InspectedNode, evacuated: readonly InspectedNode[], groups: ReadonlySet<string>): string | undefined {
  const spot = Object.entries(SPOT).find(([key, value]) => node.labels[key] === value);
  if (spot !== undefined) return `${spot[0]}=${spot[1]}`;
  const beside = evacuated.find(({ name }) => name === node.name);
  if (beside !== undefined) return `carries instances of ${beside.pools.join(", ")}`;
  const group = groupOf(node);
  return group !== undefined && groups.has(group) ? `${group}, as instances that it evacuates` : undefined;
}

function groupOf({ labels }: InspectedNode): string | undefined {
  const key = GROUP_LABELS.find((label) => labels[label] !== undefined);
  return key === undefined ? undefined : `${key}=${labels[key] ?? ""}`;
}

function named(all: readonly string[]): string {
  return all.length <= NAMES_MAX ? all.join(", ") : `${all.slice(0, NAMES_MAX).join(", ")} and ${all.length - NAMES_MAX} more`;
}
