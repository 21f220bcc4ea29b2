/** The one process that a step means: (pod UID, container id, boot id), and how to call it. */
import { z } from "zod";
import type { CallOutcome, InstanceCall, InstanceTarget } from "../../drivers/port.ts";
import { isRetryable, RelevoError } from "../../kernel/errors.ts";
import type { KubeApi, KubeObject } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { PODS } from "../../kube/resources.ts";
import { type Outcome, type StepPorts, superseded } from "../step-kind.ts";
import { podRefSchema } from "./objects.ts";

const placeSchema = z.object({ host: z.string(), port: z.int() });
const clusterSchema = z.object({ user: z.string(), workers: z.int().min(0), members: z.array(placeSchema).optional() });

/** Of a member of a cluster. */
export const memberTargetSchema = placeSchema.extend({ trino: clusterSchema.optional() });

export const targetSchema = z.object({
  host: z.string(),
  port: z.int(),
  bootId: z.string().nullable(),
  protocol: z.enum(["relevo/v1", "none", "trino/v1"]),
  healthPath: z.string(),
  trino: clusterSchema.optional(),
});

export const processSchema = z.object({
  pod: podRefSchema,
  /** Null when none was seen: then the pod's UID alone counts. */
  containerId: z.string().nullable(),
  target: targetSchema,
});
export type Process = z.infer<typeof processSchema>;

export type Absence = "pod_gone" | "pod_replaced" | "process_replaced" | "process_ended";

const containersSchema = z.object({
  status: z.object({
    containerStatuses: z.array(z.object({ containerID: z.string().optional(), state: z.looseObject({}).optional() })),
  }),
});

/** Why the process is not there any more; undefined while nothing says so. */
export function absenceOf(process: Pick<Process, "pod" | "containerId">, pod: KubeObject | undefined): Absence | undefined {
  if (pod === undefined) return "pod_gone";
  if (pod.metadata.uid !== process.pod.uid) return "pod_replaced";
  if (process.containerId === null) return undefined;
  const parsed = containersSchema.safeParse(pod);
  if (!parsed.success) return undefined;
  const container = parsed.data.status.containerStatuses.find(({ containerID }) => containerID === process.containerId);
  if (container === undefined) return "process_replaced";
  return container.state !== undefined && "terminated" in container.state ? "process_ended" : undefined;
}

export function findPod(kube: KubeApi, { pod }: Pick<Process, "pod">): Promise<KubeObject | undefined> {
  return findObject(kube, { type: PODS, namespace: pod.namespace, name: pod.name });
}

/** Answers of the instance that mean: another process, or one that is beyond this call. */
const OVERTAKEN: Readonly<Record<string, string>> = {
  boot_id_mismatch: "process_replaced",
  wrong_state: "wrong_state",
  step_conflict: "step_conflict",
};

export type Answered = { readonly bootId: string | null };

/**
 * Calls the process, with the step's id as the key under which the instance answers a repetition as it answered first. An outcome instead of an answer:
 * the process is not the meant one, or it is gone; an error that can be tried again is thrown only while the process may still be there.
 */
export async function callProcess(
  process: Process,
  ports: StepPorts,
  deadline: number | null,
  send: (target: InstanceTarget, call: InstanceCall) => Promise<CallOutcome>,
): Promise<Answered | Outcome> {
  try {
    const bootId = process.target.bootId ?? (await ports.driver.identity(process.target))?.bootId ?? null;
    const call = { step: ports.step.id, bootId: bootId ?? "", deadline };
    await send({ ...process.target, bootId }, call);
    return { bootId };
  } catch (error) {
    const overtaken = error instanceof RelevoError ? OVERTAKEN[error.code] : undefined;
    if (overtaken !== undefined) return superseded(overtaken);
    if (!isRetryable(error)) throw error;
    const absence = absenceOf(process, await findPod(ports.kube, process));
    if (absence !== undefined) return superseded(absence);
    throw error;
  }
}

export function isOutcome(answer: Answered | Outcome): answer is Outcome {
  return "state" in answer;
}
