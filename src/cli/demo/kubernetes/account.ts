/** A kubeconfig by which a process is a ServiceAccount, with a token as its pod would have. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Kubectl } from "./kubectl.ts";

const kubeconfig = z.looseObject({ clusters: z.array(z.looseObject({ name: z.string() })).min(1) });

/** Settles with the path of the file, which lies in `dir`. */
export async function kubeconfigOf(
  account: string,
  options: { readonly namespace: string; readonly admin: string; readonly kubectl: Kubectl; readonly dir: string },
): Promise<string> {
  const { namespace, admin, kubectl, dir } = options;
  const token = (await kubectl("create", "token", account, "-n", namespace, "--duration=2h")).trim();
  const config = kubeconfig.parse(JSON.parse(readFileSync(admin, "utf8")));
  const file = join(dir, `${account}.kubeconfig`);
  const users = [{ name: account, user: { token } }];
  const contexts = [{ name: account, context: { cluster: config.clusters[0]?.name, user: account } }];
  writeFileSync(file, JSON.stringify({ ...config, users, contexts, "current-context": account }), { mode: 0o600 });
  return file;
}
