/** Clients that are ServiceAccounts, by tokens as their pods have them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { KubeApi } from "../../src/kube/api.ts";
import { loadKubeApi } from "../../src/kube/config.ts";
import type { RealCluster } from "./cluster.ts";

/** A kubeconfig with a fresh token of the account, for processes of their own. It lies in the cluster's folder and goes with it. */
export async function kubeconfigOfAccount(cluster: RealCluster, namespace: string, account: string): Promise<string> {
  const token = (await cluster.kubectl("create", "token", account, "-n", namespace, "--duration=2h")).trim();
  const config = parse(readFileSync(cluster.kubeconfig, "utf8")) as { readonly clusters: readonly { readonly name: string }[] };
  const context = { cluster: config.clusters[0]?.name, user: account };
  const file = join(cluster.dir, `${namespace}.${account}.kubeconfig`);
  const users = [{ name: account, user: { token } }];
  writeFileSync(file, stringify({ ...config, users, contexts: [{ name: account, context }], "current-context": account }));
  return file;
}

/** The caller closes it. */
export async function apiOfAccount(
  cluster: RealCluster,
  namespace: string,
  account: string,
): Promise<KubeApi & { close(): Promise<void> }> {
  return loadKubeApi({ kubeconfig: await kubeconfigOfAccount(cluster, namespace, account) });
}
