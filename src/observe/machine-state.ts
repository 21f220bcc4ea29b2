/** Whether a machine still carries instances of ours. */
import type { MachineState } from "../notices/autoscaling/keeper.ts";
import { INSTANCE_LABEL } from "../kube/types.ts";
import type { World } from "./world.ts";

/** `knows`: true also for a machine whose node is gone. What is not seen completely is unknown. */
export function machineStateOf(
  world: Pick<World, "nodes" | "pods" | "trouble">,
  knows: (machineId: string) => boolean,
  machineId: string,
): MachineState {
  if (!world.nodes.synced() || !world.pods.synced() || world.trouble() !== undefined) return "unknown";
  const nodes = world.nodes.byIndex("machine", machineId);
  if (nodes.length === 0) return knows(machineId) ? "gone" : "unknown";
  const isOccupied = nodes.some(({ metadata }) =>
    world.pods.byIndex("node", metadata.name).some((pod) => pod.metadata.labels[INSTANCE_LABEL] !== undefined),
  );
  return isOccupied ? "occupied" : "free";
}
