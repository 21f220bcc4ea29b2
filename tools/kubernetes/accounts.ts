/** Who calls as a ServiceAccount of the cluster, with a token as its pods have. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse, stringify } from "yaml";
import type { Kubernetes } from "./cluster.ts";

const KUBECTL_LIMIT_MS = 60_000;

/** A kubeconfig with a fresh token of the account, good for hours. It lies in the cluster's folder and goes with it. */
export async function kubeconfigOfAccount(
  cluster: Pick<Kubernetes, "kubeconfig" | "dir">,
  namespace: string,
  account: string,
): Promise<string> {
  const args = ["--kubeconfig", cluster.kubeconfig, "create", "token", account, "-n", namespace, "--duration=6h"];
  const token = (await promisify(execFile)("kubectl", args, { timeout: KUBECTL_LIMIT_MS })).stdout.trim();
  const config = parse(readFileSync(cluster.kubeconfig, "utf8")) as { readonly clusters: readonly { readonly name: string }[] };
  const context = { cluster: config.clusters[0]?.name, user: account };
  const file = join(cluster.dir, `${namespace}.${account}.kubeconfig`);
  const users = [{ name: account, user: { token } }];
  writeFileSync(file, stringify({ ...config, users, contexts: [{ name: account, context }], "current-context": account }), { mode: 0o600 });
  return file;
}
