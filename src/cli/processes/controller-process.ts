/** `relevo controller`: the HTTP API, the webhooks, the reconcile loop; the only kind of process that opens the store. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { FreezeConfigs } from "../../control/freeze-config.ts";
import { electedMembers, type Members } from "../../control/members.ts";
import { ConnectionFile } from "../../demand/connection-file.ts";
import { readConnections } from "../../demand/read-connections.ts";
import { driverFor } from "../../drivers/drivers.ts";
import { LeaseTokens } from "../../lease/token.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { isLoopback } from "../../kernel/loopback.ts";
import { systemClock, systemIds, systemRandom } from "../../kernel/system.ts";
import type { KubeApi } from "../../kube/api.ts";
import { loadKubeApi } from "../../kube/config.ts";
import { RATE_DEFAULTS, type RateLimits } from "../../kube/limiter.ts";
import { createServer } from "../../server/app.ts";
import type { Authenticator } from "../../server/callers.ts";
import { KubernetesAccess } from "../../server/kubernetes-access.ts";
import { createLogger, type Logger } from "../../server/log.ts";
import { createMetrics } from "../../server/metrics.ts";
import { RENEW_PATH } from "../../server/routes/leases.ts";
import { oneToken } from "../../server/one-token.ts";
import { TokenFile } from "../../server/token-file.ts";
import { WatchedFile } from "../../server/watched-file.ts";
import { VERSION } from "../version.ts";
import { tellReady, untilAskedToEnd } from "./child.ts";
import { embeddedSight } from "../../proof/effect/embedded-sight.ts";
import type { PodSight } from "../../proof/effect/ports.ts";
import { composeController } from "./controller.ts";
import { assertQueueUrl } from "../../notices/sqs/queue-url.ts";
import type { KedaScalerSetup } from "./keda-scaler.ts";
import { type NoticeQueueOptions, startNoticeQueues } from "./notice-queues.ts";
import { type ControllerStoreOptions, openControllerStore } from "./controller-store.ts";

export interface ControllerProcessOptions extends ControllerStoreOptions {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** How fast the API server may be called, where that is not as usual; a `qps` of 0 is no limit. */
  readonly kubeLimits?: { readonly qps?: number | undefined; readonly burst?: number | undefined } | undefined;
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Of a file: as `webhookSecret`. */
  readonly token: string | SecretFile | null;
  /** Of a file: what is in it counts, also when that changes. `read` throws when it is none. */
  readonly webhookSecret: string | SecretFile | null;
  /** Who else may call, beside whoever has `token`. */
  readonly access?: AccessOptions | undefined;
  readonly spotLeadMs?: number | undefined;
  /** Of the site, where learning begins: evacuations a second, and at once. */
  readonly absorption?: { readonly perSecond: number; readonly burst: number } | undefined;
  /** How instances reach this API, where that is not the address on which it listens. */
  readonly advertise?: string | undefined;
  /** In which this runs: a ConfigMap there may freeze the Pools of all namespaces. */
  readonly ownNamespace?: string | undefined;
  /** Where there are several replicas. */
  readonly replicas?: ReplicaOptions | undefined;
  /** The ServiceAccount that makes the objects of Pools which name none. */
  readonly instancesAccount?: string | undefined;
  /** The cluster has the PriorityClasses of `deploy/`. */
  readonly priorityClasses?: boolean | undefined;
  /** From which notices are taken, beside the webhooks. */
  readonly queues?: NoticeQueueOptions | undefined;
  /** A file of connections, from which Pools read their demand. */
  readonly connections?: string | undefined;
  /** Where KEDA may ask for sizes; absent: nowhere. */
  readonly keda?: KedaScalerSetup | undefined;
  readonly logLevel: string;
}

/** `read` throws, with `found: "ENOENT"` when there is no file, as where a Secret is optional: until there is one nobody is let in by it. */
export interface SecretFile {
  readonly path: string;
  readonly read: () => string;
}

export interface AccessOptions {
  readonly tokenFile?: string | undefined;
  /** The API server is asked who calls. */
  readonly kubernetes: boolean;
  readonly audience?: string | undefined;
}

export interface ReplicaOptions {
  /** In which each replica holds its Lease. */
  readonly namespace: string;
  /** The name of this one; a new one at each start when absent. */
  readonly id?: string | undefined;
  /** How other replicas and gateways reach this one, where that is not the address on which it listens. */
  readonly url?: string | undefined;
}

/** The embedded cluster keeps its pods beside its kubeconfig. */
function sightBeside(kubeconfig: string | undefined): { readonly sight?: PodSight } {
  const dir = kubeconfig === undefined ? undefined : dirname(resolve(kubeconfig));
  return dir !== undefined && existsSync(join(dir, "embedded.json")) ? { sight: embeddedSight(dir, systemClock) } : {};
}

