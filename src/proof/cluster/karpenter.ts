/** The definitions that Relevo reads and writes, and Karpenter: its version, its promise to end nodes at a time, its own queue. */
import type { KubeApi, KubeObject } from "../../kube/api.ts";
import { z } from "zod";
import { DEPLOYMENTS, NODE_POOLS, POOLS } from "../../kube/resources.ts";
import { bad, type Finding, ok } from "../../model/finding.ts";
import { actingPools, type ClusterFacts } from "./facts.ts";
import { itemsOf, listAll, unseen } from "./read.ts";

/** By use: a list is answered only where the version that Relevo speaks is served. */
export async function checkDefinitions({ kube }: ClusterFacts): Promise<readonly Finding[]> {
  const check = "definition pools.relevo.dev";
  const { state } = await listAll(kube, POOLS);
  switch (state) {
    case "listed":
      return [ok(check, `serves ${POOLS.version}`)];
    case "not_served":
      return [bad(check, "refused", `does not serve ${POOLS.version}`, "kubectl apply -k deploy/crds")];
    case "forbidden":
      return [bad(check, "refused", "its objects may not be listed", "grant the capability `base` of deploy/")];
    default:
      return state satisfies never;
  }
}

export async function checkKarpenter(facts: ClusterFacts): Promise<readonly Finding[]> {
  const pools = await listAll(facts.kube, NODE_POOLS);
  const isDeclared = facts.pools().some(({ document }) => document.spec.disruption.provisioners.includes("karpenter"));
  if (pools.state === "not_served") {
    if (!isDeclared || actingPools(facts).length === 0) return [ok("karpenter", "is not installed")];
    return [
      bad(
        "karpenter",
        "refused",
        "karpenter.sh/v1 is not served, and pools in mode Act declare it as the owner of their nodes",
        "install Karpenter 1.0 or newer, or declare who owns the nodes in spec.disruption.provisioners",
      ),
    ];
  }
  const versions = await versionsOf(facts.kube);
  return [
    ok(
      "karpenter",
      `karpenter.sh/v1 is served${versions.length === 0 ? "; its version is not known: no Deployment of it is seen" : `, version ${versions.join(", ")}`}`,
    ),
    ...unseen("karpenter", { nodepools: pools }),
    ...itemsOf(pools).flatMap(boundOf),
  ];
}

async function versionsOf(kube: KubeApi): Promise<readonly string[]> {
  const deployments = itemsOf(await listAll(kube, DEPLOYMENTS, { labelSelector: "app.kubernetes.io/name=karpenter" }));
  return [...new Set(deployments.map(({ metadata }) => metadata.labels?.["app.kubernetes.io/version"] ?? "unknown"))].toSorted();
}

const nodePoolSchema = z.object({
  spec: z.object({ template: z.object({ spec: z.object({ terminationGracePeriod: z.string().nullish() }) }) }),
});

/** With it Karpenter ends a node at a time, protected or not. */
function boundOf(nodePool: KubeObject): readonly Finding[] {
  const parsed = nodePoolSchema.safeParse(nodePool);
  const bound = parsed.data?.spec.template.spec.terminationGracePeriod;
  if (bound === undefined || bound === null) return [];
  return [
    bad(
      `NodePool ${nodePool.metadata.name}`,
      "warning",
      `terminationGracePeriod is ${bound}: its nodes end then, with what is protected on them; such losses are counted as deadline`,
      "remove it where drains may take longer, or keep drains shorter",
    ),
  ];
}
