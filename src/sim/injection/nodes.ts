/** Nodes that drift, go, die, come back, or hear nothing; and capacity that is not there. */
import type { NodeSummary } from "../../embedded/provisioner/provisioner.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { isNotFound } from "../../kube/api.ts";
import { NODE_CLAIMS, NODES } from "../../kube/resources.ts";
import type { World } from "../world.ts";
import type { Handlers } from "./injection.ts";

type NodeFault = "node_drift" | "node_deletion" | "node_death" | "node_frozen" | "foreign_cordon" | "capacity_exhausted";

export const NODE_FAULTS: Handlers<NodeFault> = {
  async node_drift({ pick, clearsAfterMs }, injection) {
    const { provisioner } = injection.world.cluster;
    const { name } = pickNode(injection.world, pick);
    await provisioner.drift(name);
    if (clearsAfterMs !== null) injection.until(clearsAfterMs, () => void provisioner.drift(name, { clear: true }).catch(() => undefined));
    return true;
  },

  async node_deletion({ pick }, { world }) {
    const { claim } = pickNode(world, pick);
    if (claim === undefined) return false;
    await world.cluster.api.delete({ type: NODE_CLAIMS, name: claim });
    return true;
  },

  async node_death({ pick, returnsAfterMs, sameUid }, injection) {
    const { cluster, log } = injection.world;
    const { name } = pickNode(injection.world, pick);
    await cluster.provisioner.kill(name);
    if (returnsAfterMs === null) return true;
    const comeBack = (): void =>
      void cluster.provisioner.returnNode(name, { sameUid }).then(
        () => log.add(`node ${name} returns`),
        () => undefined, // it has vanished already
      );
    injection.until(returnsAfterMs, comeBack);
    return true;
  },

  node_frozen({ pick, forMs }, injection) {
    const { cluster, runtime, frozen } = injection.world;
    const machine = cluster.fleet.machine(pickNode(injection.world, pick).name);
    if (machine === undefined) return false;
    frozen.add(machine.machineId);
    runtime.setFrozen(machine, true);
    injection.until(forMs, () => {
      frozen.delete(machine.machineId);
      runtime.setFrozen(machine, false);
    });
    return true;
  },

  async foreign_cordon({ pick, forMs }, injection) {
    const { api, store } = injection.world.cluster;
    const ref = { type: NODES, name: pickNode(injection.world, pick).name };
    const seen = store.get(ref);
    if ((seen["spec"] as { readonly unschedulable?: boolean } | undefined)?.unschedulable === true) return false;
    await api.patch(ref, { spec: { unschedulable: true }, metadata: { annotations: { "example.com/cordoned-by": "an operator" } } });
    const { uid } = seen.metadata;
    injection.until(
      forMs,
      () =>
        void api.patch(ref, { metadata: { uid }, spec: { unschedulable: null } }).catch((error: unknown) => {
          if (!isNotFound(error)) injection.world.log.add("a foreign cordon stays: its node is another one");
        }),
    );
    return true;
  },

  /** A machine is lost too, or nobody might ask for another one. Counted when one is really refused. */
  async capacity_exhausted({ pick, why, zones, forMs }, injection) {
    const { world } = injection;
    for (const zone of world.scenario.zones.slice(0, zones)) world.refusals.set(zone, why);
    injection.until(forMs, () => world.refusals.clear());
    await world.cluster.provisioner.kill(pickNode(world, pick).name);
    return false;
  },
};

/** Those that carry an instance first. */
export function pickNode(world: World, share: number): NodeSummary {
  const nodes = world.cluster.provisioner.nodes().filter(({ isDeleting }) => !isDeleting);
  const carrying = nodes.filter(({ pods }) => pods > 0);
  const from = carrying.length > 0 ? carrying : nodes;
  const node = from[Math.floor(share * from.length)];
  if (node === undefined) throw new RelevoError("no_node", "there is no node");
  return node;
}