/** Runs until it is asked to end. Throws `queue_url_invalid`, `connections_invalid`. */
export async function runController(options: ControllerProcessOptions): Promise<void> {
  options.queues?.urls.forEach(assertQueueUrl);
  const asked = untilAskedToEnd();
  const log = createLogger({ level: options.logLevel, name: "controller", clock: systemClock });
  const webhookSecret = secretOf(options.webhookSecret, "secret", log);
  const token = secretOf(options.token, "token", log);
  const connections = options.connections === undefined ? undefined : connectionsIn(options.connections, log);
  const { store, leaseKey } = await openControllerStore(options);
  const kube = await loadKubeApi({ kubeconfig: options.kubeconfig, context: options.context, limits: limitsOf(options) });
  const metrics = createMetrics();
  const leaseTokens = new LeaseTokens(leaseKey);
  let reachedAt = options.advertise ?? "";
  let listensAt = "";
  const members = options.replicas && membersOf(options.replicas, { kube, log, listensAt: () => listensAt });
  const composed = composeController({
    kube,
    store,
    driver: driverFor({ clock: systemClock }),
    clock: systemClock,
    random: systemRandom,
    ids: systemIds,
    log,
    metrics,
    ...(members === undefined ? {} : { members }),
    ...(connections === undefined ? {} : { connections }),
    freezes: new FreezeConfigs({
      api: kube,
      clock: systemClock,
      random: systemRandom,
      log: (level, message, fields) => log[level](fields, message),
      ownNamespace: options.ownNamespace ?? null,
    }),
    leaseDoor: { tokens: leaseTokens, url: () => new URL(RENEW_PATH, reachedAt).href },
    ...(options.spotLeadMs === undefined ? {} : { spotLeadMs: options.spotLeadMs }),
    ...(options.absorption === undefined ? {} : { absorption: options.absorption }),
    ...(options.instancesAccount === undefined ? {} : { instancesAccount: options.instancesAccount }),
    ...sightBeside(options.kubeconfig),
    readsEvents: true,
    capabilities: ["events", "apply", "freeze", "doctor", ...(options.access?.kubernetes ? (["access_review"] as const) : [])],
    ownNamespace: options.ownNamespace ?? options.replicas?.namespace ?? null,
    cluster: { hasPriorityClasses: options.priorityClasses ?? false },
  });
  const server = await createServer({
    options: { host: options.host, token: typeof token === "function" ? null : token, webhookSecret, version: VERSION },
    controlPlane: composed.controlPlane,
    metrics,
    log,
    clock: systemClock,
    leaseTokens,
    authenticators: [...(typeof token === "function" ? [oneToken(token)] : []), ...authenticatorsOf(options.access, kube, log)],
  });
  const url = await server.listen({ host: options.host, port: options.port });
  reachedAt ||= url;
  listensAt = url;
  if (options.advertise === undefined && !isLoopback(options.host))
    log.warn({ url }, "instances are told to renew writer leases here: set --advertise to an address that they reach");
  if (options.advertise === undefined && options.replicas !== undefined)
    log.warn(
      { url },
      "instances are told to renew writer leases at this very replica: set --advertise to an address that leads to whichever is there",
    );
  log.info({ url }, "the controller's API is up");
  tellReady({ controller: url });
  // gRPC is large: only who serves it loads it.
  const keda = options.keda && (await (await import("./keda-scaler.ts")).startScaler(options.keda, composed.sizes, log));
  // It starts once it has seen the whole cluster, which may be away for as long as it likes.
  await Promise.race([composed.controller.start(), asked]);
  // Whose machine is whose is known now.
  const queues =
    options.queues &&
    (await startNoticeQueues(options.queues, { door: composed.notices, metrics, clock: systemClock, random: systemRandom, log }));

  await asked;
  log.info({}, "ending in good order");
  // First of all: what others wait for.
  await composed.handOver();
  connections?.stop();
  await queues?.stop();
  await keda?.close();
  await server.close();
  await composed.close();
  await kube.close();
}

function connectionsIn(path: string, log: Logger): ConnectionFile {
  return new ConnectionFile({
    read: () => readConnections(path, process.env),
    clock: systemClock,
    log: (level, message, fields) => log[level](fields, message),
  });
}

function secretOf(given: string | SecretFile | null, what: "secret" | "token", log: Logger): string | (() => string | undefined) | null {
  if (given === null || typeof given === "string") return given;
  const fields = { event: `${what}_file`, path: given.path };
  const file = new WatchedFile<string | undefined>({
    ...{ path: given.path, clock: systemClock },
    read: presentOf(given),
    onRead: (now, before) => {
      if (now !== before) log.info(fields, `the ${what} was exchanged in its file: only the new one is good`);
    },
    onTrouble: (trouble) => log.error(fields, `the ${what} from before stays: ${trouble}`),
  });
  if (file.current() === undefined) log.info(fields, `there is no ${what} in its file: nobody is let in by it`);
  return () => file.current();
}

/** Undefined as long as there was no file: one that goes later leaves what was in it. */
export function presentOf({ read }: SecretFile): () => string | undefined {
  let wasThere = false;
  return () => {
    try {
      const secret = read();
      wasThere = true;
      return secret;
    } catch (error) {
      if (!wasThere && error instanceof RelevoError && error.found === "ENOENT") return undefined;
      throw error;
    }
  };
}

function authenticatorsOf(access: AccessOptions | undefined, kube: KubeApi, log: Logger): readonly Authenticator[] {
  const { tokenFile, kubernetes = false, audience } = access ?? {};
  return [
    ...(tokenFile === undefined ? [] : [new TokenFile(tokenFile, systemClock, log)]),
    ...(kubernetes ? [new KubernetesAccess({ kube, clock: systemClock, audience })] : []),
  ];
}

function membersOf(
  { namespace, id, url }: ReplicaOptions,
  { kube, log, listensAt }: { readonly kube: KubeApi; readonly log: Logger; readonly listensAt: () => string },
): Members {
  return electedMembers({
    api: kube,
    namespace,
    id: id ?? systemIds.next("replica"),
    apiUrl: () => url ?? listensAt(),
    version: VERSION,
    clock: systemClock,
    random: systemRandom,
    log: (level, message, fields) => log[level](fields, message),
  });
}

function limitsOf({ kubeLimits }: ControllerProcessOptions): RateLimits | undefined {
  const { qps = RATE_DEFAULTS.qps, burst = RATE_DEFAULTS.burst } = kubeLimits ?? {};
  return qps === 0 ? undefined : { qps, burst };
}
