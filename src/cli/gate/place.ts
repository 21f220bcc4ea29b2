/** Where a gate is run: the coordinator, how many workers are declared, and who kills one of them. */
import { RelevoError } from "../../kernel/errors.ts";
import type { GateDocument } from "../../model/gate.ts";
import type { KubeApi } from "../../kube/api.ts";
import { loadKubeApi } from "../../kube/config.ts";
import { INSTANCE_LABEL } from "../../kube/types.ts";
import { declaredWorkers } from "../../proof/gate/declared-workers.ts";
import { exchangeFolder } from "../../proof/gate/exchange-folder.ts";
import { killByCommand } from "../../proof/gate/kill-command.ts";
import { killByPod, type PodsOfCluster } from "../../proof/gate/kill-pod.ts";
import type { ExchangeListing, Killer, ReadyWorkers } from "../../proof/gate/ports.ts";
import { NOBODY_TELLS, readyByAddress, readyByPod } from "../../proof/gate/ready-workers.ts";
import { instanceView, nodeView } from "../../server/views.ts";
import { type ControllerClient, connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { UsageError } from "../exit.ts";
import { readRunFile } from "../run-file.ts";
import { levelOf } from "../verify/report.ts";

export interface PlaceOptions extends GlobalOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
}

export interface GatePlace {
  /** `http://host:port` of the coordinator. */
  readonly base: string;
  readonly declaredWorkers: number;
  readonly killer: Killer;
  readonly ready: ReadyWorkers;
  readonly listing: ExchangeListing;
  readonly level: string;
  close(): Promise<void>;
}

/** Throws when there is no such instance, or when nobody can be asked. */
export async function findPlace(context: CliContext, { metadata, spec }: GateDocument, options: PlaceOptions): Promise<GatePlace> {
  const listing = listingAt(spec.exchange.location);
  const opened: { close(): Promise<void> }[] = [];
  const keep = <T extends { close(): Promise<void> }>(each: T): T => {
    opened.push(each);
    return each;
  };
  const { where, kill } = spec;
  const cluster =
    where.pool === undefined ? undefined : await clusterOf(connect(context, options), where.pool, metadata.namespace ?? options.namespace);
  const needsKube = cluster !== undefined || kill.pod !== undefined;
  const kube = needsKube ? keep(await openKube(context, options)) : undefined;
  try {
    const pods: PodsOfCluster = {
      namespace: kill.pod?.namespace ?? cluster?.namespace ?? metadata.namespace ?? options.namespace,
      labelSelector: cluster === undefined ? undefined : `${INSTANCE_LABEL}=${cluster.instance}`,
    };
    const base = cluster?.base ?? (where.coordinator?.url ?? "").replace(/\/+$/, "");
    const isByPods = kube !== undefined && cluster !== undefined;
    return {
      base,
      declaredWorkers: where.workers.count ?? (isByPods ? await declaredWorkers(kube, pods) : where.workers.urls.length),
      killer:
        kill.command === undefined
          ? killByPod(asKube(kube), pods)
          : keep(killByCommand({ command: kill.command, restart: kill.restart, cwd: context.cwd, clock: context.clock })),
      ready: readyOf(context, where.workers.urls, isByPods ? readyByPod(kube, pods, new URL(base).hostname) : NOBODY_TELLS, keep),
      listing,
      level: cluster?.level ?? "the engine that answers at the address, as it is",
      close: () => closeAll(opened),
    };
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

function readyOf(
  { clock }: CliContext,
  urls: readonly string[],
  otherwise: ReadyWorkers,
  keep: (each: ReturnType<typeof readyByAddress>) => ReadyWorkers,
): ReadyWorkers {
  return urls.length === 0 ? otherwise : keep(readyByAddress(urls, clock));
}

function asKube(kube: KubeApi | undefined): KubeApi {
  if (kube === undefined) throw new RelevoError("no_cluster", "A pod is killed in a cluster, and none is known.");
  return kube;
}

async function closeAll(opened: readonly { close(): Promise<void> }[]): Promise<void> {
  for (const each of opened) await each.close();
}

function openKube(context: CliContext, { kubeconfig, context: name }: PlaceOptions): Promise<KubeApi & { close(): Promise<void> }> {
  const path = kubeconfig ?? readRunFile(context.cwd)?.kubeconfig;
  return loadKubeApi({ ...(path === undefined ? {} : { kubeconfig: path }), ...(name === undefined ? {} : { context: name }) });
}

/** A folder as it is seen from here. */
function listingAt(location: string): ExchangeListing {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(location)?.[1];
  if (scheme === undefined) return exchangeFolder(location);
  if (scheme === "file") return exchangeFolder(new URL(location).pathname);
  throw new UsageError("exchange_unsupported", `An exchange at ${scheme}:// cannot be listed.`, {
    found: location,
    allowed: "a folder",
  });
}

interface ClusterFound {
  readonly instance: string;
  readonly namespace: string;
  readonly base: string;
  readonly level: string;
}

async function clusterOf(
  client: ControllerClient,
  { name, instance }: { readonly name: string; readonly instance?: string | undefined },
  namespace: string,
): Promise<ClusterFound> {
  const pool = poolKeyOf(name, namespace);
  const instances = await client.list(`/v1/instances?pool=${encodeURIComponent(pool)}`, instanceView);
  const serving = instances.filter(({ phase, address }) => phase === "serving" && address !== null);
  const found = instance === undefined ? serving[0] : serving.find(({ id }) => id === instance);
  if (found === undefined || found.address === null)
    throw new RelevoError(
      "gate_no_cluster",
      instance === undefined ? `No cluster of ${pool} serves.` : `${instance} of ${pool} does not serve.`,
      {
        found: instances.map(({ id, phase }) => `${id} ${phase}`).join(", ") || "no instance",
        todo: "see relevo get instances",
      },
    );
  const level = levelOf(await client.list("/v1/nodes", nodeView));
  return { instance: found.id, namespace: pool.split("/")[0] ?? namespace, base: `http://${found.address}`, level };
}
