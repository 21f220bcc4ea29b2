/** The processes of instances: they fail to come up, die, stand still, say the wrong thing, and are held by clients for ever. */
import { RelevoError } from "../../kernel/errors.ts";
import type { KubeObject } from "../../kube/api.ts";
import { PODS } from "../../kube/resources.ts";
import type { InstanceProcess } from "../instances.ts";
import type { World } from "../world.ts";
import type { Handlers } from "./injection.ts";

type InstanceFault =
  | "boot_failure"
  | "process_crash"
  | "process_sick"
  | "process_pause"
  | "process_lies"
  | "writer_isolated"
  | "endless_work"
  | "pod_deletion";

const BOOT_FAILURES_FOR_MS = 60_000;

export const INSTANCE_FAULTS: Handlers<InstanceFault> = {
  boot_failure({ containers }, injection) {
    const { world } = injection;
    world.bootFailures += containers;
    injection.until(BOOT_FAILURES_FOR_MS, () => (world.bootFailures = 0));
    return false;
  },

  process_crash({ pick }, { world }) {
    world.runtime.crash(pickProcess(world, pick).containerId, 1);
    return true;
  },

  /** It says that it is not well, and serves. */
  process_sick({ pick, forMs }, injection) {
    const { runtime } = injection.world;
    const process = pickProcess(injection.world, pick);
    process.isSick = true;
    runtime.setHealthy(process.containerId, false);
    injection.until(forMs, () => {
      process.isSick = false;
      runtime.setHealthy(process.containerId, true);
    });
    return true;
  },

  process_pause({ pick, forMs }, injection) {
    const { instances } = injection.world;
    const process = pickProcess(injection.world, pick);
    instances.pause(process);
    injection.until(forMs, () => instances.resume(process));
    return true;
  },

  process_lies({ pick, forMs }, injection) {
    const process = pickProcess(injection.world, pick);
    process.isLying = true;
    injection.until(forMs, () => (process.isLying = false));
    return true;
  },

  /** With its machine: what Kubernetes is told to end there goes on too. */
  writer_isolated({ pick, forMs, defies }, injection) {
    const { log, cluster, runtime, frozen, instances } = injection.world;
    const writers = instances.all().filter(({ lastStamp }) => lastStamp !== null);
    const process = writers[Math.floor(pick * writers.length)];
    const machine = cluster.provisioner
      .nodes()
      .map(({ name }) => cluster.fleet.machine(name))
      .find((each) => each !== undefined && each.machineId === process?.machine);
    if (process === undefined || machine === undefined) return false;
    log.add(`instance ${process.podName} is isolated`);
    process.isIsolated = true;
    process.defiesLease = defies;
    frozen.add(machine.machineId);
    runtime.setFrozen(machine, true);
    injection.until(forMs, () => {
      log.add(`instance ${process.podName} comes back`);
      process.isIsolated = false;
      frozen.delete(machine.machineId);
      runtime.setFrozen(machine, false);
    });
    return true;
  },

  endless_work({ streams }, { world }) {
    const client = world.clients[0];
    for (let stream = 0; stream < streams; stream++) client?.holdForEver();
    return client !== undefined;
  },

  async pod_deletion({ pick }, { world }) {
    const { namespace, name, uid } = pickPod(world, pick).metadata;
    await world.cluster.api.delete({ type: PODS, namespace, name }, { preconditions: { uid } });
    return true;
  },
};

function pickProcess(world: World, share: number): InstanceProcess {
  const all = world.instances.all();
  const process = all[Math.floor(share * all.length)];
  if (process === undefined) throw new RelevoError("no_process", "no instance runs");
  return process;
}

function pickPod(world: World, share: number): KubeObject {
  const pods = world.cluster.store.list(PODS).items;
  const pod = pods[Math.floor(share * pods.length)];
  if (pod === undefined) throw new RelevoError("no_pod", "there is no pod");
  return pod;
}
