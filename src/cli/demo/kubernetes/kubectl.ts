/** Debian's kubectl, as the cluster's administrator. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** Settles with what it wrote to stdout; rejects with what it wrote to stderr. */
export type Kubectl = (...args: readonly string[]) => Promise<string>;

const LIMIT_MS = 120_000;
const OUTPUT_BYTES_MAX = 16 * 2 ** 20;

export function kubectlWith(kubeconfig: string, dir: string): Kubectl {
  return async (...args) => {
    const all = ["--kubeconfig", kubeconfig, "--cache-dir", join(dir, "kubectl-cache"), ...args];
    return (await promisify(execFile)("kubectl", all, { timeout: LIMIT_MS, maxBuffer: OUTPUT_BYTES_MAX })).stdout;
  };
}
