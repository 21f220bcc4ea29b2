/** A real API server alone, with the definitions that the cases need. */
import { join } from "node:path";
import { kubernetesBin } from "../../tools/kubernetes/cluster.ts";
import { type RealCluster, startKubernetes } from "../kubernetes/cluster.ts";

const DEFINITIONS = [join(kubernetesBin(), "karpenter-crds.yaml"), join(import.meta.dirname, "../../deploy/crds/pools.yaml")];

export async function startReal(): Promise<RealCluster> {
  const cluster = await startKubernetes({ parts: [] });
  for (const file of DEFINITIONS) {
    await cluster.kubectl("apply", "--server-side", "-f", file);
    await cluster.kubectl("wait", "--for", "condition=Established", "--timeout", "30s", "-f", file);
  }
  return cluster;
}
