/**
 * Lets exactly this process take work: the last look before it, at pod, node and process (D7, D13, I11). The process is told to prepare first, under a key
 * of its own; its health is asked after that, so that what it prepared is covered.
 */
import { z } from "zod";
import { type KubeApi, KubeApiError, type KubeObject } from "../../kube/api.ts";
import { findObject } from "../../kube/find-object.ts";
import { NODE_CLAIMS, NODES } from "../../kube/resources.ts";
import type { InstanceCall } from "../../drivers/port.ts";
import { done, happened, NOT_HAPPENED, type Outcome, type StepKind, type StepPorts, superseded } from "../step-kind.ts";
import { conditionOf, isUnschedulable, nodeRefSchema } from "./objects.ts";
import { absenceOf, callProcess, findPod, isOutcome, processSchema } from "./process.ts";

const admitInstanceSchema = z.object({
  instance: z.string(),
  incarnation: z.int().min(1),
  from: z.enum(["validating", "standby"]),
  process: processSchema,
  /** Of a candidate, which must not land on a node that will go; null for one whose node was judged already. */
  node: nodeRefSchema.nullable(),
  /** Of a pool with a writer lease: the process is told how to renew it. */
  lease: z.object({ pool: z.string(), ttlMs: z.int().min(1) }).optional(),
});
export type AdmitInstance = z.infer<typeof admitInstanceSchema>;

export const admitInstance: StepKind<AdmitInstance> = {
  kind: "admit_instance/1",
  schema: admitInstanceSchema,

  guard: ({ instance, from }) => [{ kind: "update_instance", instance, phase: from, set: {} }],

  async act(payload, ports) {
    const refusal = await unfit(payload, ports.kube);
    if (refusal !== undefined) return superseded(refusal);
    const { driver, step } = ports;
    const forPrepare = { ...ports, step: { id: `${step.id}/prepare` } };
    const prepared = await callProcess(payload.process, forPrepare, null, (target, call) => driver.prepare(target, call));
    if (isOutcome(prepared)) return prepared;
    const process = { ...payload.process, target: { ...payload.process.target, bootId: prepared.bootId } };
    const health = await driver.health(process.target);
    if (!health.ok) return superseded("not_healthy");
    const admitted = await callProcess(process, ports, null, (target, call) =>
      driver.admit(target, { ...call, ...leaseFor(payload, call.bootId, ports) }),
    );
    return isOutcome(admitted) ? admitted : done("admitted", { bootId: admitted.bootId });
  },

  /**
   * The process keeps which step admitted it, and the boot id says which process that is. One without the protocol was told nothing. One that is not fit any
   * more is not asked: it might never answer, and `act` says why it is not admitted.
   */
  async probe(payload, { kube, driver, step }) {
    const { process } = payload;
    if ((await unfit(payload, kube)) !== undefined) return NOT_HAPPENED;
    const identity = await driver.identity(process.target);
    if (identity === null || identity.admittedBy !== step.id) return NOT_HAPPENED;
    if (process.target.bootId !== null && identity.bootId !== process.target.bootId) return NOT_HAPPENED;
    return happened("admitted", { bootId: identity.bootId });
  },

  settle: ({ instance, incarnation, from }, outcome) =>
    outcome.state === "done"
      ? [{ kind: "move_instance", instance, incarnation, from, to: "admitted", set: { bootId: bootIdOf(outcome) } }]
      : [],
};

const admittedSchema = z.object({ bootId: z.string().nullable() });

function bootIdOf({ result }: Outcome): string | null {
  const parsed = admittedSchema.safeParse(result);
  return parsed.success ? parsed.data.bootId : null;
}

function leaseFor({ instance, lease }: AdmitInstance, bootId: string, { leases }: StepPorts): Pick<InstanceCall, "lease"> {
  const access = lease && leases?.accessFor(lease.pool, instance, bootId, lease.ttlMs);
  return access === undefined ? {} : { lease: access };
}

/** Why it may not be admitted now, as a code. */
async function unfit({ process, node }: AdmitInstance, kube: KubeApi): Promise<string | undefined> {
  const pod = await findPod(kube, process);
  const absence = absenceOf(process, pod);
  if (pod === undefined || absence !== undefined) return absence ?? "pod_gone";
  if (pod.metadata.deletionTimestamp !== undefined) return "pod_deleting";
  if (conditionOf(pod, "Ready") !== "True") return "pod_not_ready";
  return node === null ? undefined : unsafe(node, kube);
}

async function unsafe({ name, uid }: { readonly name: string; readonly uid: string }, kube: KubeApi): Promise<string | undefined> {
  const node = await findObject(kube, { type: NODES, name });
  if (node?.metadata.uid !== uid) return "node_replaced";
  if (node.metadata.deletionTimestamp !== undefined) return "node_deleting";
  if (isUnschedulable(node)) return "node_unschedulable";
  if (conditionOf(node, "Ready") !== "True") return "node_not_ready";
  return (await isClaimGoing(node, kube)) ? "node_drifting" : undefined;
}

/** A NodeClaim that may not be read never stands in the way of a recovery (D12): the planner has judged it from its own view. */
async function isClaimGoing(node: KubeObject, kube: KubeApi): Promise<boolean> {
  const owner = node.metadata.ownerReferences?.find(({ kind }) => kind === NODE_CLAIMS.kind);
  if (owner === undefined) return false;
  try {
    const claim = await findObject(kube, { type: NODE_CLAIMS, name: owner.name });
    if (claim?.metadata.uid !== owner.uid) return true;
    return claim.metadata.deletionTimestamp !== undefined || conditionOf(claim, "Drifted") === "True";
  } catch (error) {
    if (error instanceof KubeApiError && error.httpCode === 403) return false;
    throw error;
  }
}
