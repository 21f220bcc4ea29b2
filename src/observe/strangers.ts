/** Objects that carry a pool's label and the mark of a create step, of instances that the store does not know. */
import type { KubeWorkload } from "../kube/types.ts";
import { ANNOTATIONS, LABELS } from "../model/marks.ts";
import type { OwnedObject } from "../model/instance.ts";
import type { Stranger } from "../plan/snapshot.ts";
import type { World } from "./world.ts";

export interface StrangersInput {
  readonly world: Pick<World, "deployments" | "statefulSets">;
  readonly namespace: string;
  /** Of the pool, without its namespace. */
  readonly name: string;
  readonly known: ReadonlySet<string>;
}

export function strangersOf({ world, namespace, name, known }: StrangersInput): readonly Omit<Stranger, "outlived">[] {
  const found = new Map<string, { objects: OwnedObject[]; createdAt: number }>();
  const look = (kind: string, workloads: readonly KubeWorkload[]): void => {
    for (const { metadata } of workloads) {
      const instance = metadata.labels[LABELS.instance];
      if (metadata.namespace !== namespace || metadata.labels[LABELS.pool] !== name) continue;
      if (instance === undefined || known.has(instance) || !isMadeFor(instance, metadata)) continue;
      const stranger = found.get(instance) ?? { objects: [], createdAt: metadata.creationTimestamp };
      stranger.objects.push({ apiVersion: "apps/v1", kind, namespace, name: metadata.name, uid: metadata.uid });
      stranger.createdAt = Math.max(stranger.createdAt, metadata.creationTimestamp);
      found.set(instance, stranger);
    }
  };
  look("Deployment", world.deployments.list());
  look("StatefulSet", world.statefulSets.list());
  return [...found].map(([instance, { objects, createdAt }]) => ({ instance, objects, createdAt }));
}

/** Labels and marks are copied easily: the mark names the step of this very instance, and what a blueprint makes bears the instance in its name. */
function isMadeFor(instance: string, { name, annotations }: KubeWorkload["metadata"]): boolean {
  return annotations[ANNOTATIONS.step]?.replace(/#\d+$/, "") === `create/${instance}` && name.includes(instance);
}
