/** How many machines are wanted, and where: enough for the pods that fit nowhere, and never fewer than the minimum. Pure. */
import { chooseNode } from "../scheduler/choose-node.ts";
import type { NodeView, PodView } from "../controllers/views.ts";
import { HOSTNAME, ZONE } from "./labels.ts";

export interface MachineShape {
  readonly zones: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly capacity: Readonly<Record<string, string>>;
}

/**
 * The zones of the machines to launch for these pods. `coming` are machines on their way, which take pods before new ones are made. At most `limit`.
 */
export function zonesForPods(
  pods: readonly PodView[],
  nodes: readonly NodeView[],
  podsOnNodes: readonly PodView[],
  coming: readonly string[],
  shape: MachineShape,
  limit: number,
): readonly string[] {
  const planned: { readonly zone: string; readonly node: NodeView; readonly isNew: boolean }[] = coming.map((zone, index) => ({
    zone,
    node: imagined(shape, zone, `coming-${index}`),
    isNew: false,
  }));
  const placed: PodView[] = [...podsOnNodes];
  for (const pod of pods) {
    const place = (candidates: readonly NodeView[]): NodeView | undefined => {
      const placement = chooseNode(pod, candidates, placed);
      return placement.kind === "node" ? placement.node : undefined;
    };
    const known = place([...nodes, ...planned.map(({ node }) => node)]);
    const fresh = known ?? openMachine(place);
    if (fresh !== undefined) placed.push({ ...pod, spec: { ...pod.spec, nodeName: fresh.metadata.name } });
  }
  return planned.filter(({ isNew }) => isNew).map(({ zone }) => zone);

  function openMachine(place: (candidates: readonly NodeView[]) => NodeView | undefined): NodeView | undefined {
    const opened = planned.filter(({ isNew }) => isNew).length;
    if (opened >= limit) return undefined;
    const others = [...nodes, ...planned.map(({ node }) => node)];
    const counts = countZones(
      planned.map(({ zone }) => zone),
      shape.zones,
    );
    const candidates = shape.zones
      .toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0))
      .map((zone) => imagined(shape, zone, `new-${opened}-${zone}`));
    const node = place([...others, ...candidates]);
    const zone = node?.metadata.labels?.[ZONE];
    if (node === undefined || zone === undefined || others.includes(node)) return node;
    planned.push({ zone, node, isNew: true });
    return node;
  }
}

/** The zone with the fewest machines, the first of them by the order given. */
export function emptiestZone(present: readonly string[], zones: readonly string[]): string {
  const counts = countZones(present, zones);
  const [first = ""] = zones.toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0));
  return first;
}

function countZones(present: readonly string[], zones: readonly string[]): ReadonlyMap<string, number> {
  return new Map(zones.map((zone) => [zone, present.filter((other) => other === zone).length]));
}

/** A machine that is not there yet, as the scheduler would see it once it is. */
function imagined(shape: MachineShape, zone: string, name: string): NodeView {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, uid: name, resourceVersion: "0", creationTimestamp: "", labels: { ...shape.labels, [ZONE]: zone, [HOSTNAME]: name } },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True" }], capacity: shape.capacity, allocatable: shape.capacity },
  };
}
