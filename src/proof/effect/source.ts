/** Where an instance's configuration is declared, and what of it stands in the API: of plain objects, or of what an operator rendered. */
import { type Instant, parseInstant } from "../../kernel/clock.ts";
import type { KubeApi, KubeObject } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { CONFIG_MAPS, DEPLOYMENTS, STATEFUL_SETS } from "../../kube/resources.ts";
import { INSTANCE_LABEL } from "../../kube/types.ts";
import type { OwnerNote, TrinoRole } from "../../model/effect.ts";
import { z } from "zod";
import type { Owner } from "./judge.ts";
import { mountedFiles, type WorkloadView, workloadOf } from "./mounted-files.ts";
import { type Setting, settingsOf } from "./settings.ts";
import { declaredBy, pauseOf, TRINO_CLUSTERS, type TrinoClusterView, trinoClusterOf } from "./trino-cluster.ts";

type Kube = Pick<KubeApi, "get" | "list">;
type Json = Readonly<Record<string, unknown>>;

export interface Rendered extends Setting {
  readonly configMap: string;
  /** When the ConfigMap's data changed last, at the latest; null: the API does not say. */
  readonly changedAt: Instant | null;
}

export interface Source {
  /** Where it was said, for people. */
  readonly declaredIn: string;
  readonly declared: readonly Setting[];
  readonly rendered: readonly Rendered[];
  /** Files that stand rendered, with the settings or without. */
  readonly owner: Owner | null;
  /** Labels of the pods of each role. */
  readonly podLabels: ReadonlyMap<TrinoRole, Readonly<Record<string, string>>>;
  readonly notes: readonly Omit<OwnerNote, "instance">[];
}

export interface SourceSubject {
  readonly namespace: string;
  readonly instance: string;
  /** Of the Pool's document, its placeholders filled in. */
  readonly objects: readonly Json[];
}

export async function sourceOf(subject: SourceSubject, kube: Kube): Promise<Source> {
  const cluster = subject.objects.map(trinoClusterIn).find((each) => each !== undefined);
  return cluster === undefined ? await plainSource(subject, kube) : await operatorSource(subject, cluster, kube);
}

function trinoClusterIn(object: Json): TrinoClusterView | undefined {
  return object["kind"] === TRINO_CLUSTERS.kind ? trinoClusterOf(object) : undefined;
}

async function plainSource({ namespace, instance, objects }: SourceSubject, kube: Kube): Promise<Source> {
  const workloads = objects.flatMap((object) => workloadOf(object) ?? []);
  const live = await liveObjects(kube, namespace, `${INSTANCE_LABEL}=${instance}`);
  const roleOf = ({ metadata }: WorkloadView): TrinoRole => (metadata.name === workloads[0]?.metadata.name ? "coordinator" : "worker");
  const declared = workloads.flatMap((workload) =>
    mountedFiles(workload, objects).flatMap(({ file, text }) => settingsOf(roleOf(workload), file, text)),
  );
  return {
    declaredIn: "the Pool's blueprint",
    declared,
    rendered: renderedIn(live, roleOf),
    owner: null,
    podLabels: new Map(
      workloads.map((workload) => [roleOf(workload), { ...workload.spec.selector?.matchLabels, [INSTANCE_LABEL]: instance }]),
    ),
    notes: [],
  };
}

const INSTANCE = "app.kubernetes.io/instance";
const COMPONENT = "app.kubernetes.io/component";

async function operatorSource({ namespace }: SourceSubject, drafted: TrinoClusterView, kube: Kube): Promise<Source> {
  const { name } = drafted.metadata;
  const object = await findObject(kube, { type: TRINO_CLUSTERS, namespace, name });
  const cluster = trinoClusterOf(object) ?? drafted;
  const live = await liveObjects(kube, namespace, `${INSTANCE}=${name}`);
  const owned = live.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === cluster.metadata.uid));
  const roleOf = ({ metadata }: WorkloadView): TrinoRole => (metadata.labels?.[COMPONENT] === "coordinator" ? "coordinator" : "worker");
  const observed = cluster.status?.observedGeneration;
  const pause = pauseOf(cluster);
  const title = `TrinoCluster ${name}`;
  return {
    declaredIn: object === undefined ? "the Pool's blueprint" : title,
    declared: withOthers(declaredBy(cluster), declaredBy(drafted)),
    rendered: renderedIn(owned, roleOf),
    owner: {
      name: title,
      isPaused: pause === "paused",
      isBehind: typeof observed === "number" ? observed < (cluster.metadata.generation ?? 0) : owned.length === 0,
    },
    podLabels: new Map((["coordinator", "worker"] as const).map((role) => [role, { [INSTANCE]: name, [COMPONENT]: role }])),
    notes: pause === null ? [] : [noteOf(title, pause)],
  };
}

function noteOf(owner: string, pause: "paused" | "stopped"): Omit<OwnerNote, "instance"> {
  return pause === "paused"
    ? {
        owner,
        message: `${owner} is paused: it accepts everything and does nothing`,
        todo: "its owner resumes it: spec.clusterOperation.reconciliationPaused",
      }
    : {
        owner,
        message: `${owner} is stopped: nothing of it runs`,
        todo: "relevo resume POOL, or its owner: spec.clusterOperation.stopped",
      };
}

/** What the live object says counts; of the blueprint's what it does not name. */
function withOthers(first: readonly Setting[], others: readonly Setting[]): readonly Setting[] {
  const known = new Set(first.map(idOf));
  return [...first, ...others.filter((each) => !known.has(idOf(each)))];
}

export function idOf({ role, file, name }: Pick<Setting, "role" | "file" | "name">): string {
  return `${role} ${file} ${name}`;
}

async function liveObjects(kube: Kube, namespace: string, labelSelector: string): Promise<readonly KubeObject[]> {
  const types = [CONFIG_MAPS, DEPLOYMENTS, STATEFUL_SETS];
  const lists = await Promise.all(types.map((type) => kube.list(type, { namespace, labelSelector })));
  // Items of a list carry no kind.
  return lists.flatMap(({ items }, index) => items.map((item) => ({ ...item, kind: types[index]?.kind ?? "" })));
}

function renderedIn(live: readonly KubeObject[], roleOf: (workload: WorkloadView) => TrinoRole): readonly Rendered[] {
  const changedAt = new Map(live.map((object) => [object.metadata.name, dataChangedAt(object)]));
  return live
    .flatMap((object) => workloadOf(object) ?? [])
    .flatMap((workload) =>
      mountedFiles(workload, live).flatMap(({ file, configMap, text }) =>
        settingsOf(roleOf(workload), file, text).map((setting) => ({ ...setting, configMap, changedAt: changedAt.get(configMap) ?? null })),
      ),
    );
}

const managedSchema = z.array(z.object({ time: z.string().nullish(), fieldsV1: z.record(z.string(), z.unknown()).nullish() }));
/** Its times are in whole seconds. */
const GRAIN_MS = 999;

/** By the API's own record of who wrote the data when; without such a record nobody knows. */
function dataChangedAt({ metadata }: KubeObject): Instant | null {
  const managed = managedSchema.safeParse((metadata as { readonly managedFields?: unknown }).managedFields);
  if (!managed.success) return null;
  const times = managed.data
    .filter(({ fieldsV1 }) => fieldsV1?.["f:data"] !== undefined)
    .map(({ time }) => (time ? (parseInstant(time) ?? null) : null));
  const known = times.filter((time) => time !== null);
  return known.length === 0 || known.length < times.length ? null : Math.max(...known) + GRAIN_MS;
}
