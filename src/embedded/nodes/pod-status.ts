/** A pod's phase and conditions, computed from the state of its containers. Pure. */
import { parseQuantity } from "../../kernel/units.ts";
import { conditionOf, withCondition, type Condition, type ContainerStatus, type PodStatus, type PodView } from "../controllers/views.ts";

export interface PodFacts {
  readonly init: readonly ContainerStatus[];
  readonly main: readonly ContainerStatus[];
  readonly podIP: string | undefined;
  readonly hostIP: string | undefined;
  readonly startTime: string;
  /** All processes have ended and will not start again, because the pod is being deleted. */
  readonly isEnded: boolean;
}

export function podStatus(pod: PodView, facts: PodFacts, now: string): PodStatus {
  const phase = phaseOf(pod, facts);
  const isInitialized = facts.init.every((status) => status.state.terminated?.exitCode === 0);
  const unready = facts.main.filter((status) => !status.ready).map((status) => status.name);
  const isOver = phase === "Succeeded" || phase === "Failed";
  const overReason = phase === "Succeeded" ? "PodCompleted" : "PodFailed";
  const gates = (pod.spec as { readonly readinessGates?: readonly { readonly conditionType: string }[] }).readinessGates ?? [];
  const closedGate = gates.find((gate) => conditionOf(pod.status?.conditions, gate.conditionType)?.status !== "True");
  const notReady = `containers with unready status: [${unready.join(" ")}]`;

  const initialized: Condition = isInitialized
    ? { type: "Initialized", status: "True" }
    : { type: "Initialized", status: "False", reason: "ContainersNotInitialized", message: "init containers have not completed" };
  const containersReady: Condition =
    unready.length === 0 && !isOver
      ? { type: "ContainersReady", status: "True" }
      : { type: "ContainersReady", status: "False", reason: isOver ? overReason : "ContainersNotReady", message: notReady };
  const ready: Condition =
    containersReady.status === "False"
      ? { ...containersReady, type: "Ready" }
      : closedGate === undefined
        ? { type: "Ready", status: "True" }
        : {
            type: "Ready",
            status: "False",
            reason: "ReadinessGatesNotReady",
            message: `the status of pod readiness gate "${closedGate.conditionType}" is not "True"`,
          };

  let conditions = pod.status?.conditions ?? [];
  if (conditionOf(conditions, "PodScheduled")?.status !== "True")
    conditions = withCondition(conditions, { type: "PodScheduled", status: "True" }, now);
  for (const condition of [initialized, ready, containersReady]) conditions = withCondition(conditions, condition, now);
  return {
    phase,
    qosClass: qosClassOf(pod),
    conditions,
    startTime: facts.startTime,
    ...(facts.hostIP === undefined ? {} : { hostIP: facts.hostIP, hostIPs: [{ ip: facts.hostIP }] }),
    ...(facts.podIP === undefined ? {} : { podIP: facts.podIP, podIPs: [{ ip: facts.podIP }] }),
    ...(facts.init.length === 0 ? {} : { initContainerStatuses: facts.init }),
    containerStatuses: facts.main,
  };
}

function phaseOf(pod: PodView, { init, main, isEnded }: PodFacts): NonNullable<PodStatus["phase"]> {
  const policy = pod.spec.restartPolicy ?? "Always";
  const failedInit = init.find((status) => status.state.terminated !== undefined && status.state.terminated.exitCode !== 0);
  if (isEnded) return main.every((status) => status.state.terminated?.exitCode === 0) && failedInit === undefined ? "Succeeded" : "Failed";
  if (policy === "Never" && failedInit !== undefined) return "Failed";
  const neverStarted = main.some((status) => status.state.waiting !== undefined && status.lastState.terminated === undefined);
  if (neverStarted) return "Pending";
  if (policy === "Always" || main.some((status) => status.state.terminated === undefined)) return "Running";
  const allWell = main.every((status) => status.state.terminated?.exitCode === 0);
  if (allWell) return "Succeeded";
  return policy === "Never" ? "Failed" : "Running";
}

/** Guaranteed: each container's limits of cores and memory are set and its requests equal them. BestEffort: none says anything. */
export function qosClassOf({ spec }: PodView): "Guaranteed" | "Burstable" | "BestEffort" {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])].map(({ resources = {} }) => resources);
  const names = ["cpu", "memory"] as const;
  const isSilent = containers.every(({ requests, limits }) =>
    names.every((name) => requests?.[name] === undefined && limits?.[name] === undefined),
  );
  if (isSilent) return "BestEffort";
  const amount = (quantity: string | number | undefined): number | undefined =>
    quantity === undefined ? undefined : parseQuantity(quantity);
  const isFixed = containers.every(({ requests, limits }) =>
    names.every((name) => {
      const limit = amount(limits?.[name]);
      return limit !== undefined && (requests?.[name] === undefined || amount(requests[name]) === limit);
    }),
  );
  return isFixed ? "Guaranteed" : "Burstable";
}

/** A container that has not run on this node yet. */
export function waitingStatus(name: string, image: string, reason: string, before: ContainerStatus | undefined): ContainerStatus {
  const hasRun = before?.containerID !== undefined;
  return {
    name,
    image,
    imageID: "",
    ready: false,
    started: false,
    restartCount: before === undefined ? 0 : before.restartCount + (hasRun ? 1 : 0),
    state: { waiting: { reason } },
    lastState: before?.state.terminated === undefined ? (before?.lastState ?? {}) : { terminated: before.state.terminated },
  };
}
