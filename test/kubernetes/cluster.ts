/** The real Kubernetes for tests: started as children of the test's process, with kubectl and our own client at hand. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { KubeApi } from "../../src/kube/api.ts";
import { loadKubeApi } from "../../src/kube/config.ts";
import { type Kubernetes, type KubernetesOptions, startKubernetes as start } from "../../tools/kubernetes/cluster.ts";
import type { KubernetesUser } from "../../tools/kubernetes/pieces.ts";

export interface RealCluster extends Kubernetes {
  /** May do everything. */
  readonly api: KubeApi;
  /** As a user of the kubeconfig: `nobody` and `relevo` may do nothing until RBAC grants it. Ends with the cluster. */
  apiOf(user: KubernetesUser): Promise<KubeApi>;
  /** Settles with what it wrote to stdout; rejects with what it wrote to stderr. As the admin. */
  kubectl(...args: readonly string[]): Promise<string>;
  /** The same with a text on stdin, as for `apply -f -`. */
  kubectlWith(stdin: string, ...args: readonly string[]): Promise<string>;
}

const KUBECTL_LIMIT_MS = 120_000;
const OUTPUT_BYTES_MAX = 64 * 2 ** 20;

export async function startKubernetes(options: KubernetesOptions = {}): Promise<RealCluster> {
  const cluster = await start(options);
  const apis: { close(): Promise<void> }[] = [];
  const apiOf = async (user: KubernetesUser): Promise<KubeApi> => {
    const api = await loadKubeApi({ kubeconfig: cluster.kubeconfig, context: user });
    apis.push(api);
    return api;
  };
  const kubectlWith = async (stdin: string, ...args: readonly string[]): Promise<string> => {
    const all = ["--kubeconfig", cluster.kubeconfig, "--cache-dir", join(cluster.dir, "kubectl-cache"), ...args];
    const running = promisify(execFile)("kubectl", all, { timeout: KUBECTL_LIMIT_MS, maxBuffer: OUTPUT_BYTES_MAX });
    running.child.stdin?.end(stdin);
    return (await running).stdout;
  };
  return {
    ...cluster,
    api: await apiOf("admin"),
    apiOf,
    kubectl: (...args) => kubectlWith("", ...args),
    kubectlWith,
    stop: async () => {
      await Promise.all(apis.map((api) => api.close()));
      await cluster.stop();
    },
  };
}
