/** How each live pod of a pool is kept from voluntary disruptions, and by whose right: its owners, by UID (D2). Reads only. */
import type { KubePod } from "../kube/types.ts";
import { PROTECTION_MARKS } from "../model/marks.ts";
import { replicaSetNamedBy } from "../observe/owners.ts";
import type { World } from "../observe/world.ts";
import type { PodProtection } from "../server/control-plane.ts";
import type { Pass } from "./pass.ts";

export function protectionOf(world: Pick<World, "pods" | "replicaSets">, { snapshot }: Pass): readonly PodProtection[] {
  return snapshot.instances.flatMap(({ record, pods }) =>
    pods
      .filter(({ deleting }) => !deleting)
      .flatMap(({ name, uid, owned, protectedByUs, node }) => {
        const pod = world.pods.get(snapshot.namespace, name);
        if (pod?.metadata.uid !== uid) return [];
        return [
          {
            instance: record.id,
            pod: name,
            uid,
            node: node?.name ?? null,
            provisioner: node?.owner?.provisioner ?? null,
            owners: ownersOf(world, pod),
            isOwned: owned,
            isMarked: protectedByUs,
            marks: Object.fromEntries(
              Object.entries(PROTECTION_MARKS).map(([key, value]) => [key, pod.metadata.annotations[key] === value]),
            ),
          },
        ];
      }),
  );
}

function ownersOf(world: Pick<World, "replicaSets">, pod: KubePod): readonly string[] {
  const named = (object: Pick<KubePod, "metadata">) => object.metadata.ownerReferences.find(({ controller }) => controller);
  const direct = named(pod);
  if (direct === undefined) return [];
  const replicaSet = replicaSetNamedBy(pod, world);
  const above = replicaSet?.metadata.uid === direct.uid ? named(replicaSet) : undefined;
  return [direct, ...(above === undefined ? [] : [above])].map(({ kind, name }) => `${kind} ${name}`);
}
