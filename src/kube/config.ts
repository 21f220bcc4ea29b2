/** From a kubeconfig (or a pod's service account) to a KubeApi. */
import type { RequestOptions } from "node:https";
import { readFileSync } from "node:fs";
import type { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";
import type { KubeApi } from "./api.ts";
import { httpKubeApi } from "./http-api.ts";

export interface KubeApiSource {
  /** A file; without one `KUBECONFIG`, `~/.kube/config`, then the service account of the pod that we run in. */
  readonly kubeconfig?: string | undefined;
  /** Another context than the current one. */
  readonly context?: string | undefined;
}

/** Rejects with a RelevoError that names what is missing. */
export async function loadKubeApi(source: KubeApiSource = {}): Promise<KubeApi & { close(): Promise<void> }> {
  const plain = readPlainHttp(source);
  if (plain !== undefined) return httpKubeApi({ baseUrl: plain.server, token: plain.token });
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
    ca: cluster.caData === undefined ? readIfGiven(cluster.caFile) : Buffer.from(cluster.caData, "base64"),
    insecureSkipTlsVerify: cluster.skipTLSVerify,
    tlsServerName: cluster.tlsServerName,
    proxyUrl: cluster.proxyUrl,
    authorize: () => headersOf(config, cluster.server),
    ...clientCertificate(config),
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

/** Tokens, also those that rotate or come from a plugin. A client certificate from an exec plugin is not supported. */
async function headersOf(config: KubeConfig, server: string): Promise<Readonly<Record<string, string>>> {
  const user = config.getCurrentUser();
  if (user?.token !== undefined && user.token !== "") return { authorization: `Bearer ${user.token}` };
  // The library refuses plain HTTP; what it would ask a plugin for must not travel unencrypted anyway.
  if (!server.startsWith("https:")) return {};
  const options: RequestOptions = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) if (typeof value === "string") headers[name.toLowerCase()] = value;
  if (typeof options.auth === "string") headers["authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  return headers;
}

function clientCertificate(config: KubeConfig): { readonly cert?: Buffer; readonly key?: Buffer } {
  const user = config.getCurrentUser();
  const cert = user?.certData === undefined ? readIfGiven(user?.certFile) : Buffer.from(user.certData, "base64");
  const key = user?.keyData === undefined ? readIfGiven(user?.keyFile) : Buffer.from(user.keyData, "base64");
  return cert === undefined || key === undefined ? {} : { cert, key };
}

function readIfGiven(file: string | undefined): Buffer | undefined {
  return file === undefined || file === "" ? undefined : readFileSync(file);
}
