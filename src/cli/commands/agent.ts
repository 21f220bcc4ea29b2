/** `relevo agent`: from the options of the command line to those of the process. Apart from the other processes, because it may load nothing that is large. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import type { AgentCommandOptions } from "../process-commands.ts";
import { type AgentProcessOptions, runAgent } from "../processes/agent-process.ts";

/** Where Kubernetes puts what a pod proves itself with. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

export async function agent(context: CliContext, options: AgentCommandOptions): Promise<ExitCode> {
  const { env, cwd } = context;
  const node = options.node ?? env.NODE_NAME;
  if (node === undefined || node === "")
    throw new UsageError("node_unknown", "The agent has to know its node.", { allowed: "--node NAME, or NODE_NAME in the environment" });
  const file = (path: string): string => resolve(cwd, path);
  const tokenFile = options.tokenFile ?? env.RELEVO_TOKEN_FILE;
  const fromFile = tokenFile === undefined ? undefined : secretFile(file(tokenFile));
  await runAgent({
    node,
    cloud: options.cloud,
    metadataUrl: urlOf("--metadata-url", options.metadataUrl),
    controllerUrls: options.controller.map((url) => urlOf("--controller", url)),
    token: fromFile ?? (() => env.RELEVO_TOKEN),
    controllerCa: options.controllerCa === undefined ? undefined : textFile(file(options.controllerCa)),
    pods: podsOf(context, options),
    instancesFile: options.instancesFile === undefined ? undefined : file(options.instancesFile),
    azureApproval: { isOn: options.azureApprove === true, agreed: options.azureAgreed ?? [] },
    logLevel: options.logLevel,
  });
  return EXIT.done;
}

/** A pod's own service account, unless another API is named; none outside a cluster. */
function podsOf({ env, cwd }: CliContext, { kubeApi, kubeTokenFile, kubeCa }: AgentCommandOptions): AgentProcessOptions["pods"] {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (kubeApi === undefined && host === undefined) return undefined;
  const isOwn = kubeApi === undefined;
  const tokenFile = kubeTokenFile ?? (isOwn ? `${SERVICE_ACCOUNT}/token` : undefined);
  const caFile = kubeCa ?? (isOwn ? `${SERVICE_ACCOUNT}/ca.crt` : undefined);
  return {
    baseUrl: isOwn ? `https://${host?.includes(":") ? `[${host}]` : host}:${port}` : urlOf("--kube-api", kubeApi),
    token: tokenFile === undefined ? () => undefined : secretFile(resolve(cwd, tokenFile)),
    ca: caFile === undefined ? undefined : textFile(resolve(cwd, caFile)),
  };
}

function textFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError("file_unreadable", `${path} cannot be read.`, { found: (error as NodeJS.ErrnoException).code });
  }
}

/** Read at each call: tokens are renewed in their files. What was read last counts while a file is being written anew. */
function secretFile(path: string): () => string | undefined {
  let last: string | undefined;
  return () => {
    try {
      last = textFile(path).trim() || last;
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
}

function urlOf(option: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return text.replace(/\/+$/, "");
  throw new UsageError("url_invalid", `${option} is no URL.`, { found: text, allowed: "http://… or https://…" });
}
