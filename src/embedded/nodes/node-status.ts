/** What a node says about itself. */
import { withCondition, type Condition, type NodeView } from "../controllers/views.ts";
import type { Machine } from "./pod-runtime.ts";

const HEALTHY: readonly Condition[] = [
  { type: "MemoryPressure", status: "False", reason: "KubeletHasSufficientMemory", message: "kubelet has sufficient memory available" },
  { type: "DiskPressure", status: "False", reason: "KubeletHasNoDiskPressure", message: "kubelet has no disk pressure" },
  { type: "PIDPressure", status: "False", reason: "KubeletHasSufficientPID", message: "kubelet has sufficient PID available" },
  { type: "Ready", status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" },
];

/** All is well; conditions of others stay as they are. */
export function nodeConditions(node: NodeView, now: string): readonly Condition[] {
  let conditions = node.status?.conditions ?? [];
  for (const condition of HEALTHY) conditions = withCondition(conditions, { ...condition, lastHeartbeatTime: now }, now);
  return conditions;
}

export function nodeInfo(machine: Machine): Readonly<Record<string, string>> {
  return {
    machineID: machine.machineId,
    systemUUID: machine.machineId,
    bootID: machine.machineId,
    kernelVersion: "",
    osImage: "processes of this machine",
    containerRuntimeVersion: "process://1",
    kubeletVersion: "v1.35.0-embedded",
    kubeProxyVersion: "",
    operatingSystem: "linux",
    architecture: "amd64",
  };
}
