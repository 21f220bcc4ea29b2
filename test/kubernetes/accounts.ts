/** Clients that are ServiceAccounts. */
import type { KubeApi } from "../../src/kube/api.ts";
import { loadKubeApi } from "../../src/kube/config.ts";
import { kubeconfigOfAccount } from "../../tools/kubernetes/accounts.ts";
import type { RealCluster } from "./cluster.ts";

/** The caller closes it. */
export async function apiOfAccount(
  cluster: RealCluster,
  namespace: string,
  account: string,
): Promise<KubeApi & { close(): Promise<void> }> {
  return loadKubeApi({ kubeconfig: await kubeconfigOfAccount(cluster, namespace, account) });
}
