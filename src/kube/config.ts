/** From a kubeconfig (or a pod's service account) to a KubeApi. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";
import { systemClock } from "../kernel/system.ts";
import type { KubeApi } from "./api.ts";
import { KubeconfigCredentials } from "./credentials.ts";
import { httpKubeApi } from "./http-api.ts";
import { RateLimiter, type RateLimits } from "./limiter.ts";

export interface KubeApiSource {
  /** A file; without one `KUBECONFIG`, `~/.kube/config`, then the service account of the pod that we run in. */
  readonly kubeconfig?: string | undefined;
  /** Another context than the current one. */
  readonly context?: string | undefined;
  /** How fast it may be called; without, there is no limit of our own. */
  readonly limits?: RateLimits | undefined;
}

/** Rejects with a RelevoError that names what is missing. */
export async function loadKubeApi(source: KubeApiSource = {}): Promise<KubeApi & { close(): Promise<void> }> {
  const plain = readPlainHttp(source);
  const limiter = source.limits === undefined ? undefined : new RateLimiter(source.limits, systemClock);
  if (plain !== undefined) return httpKubeApi({ baseUrl: plain.server, token: plain.token, limiter });
  const config = await readConfig(source);
  const cluster = config.getCurrentCluster();
  if (!cluster) {
    throw new RelevoError("kubeconfig_no_cluster", "the kubeconfig names no cluster for the context", {
      found: config.getCurrentContext(),
      allowed: config
        .getContexts()
        .map((context) => context.name)
        .join(", "),
    });
  }
  return httpKubeApi({
    baseUrl: cluster.server,
    insecureSkipTlsVerify: cluster.skipTLSVerify,
    tlsServerName: cluster.tlsServerName,
    proxyUrl: cluster.proxyUrl,
    credentials: new KubeconfigCredentials(() => readConfig(source), systemClock),
    limiter,
  });
}

const plainSchema = z.object({
  "current-context": z.string().optional(),
  contexts: z.array(z.object({ name: z.string(), context: z.object({ cluster: z.string(), user: z.string().optional() }) })),
  clusters: z.array(z.object({ name: z.string(), cluster: z.strictObject({ server: z.string().startsWith("http:") }) })),
  users: z.array(z.object({ name: z.string(), user: z.strictObject({ token: z.string().optional() }) })).default([]),
});

/**
 * Of a file whose servers are all plain HTTP, as that of the embedded cluster: it needs none of the library's ways to prove who we are, and loading the
 * library takes longer than all else that a controller starts with. Undefined for any other file and for one with a fault: the library tells it.
 */
function readPlainHttp({
  kubeconfig,
  context,
}: KubeApiSource): { readonly server: string; readonly token: string | undefined } | undefined {
  if (kubeconfig === undefined) return undefined;
  let text: unknown;
  try {
    text = parse(readFileSync(kubeconfig, "utf8"));
  } catch {
    return undefined;
  }
  const { data } = plainSchema.safeParse(text);
  const chosen = data?.contexts.find(({ name }) => name === (context ?? data["current-context"]))?.context;
  const server = data?.clusters.find(({ name }) => name === chosen?.cluster)?.cluster.server;
  const token = data?.users.find(({ name }) => name === chosen?.user)?.user.token;
  return server === undefined ? undefined : { server, token: token === "" ? undefined : token };
}

async function readConfig({ kubeconfig, context }: KubeApiSource): Promise<KubeConfig> {
  const library = await import("@kubernetes/client-node");
  const config = new library.KubeConfig();
  try {
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
  } catch (cause) {
    throw new RelevoError(
      "kubeconfig_unreadable",
      `the kubeconfig cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      { found: kubeconfig, cause },
    );
  }
  if (kubeconfig !== undefined) readTokenFiles(config, kubeconfig);
  if (context === undefined) return config;
  if (!config.getContextObject(context)) {
    throw new RelevoError("kubeconfig_no_context", "the kubeconfig has no such context", {
      found: context,
      allowed: config
        .getContexts()
        .map((each) => each.name)
        .join(", "),
    });
  }
  config.setCurrentContext(context);
  return config;
}

const tokenFilesSchema = z.object({
  users: z.array(z.object({ name: z.string(), user: z.object({ tokenFile: z.string().optional() }).nullish() })),
});

/** Kubernetes' clients know `tokenFile`, the library does not. A path is relative to the file that names it. */
function readTokenFiles(config: KubeConfig, path: string): void {
  const { data } = tokenFilesSchema.safeParse(parse(readFileSync(path, "utf8")));
  for (const { name, user } of data?.users ?? []) {
    if (user?.tokenFile === undefined) continue;
    const authProvider = { name: "tokenFile", config: { tokenFile: resolve(dirname(path), user.tokenFile) } };
    config.users = config.users.map((each) => (each.name === name ? { ...each, authProvider } : each));
  }
}
