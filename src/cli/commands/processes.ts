/** From the options of the command line to those of the processes; the secrets come from files and the environment, never from arguments. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { RelevoError } from "../../kernel/errors.ts";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import type { ReplicaOptions } from "../processes/controller-process.ts";
import { storeTargetOf } from "../store-target.ts";
import { tokenSourceOf } from "../token-source.ts";
import type { ClusterCommandOptions, ControllerCommandOptions, GatewayCommandOptions, QueueCommandOptions } from "../process-commands.ts";

export async function controller(context: CliContext, options: ControllerCommandOptions): Promise<ExitCode> {
  const {
    kubeconfig,
    webhookSecretFile,
    spotLead,
    store,
    storePasswordFile,
    leaseKeyFile,
    absorbPerSecond,
    absorbAtOnce,
    kubeQps,
    kubeBurst,
    replicasNamespace,
    replica: _replica,
    replicaUrl: _replicaUrl,
    sqsQueue = [],
    awsRegion,
    sqsEndpoint,
    sqsUnclaimed = "delete",
    lifecycleHooks = false,
    tokenFile,
    auth,
    authAudience,
    connections,
    kedaScaler,
    kedaTlsCert,
    kedaTlsKey,
    kedaClientCa,
    kedaTokenFile,
    ...rest
  } = options;
  const path = (file: string | undefined) => (file === undefined ? undefined : resolve(context.cwd, file));
  if ((absorbPerSecond === undefined) !== (absorbAtOnce === undefined))
    throw new UsageError("absorption_incomplete", "What a site absorbs is told whole.", {
      found: absorbPerSecond === undefined ? "--absorb-at-once alone" : "--absorb-per-second alone",
      allowed: "both --absorb-per-second and --absorb-at-once, or neither",
    });
  const { runController } = await import("../processes/controller-process.ts");
  const fileOf = (file: string | undefined) =>
    file === undefined || file === "" ? null : { path: resolve(context.cwd, file), read: () => secretOf(context, file) };
  await runController({
    ...rest,
    kubeconfig: kubeconfig ?? context.env.KUBECONFIG,
    ...storeTargetOf(context, { store, storePasswordFile }),
    leaseKeyFile: leaseKeyFile === undefined ? undefined : resolve(context.cwd, leaseKeyFile),
    token: context.env.RELEVO_TOKEN || fileOf(context.env.RELEVO_TOKEN_FILE),
    access: {
      tokenFile: tokenFile === undefined ? undefined : resolve(context.cwd, tokenFile),
      kubernetes: auth === "kubernetes",
      audience: authAudience,
    },
    connections: path(connections),
    keda:
      kedaScaler === undefined
        ? undefined
        : {
            ...{ listen: kedaScaler, certFile: path(kedaTlsCert), keyFile: path(kedaTlsKey) },
            ...{ clientCaFile: path(kedaClientCa), tokenFile: path(kedaTokenFile) },
          },
    webhookSecret: webhookSecretFile === undefined ? (context.env.RELEVO_WEBHOOK_SECRET ?? null) : fileOf(webhookSecretFile),
    spotLeadMs: spotLead,
    queues: {
      urls: sqsQueue,
      region: awsRegion,
      endpoint: sqsEndpoint,
      unclaimed: sqsUnclaimed,
      answersLifecycleHooks: lifecycleHooks,
    },
    ownNamespace: replicasNamespace ?? context.env.POD_NAMESPACE,
    replicas: replicasOf(context, options),
    kubeLimits: { qps: kubeQps, burst: kubeBurst },
    absorption:
      absorbPerSecond === undefined || absorbAtOnce === undefined ? undefined : { perSecond: absorbPerSecond, burst: absorbAtOnce },
  });
  return EXIT.done;
}

/** In a cluster the Pod says who it is. With SQLite there is one controller: the file has one owner. */
function replicasOf({ env }: CliContext, options: ControllerCommandOptions): ReplicaOptions | undefined {
  const { replicasNamespace, replica, replicaUrl, port } = options;
  const store = options.store ?? env.RELEVO_STORE ?? "";
  if (!/^postgres(ql)?:/.test(store)) {
    if (replicasNamespace === undefined) return undefined;
    throw new UsageError("replicas_need_postgresql", "Several replicas of the controller need a store that they share.", {
      found: store || "a SQLite file",
      allowed: "--store postgresql://…",
    });
  }
  const namespace = replicasNamespace ?? env.POD_NAMESPACE;
  if (namespace === undefined) return undefined;
  const ip = env.POD_IP === undefined ? undefined : `http://${env.POD_IP.includes(":") ? `[${env.POD_IP}]` : env.POD_IP}:${port}`;
  return { namespace, id: replica ?? env.POD_NAME, url: replicaUrl ?? ip };
}

export async function gateway(context: CliContext, options: GatewayCommandOptions): Promise<ExitCode> {
  const { runGateway } = await import("../processes/gateway-process.ts");
  await runGateway({
    controllerUrls: options.controller,
    predecessor: options.predecessor,
    host: options.host,
    port: options.port,
    adminHost: options.adminHost,
    adminPort: options.adminPort,
    token: tokenSourceOf(context),
    name: replicaNameOf(context, options),
    tokenKeys: [{ id: "k1", secret: secretOf(context, options.keyFile) }],
    graceMs: options.grace,
    logLevel: options.logLevel,
  });
  return EXIT.done;
}

/** In a cluster that of the Pod, to which its token is bound. */
function replicaNameOf({ env }: CliContext, { replica }: GatewayCommandOptions): string | undefined {
  const name = replica ?? env.POD_NAME;
  if (name === undefined || /^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$/.test(name)) return name;
  throw new UsageError("replica_invalid", "The name of the replica is not valid.", {
    found: name,
    allowed: "at most 50 lower-case letters, digits and dashes",
    todo: "name it by --replica",
  });
}

export async function cluster(context: CliContext, options: ClusterCommandOptions): Promise<ExitCode> {
  const { runCluster } = await import("../processes/cluster-process.ts");
  await runCluster({
    dir: resolve(context.cwd, options.dir),
    nodes: options.nodes,
    onDemand: options.onDemand,
    zones: options.zones,
    bootDelayMs: options.bootDelay,
    disruptionIntervalMs: options.disruptionInterval,
    apiPort: options.apiPort,
    adminPort: options.adminPort,
    logLevel: options.logLevel,
  });
  return EXIT.done;
}

export async function queue(context: CliContext, options: QueueCommandOptions): Promise<ExitCode> {
  const { runQueue } = await import("../processes/queue-process.ts");
  const { host, port, store, tokenFile, logLevel } = options;
  await runQueue({ host, port, store: resolve(context.cwd, store), tokenFile: resolve(context.cwd, tokenFile), logLevel });
  return EXIT.done;
}

function secretOf(context: CliContext, file: string): string {
  let text: string;
  try {
    text = readFileSync(resolve(context.cwd, file), "utf8").trim();
  } catch (cause) {
    throw new UsageError("file_unreadable", `${file} cannot be read.`, { found: (cause as NodeJS.ErrnoException).code, cause });
  }
  if (text.length >= 16) return text;
  throw new RelevoError("secret_too_short", `The secret in ${file} is too short.`, {
    found: `${text.length} characters`,
    allowed: "at least 16 characters",
  });
}
