/** How many machines are wanted, and which: enough for the pods that fit nowhere, and never fewer than the minimum. Pure. */
import { chooseNode } from "../scheduler/choose-node.ts";
import type { NodeView, PodView } from "../controllers/views.ts";
import { CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE } from "./labels.ts";
import { CAPACITY_TYPES, type CapacityType, type Offering } from "./offerings.ts";

/** A machine that could be launched now, as the scheduler would see its node. */
export interface MachineShape {
  readonly offering: Offering;
  readonly labels: Readonly<Record<string, string>>;
  readonly capacity: Readonly<Record<string, string>>;
}

export interface Demand {
  /** That fit nowhere. */
  readonly pods: readonly PodView[];
  readonly nodes: readonly NodeView[];
  readonly podsOnNodes: readonly PodView[];
  /** Machines on their way, which take pods before new ones are made. */
  readonly coming: readonly MachineShape[];
  /** The preferred first: what is spot before what is not, then by type. */
  readonly shapes: readonly MachineShape[];
  /** How many more of each kind may be launched. */
  readonly room: Readonly<Record<CapacityType, number>>;
}

/** The machines to launch for these pods, in the order of the pods. */
export function machinesForPods({ pods, nodes, podsOnNodes, coming, shapes, room }: Demand): readonly Offering[] {
  const planned: { readonly shape: MachineShape; readonly node: NodeView; readonly isNew: boolean }[] = coming.map((shape, index) => ({
    shape,
    node: imagined(shape, `coming-${index}`),
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
  return planned.filter(({ isNew }) => isNew).map(({ shape }) => shape.offering);

  /** The dearer kind only where the cheaper one does not do. */
  function openMachine(place: (candidates: readonly NodeView[]) => NodeView | undefined): NodeView | undefined {
    for (const kind of kindsOf(shapes)) {
      const opened = planned.filter(({ isNew, shape }) => isNew && shape.offering.capacityType === kind.capacityType).length;
      if (opened >= room[kind.capacityType]) continue;
      const node = openOf(kind.shapes, place);
      if (node !== undefined) return node;
    }
    return undefined;
  }

  function openOf(
    alternatives: readonly MachineShape[],
    place: (candidates: readonly NodeView[]) => NodeView | undefined,
  ): NodeView | undefined {
    const counts = countZones(planned.map(({ shape }) => shape.offering.zone));
    const candidates = alternatives
      .toSorted((a, b) => (counts.get(a.offering.zone) ?? 0) - (counts.get(b.offering.zone) ?? 0))
      .map((shape) => ({ shape, node: imagined(shape, `new-${planned.length}-${shape.offering.zone}`) }));
    const node = place([...nodes, ...planned.map((each) => each.node), ...candidates.map((each) => each.node)]);
    const chosen = candidates.find((each) => each.node === node);
    if (chosen !== undefined) planned.push({ ...chosen, isNew: true });
    return node;
  }
}

interface KindOfMachine {
  readonly capacityType: CapacityType;
  readonly shapes: readonly MachineShape[];
}

/** Alike but for their zones: between them the scheduler chooses. */
function kindsOf(shapes: readonly MachineShape[]): readonly KindOfMachine[] {
  return CAPACITY_TYPES.flatMap((capacityType) => {
    const ofType = Map.groupBy(
      shapes.filter(({ offering }) => offering.capacityType === capacityType),
      ({ offering }) => offering.instanceType,
    );
    return [...ofType.values()].map((alike) => ({ capacityType, shapes: alike }));
  });
}

/** The zone with the fewest machines, the first of them by the order given. */
export function emptiestZone(present: readonly string[], zones: readonly string[]): string {
  const counts = countZones(present);
  const [first = ""] = zones.toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0));
  return first;
}

function countZones(present: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const zone of present) counts.set(zone, (counts.get(zone) ?? 0) + 1);
  return counts;
}

/** A machine that is not there yet, as the scheduler would see it once it is. */
function imagined({ offering, labels, capacity }: MachineShape, name: string): NodeView {
  const { zone, instanceType, capacityType } = offering;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      uid: name,
      resourceVersion: "0",
      creationTimestamp: "",
      labels: { ...labels, [ZONE]: zone, [INSTANCE_TYPE]: instanceType, [CAPACITY_TYPE]: capacityType, [HOSTNAME]: name },
    },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True" }], capacity, allocatable: capacity },
  };
}
