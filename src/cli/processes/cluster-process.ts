/** `relevo cluster`: the embedded cluster, parent of the node helpers. */
import { fileURLToPath } from "node:url";
import { startEmbeddedCluster } from "../../embedded/cluster.ts";
import { kindKey } from "../../embedded/kind-key.ts";
import { systemClock, systemIds, systemRandom } from "../../kernel/system.ts";
import { POOLS } from "../../kube/resources.ts";
import type { KubeObject } from "../../kube/api.ts";
import { poolSchema } from "../../model/pool.ts";
import { problemsOf } from "../../model/problems.ts";
import { createLogger } from "../../server/log.ts";
import { tellReady, untilAskedToEnd } from "./child.ts";

/** So that the documents of the examples can be applied from anywhere. */
const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));

export interface ClusterProcessOptions {
  readonly dir: string;
  readonly nodes: number;
  /** Machines on demand that may come beside those of spot. */
  readonly onDemand: number;
  readonly zones: readonly string[];
  readonly bootDelayMs: number;
  /** How often the provisioner looks for nodes to disrupt, as Karpenter's 10 s. */
  readonly disruptionIntervalMs?: number | undefined;
  /** 0 lets the system choose. */
  readonly apiPort: number;
  readonly adminPort: number;
  readonly logLevel: string;
}

/** An empty node goes after as many looks of the provisioner, as with Karpenter's 10 s and a consolidateAfter of 30 s. */
const CONSOLIDATE_AFTER_INTERVALS = 3;

/** Runs until it is asked to end. */
export async function runCluster(options: ClusterProcessOptions): Promise<void> {
  const asked = untilAskedToEnd();
  const log = createLogger({ level: options.logLevel, name: "cluster", clock: systemClock });
  const { dir, nodes, onDemand, zones, bootDelayMs, disruptionIntervalMs, apiPort, adminPort } = options;
  const cluster = await startEmbeddedCluster({
    dir,
    nodes,
    zones,
    bootDelayMs,
    apiPort,
    adminPort,
    clock: systemClock,
    ids: systemIds,
    random: systemRandom,
    log: (level, message, fields) => log[level](fields, message),
    kubelet: { env: { RELEVO_EXAMPLES: EXAMPLES } },
    validators: { [kindKey(POOLS)]: poolProblems },
    provisioner: {
      maxOnDemand: onDemand,
      ...(disruptionIntervalMs === undefined
        ? {}
        : { disruptionIntervalMs, consolidateAfterMs: CONSOLIDATE_AFTER_INTERVALS * disruptionIntervalMs }),
    },
  });
  tellReady({ cluster: cluster.url, admin: cluster.adminUrl, kubeconfig: cluster.kubeconfigPath });
  await asked;
  await cluster.close();
}

/** What the API server answers to a Pool that its schema refuses. */
function poolProblems(object: KubeObject): readonly { readonly field: string; readonly message: string }[] {
  const parsed = poolSchema.safeParse(object);
  if (parsed.success) return [];
  return problemsOf(poolSchema, parsed.error, object).map(({ field, sentence, found, allowed, todo }) => ({
    field,
    message: [
      sentence,
      `found: ${JSON.stringify(found) ?? "nothing"}`,
      ...(allowed === undefined ? [] : [`allowed: ${allowed}`]),
      ...(todo === undefined ? [] : [todo]),
    ].join("; "),
  }));
}
