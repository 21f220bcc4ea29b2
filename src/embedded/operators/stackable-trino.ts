/**
 * A stand-in for the Stackable operator for Trino, for its behaviour and its traps (T1, T2, T15, T18); not a copy of it. It makes one ConfigMap and one StatefulSet
 * for each role group of a TrinoCluster, and:
 *
 * 1. it renders overrides of the files that it knows, and passes over those of any other in silence;
 * 2. it changes a ConfigMap without the template of the pods, so that no pod begins anew;
 * 3. replicas that somebody else set it sets back at its third look; those of a role group that declares none it leaves alone;
 * 4. it does nothing at all while `reconciliationPaused` is set, and keeps no pod while `stopped` is.
 */
import { isDeepStrictEqual } from "node:util";
import { isConflict, type KubeObject, type ResourceType } from "../../kube/api.ts";
import { apiVersionOf, CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, STATEFUL_SETS } from "../../kube/resources.ts";
import { controllerKey, type ClusterAccess } from "../controllers/access.ts";
import { ControllerLoop } from "../controllers/loop.ts";
import { ownerReference } from "../controllers/replica-set.ts";
import { refOf, type StatefulSetView } from "../controllers/views.ts";
import { type RoleGroup, renderGroup, roleGroupsOf, type TrinoClusterView } from "./stackable-render.ts";

export const TRINO_CLUSTERS: ResourceType = {
  ...{ group: "trino.stackable.tech", version: "v1alpha1", kind: "TrinoCluster", plural: "trinoclusters", namespaced: true },
};

const LOOK_AGAIN_MS = 5_000;
/** At so many looks in a row that found somebody else's replicas it restores its own. */
const RESTORES_AT_LOOK = 3;

/** Makes the kind known; what it holds is not checked. */
export async function installTrinoClusters({ api }: Pick<ClusterAccess, "api">): Promise<void> {
  const { group, version, kind, plural } = TRINO_CLUSTERS;
  const overrides = { type: "object", additionalProperties: { type: "object", additionalProperties: { type: "string" } } };
  const role = { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { configOverrides: overrides } };
  const operation = { type: "object", properties: { stopped: { type: "boolean" }, reconciliationPaused: { type: "boolean" } } };
  const spec = {
    type: "object",
    "x-kubernetes-preserve-unknown-fields": true,
    properties: { clusterOperation: operation, coordinators: role, workers: role },
  };
  try {
    await api.create(CUSTOM_RESOURCE_DEFINITIONS, {
      apiVersion: apiVersionOf(CUSTOM_RESOURCE_DEFINITIONS),
      kind: CUSTOM_RESOURCE_DEFINITIONS.kind,
      metadata: { name: `${plural}.${group}` },
      spec: {
        ...{ group, scope: "Namespaced", names: { kind, plural, singular: kind.toLowerCase() } },
        versions: [
          {
            ...{ name: version, served: true, storage: true, subresources: { status: {} } },
            schema: { openAPIV3Schema: { type: "object", properties: { spec, status: { type: "object" } } } },
          },
        ],
      },
    });
  } catch (error) {
    if (!isConflict(error)) throw error; // of an earlier life of the cluster
  }
}

/** `installTrinoClusters` must be done. */
export function stackableTrinoOperator(access: ClusterAccess): ControllerLoop {
  const clusters = access.informer(TRINO_CLUSTERS);
  const configMaps = access.informer(CONFIG_MAPS);
  const sets = access.informer(STATEFUL_SETS);
  const loop = new ControllerLoop({ name: "stackable-trino", clock: access.clock, log: access.log, signal: access.signal, reconcile });
  clusters.onChange(({ key }) => loop.enqueue(key));
  sets.onChange(({ before, after }) => {
    for (const set of [before, after]) {
      const owner = set === undefined ? undefined : controllerKey(set, TRINO_CLUSTERS.kind);
      if (owner !== undefined) loop.enqueueAfter(owner, LOOK_AGAIN_MS);
    }
  });
  /** By the key of a set: what it was told last, and how often somebody else's number was found. */
  const replicas = new Map<string, { told: number | undefined; foreignLooks: number }>();

  async function reconcile(key: string): Promise<{ requeueAfterMs: number } | void> {
    const cluster = clusters.get(key) as (TrinoClusterView & KubeObject) | undefined;
    if (cluster === undefined || cluster.metadata.deletionTimestamp !== undefined) return;
    if (cluster.spec.clusterOperation?.reconciliationPaused === true) return;
    for (const group of roleGroupsOf(cluster)) await keep(cluster, group);
    await tellStatus(cluster);
    return { requeueAfterMs: LOOK_AGAIN_MS };
  }

  async function keep(cluster: TrinoClusterView & KubeObject, group: RoleGroup): Promise<void> {
    const { namespace = "default" } = cluster.metadata;
    const { name, labels, data, template, selector } = renderGroup(cluster, group);
    const metadata = { name, labels, ownerReferences: [ownerReference(cluster)] };
    const map = configMaps.get(`${namespace}/${name}`);
    if (map === undefined) await access.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata, data }, namespace);
    else if (!isDeepStrictEqual(map["data"], data)) await access.patch(refOf(CONFIG_MAPS, map), { data: withRemoved(map["data"], data) });

    const set = sets.get(`${namespace}/${name}`) as StatefulSetView | undefined;
    const declared = cluster.spec.clusterOperation?.stopped === true ? 0 : group.replicas;
    if (set === undefined) {
      replicas.set(`${namespace}/${name}`, { told: declared, foreignLooks: 0 });
      const spec = {
        replicas: declared ?? 1,
        serviceName: name,
        podManagementPolicy: "Parallel",
        selector: { matchLabels: selector },
        template,
      };
      await access.create(STATEFUL_SETS, { apiVersion: apiVersionOf(STATEFUL_SETS), kind: STATEFUL_SETS.kind, metadata, spec }, namespace);
      return;
    }
    await keepReplicas(set, `${namespace}/${name}`, declared);
  }

  async function keepReplicas(set: StatefulSetView, key: string, declared: number | undefined): Promise<void> {
    const state = replicas.get(key) ?? { told: declared, foreignLooks: 0 };
    replicas.set(key, state);
    const isNews = state.told !== declared;
    state.told = declared;
    state.foreignLooks = declared === undefined || set.spec.replicas === declared ? 0 : state.foreignLooks + 1;
    if (state.foreignLooks === 0 || (!isNews && state.foreignLooks < RESTORES_AT_LOOK)) return;
    state.foreignLooks = 0;
    await access.patch(refOf(STATEFUL_SETS, set), { spec: { replicas: declared } });
  }

  async function tellStatus(cluster: TrinoClusterView & KubeObject): Promise<void> {
    const status = { observedGeneration: cluster.metadata.generation ?? 1 };
    if (isDeepStrictEqual(cluster["status"], status)) return;
    await access.patchStatus(refOf(TRINO_CLUSTERS, cluster), { metadata: { uid: cluster.metadata.uid }, status });
  }

  return loop;
}

/** A merge patch takes out what it names as null. */
function withRemoved(before: unknown, after: Readonly<Record<string, string>>): Readonly<Record<string, string | null>> {
  const gone = Object.keys((before ?? {}) as object).filter((key) => after[key] === undefined);
  return { ...Object.fromEntries(gone.map((key) => [key, null])), ...after };
}
