/** Who else acts on the same nodes, and who else sets the size of the same workloads (K3). */
import { z } from "zod";
import type { KubeObject, ResourceType } from "../../kube/api.ts";
import { DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS } from "../../kube/resources.ts";
import { bad, type Finding, ok } from "../../model/finding.ts";
import { LABELS } from "../../model/marks.ts";
import type { ClusterFacts } from "./facts.ts";
import { itemsOf, listAll, unseen } from "./read.ts";

const templateSchema = z.object({
  spec: z.object({
    replicas: z.int().nullish(),
    template: z.object({
      spec: z.object({
        containers: z.array(
          z.object({
            image: z.string().default(""),
            args: z.array(z.string()).nullish(),
            env: z.array(z.object({ name: z.string(), value: z.string().nullish() })).nullish(),
          }),
        ),
      }),
    }),
  }),
});
type Containers = z.output<typeof templateSchema>["spec"]["template"]["spec"]["containers"];

interface Actor {
  readonly name: string;
  readonly image: RegExp;
  readonly message: string;
  readonly todo: string;
  /** Only where its settings say so. */
  readonly acts?: (containers: Containers) => boolean;
}

const ACTORS: readonly Actor[] = [
  {
    name: "node termination handler",
    image: /(^|\/)aws-node-termination-handler[:@]?/,
    message: "cordons and drains nodes on the notices that Relevo acts on",
    todo: "switch its draining off for the nodes of pools: Relevo evacuates them, and an eviction before the replacement serves is a loss",
  },
  {
    name: "cluster autoscaler",
    image: /(^|\/)cluster-autoscaler(-\w+)?[:@]?/,
    message: "removes nodes; it leaves those alone that carry protected pods (safe-to-evict: false)",
    todo: "declare cluster-autoscaler in spec.disruption.provisioners where it owns the nodes",
  },
  {
    name: "descheduler",
    image: /(^|\/)descheduler[:@]?/,
    message: "evicts pods by policies of its own and does not know Relevo's protection",
    todo: "keep it off the namespaces of pools, by its namespaces or a PodDisruptionBudget",
  },
  {
    name: "Karpenter's own queue",
    image: /(^|\/)karpenter\/?(controller)?[:@]?/,
    acts: (containers) => containers.some(hasQueue),
    message: "drains a node as soon as its own interruption queue says so",
    todo: "give Relevo a queue of its own (--sqs-queue): two readers of one queue take messages from each other",
  },
];

function hasQueue({ args, env }: Containers[number]): boolean {
  return (
    (env ?? []).some(({ name, value }) => name === "INTERRUPTION_QUEUE" && (value ?? "") !== "") ||
    (args ?? []).some((arg) => /^--interruption-queue(-name)?=./.test(arg))
  );
}

export async function checkActors({ kube }: ClusterFacts): Promise<readonly Finding[]> {
  const [deployments, daemonSets] = await Promise.all([listAll(kube, DEPLOYMENTS), listAll(kube, DAEMON_SETS)]);
  const found = [...itemsOf(deployments), ...itemsOf(daemonSets)].flatMap(actorOf);
  const findings = [...found, ...unseen("other actors", { deployments, daemonsets: daemonSets })];
  return findings.length > 0 ? findings : [ok("other actors", "nobody else is seen that cordons or drains nodes or evicts pods")];
}

function actorOf(object: KubeObject): readonly Finding[] {
  const parsed = templateSchema.safeParse(object);
  if (!parsed.success || parsed.data.spec.replicas === 0) return [];
  const { containers } = parsed.data.spec.template.spec;
  const { name, namespace } = object.metadata;
  return ACTORS.filter(({ image, acts }) => containers.some((each) => image.test(each.image)) && (acts?.(containers) ?? true)).map(
    (actor) => bad("other actors", "warning", `${actor.name} (${object.kind} ${namespace ?? ""}/${name}) ${actor.message}`, actor.todo),
  );
}

const HPAS: ResourceType = {
  group: "autoscaling",
  version: "v2",
  kind: "HorizontalPodAutoscaler",
  plural: "horizontalpodautoscalers",
  namespaced: true,
};
const SCALED_OBJECTS: ResourceType = {
  group: "keda.sh",
  version: "v1alpha1",
  kind: "ScaledObject",
  plural: "scaledobjects",
  namespaced: true,
};
const scalerSchema = z.object({
  spec: z.object({ scaleTargetRef: z.object({ kind: z.string().default("Deployment"), name: z.string() }) }),
});

/** K3: a replica count has exactly one owner. */
export async function checkScalers({ kube }: ClusterFacts): Promise<readonly Finding[]> {
  const labelSelector = LABELS.instance;
  const [hpas, scaledObjects, deployments, statefulSets] = await Promise.all([
    listAll(kube, HPAS),
    listAll(kube, SCALED_OBJECTS),
    listAll(kube, DEPLOYMENTS, { labelSelector }),
    listAll(kube, STATEFUL_SETS, { labelSelector }),
  ]);
  const key = (kind: string, namespace: string | undefined, name: string) => `${kind} ${namespace ?? ""}/${name}`;
  const ours = new Map(
    [...itemsOf(deployments), ...itemsOf(statefulSets)].map(({ kind, metadata }) => [
      key(kind, metadata.namespace, metadata.name),
      metadata.labels?.[LABELS.pool] ?? "?",
    ]),
  );
  const found = [...itemsOf(hpas), ...itemsOf(scaledObjects)].flatMap(({ kind, metadata, ...object }) => {
    const parsed = scalerSchema.safeParse(object);
    if (!parsed.success) return [];
    const { scaleTargetRef } = parsed.data.spec;
    const target = key(scaleTargetRef.kind, metadata.namespace, scaleTargetRef.name);
    const pool = ours.get(target);
    if (pool === undefined) return [];
    return [
      bad(
        "other scalers",
        "refused",
        `${kind} ${metadata.namespace ?? ""}/${metadata.name} sets the replicas of ${target}, an instance of ${pool}: two owners of one count`,
        `delete it: the size of a pool is spec.size`,
      ),
    ];
  });
  const findings = [
    ...found,
    ...unseen("other scalers", { horizontalpodautoscalers: hpas, scaledobjects: scaledObjects, deployments, statefulsets: statefulSets }),
  ];
  return findings.length > 0 ? findings : [ok("other scalers", `nobody else sets the replicas of the ${ours.size} workloads of instances`)];
}
