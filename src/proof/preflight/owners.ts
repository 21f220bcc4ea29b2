/** Who else sets the count that a Pool would own (K3), asked once of the API server. */
import { isForbidden, isNotFound, type KubeApi } from "../../kube/api.ts";
import { DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, STATEFUL_SETS } from "../../kube/resources.ts";
import { autoscalerOf, targetObjectOf } from "../../model/parse-scale-owner.ts";
import { type PoolDocument, poolKey } from "../../model/pool.ts";
import type { PreflightRow } from "../../model/preflight.ts";
import { deedOf, nameOfOwner, OWN_MANAGER, roleOf } from "../../model/scale-owner.ts";
import { othersOf } from "../../plan/scaling/target.ts";

type OwnerFinding = Pick<PreflightRow, "state" | "message" | "todo">;

const MAX_LISTED = 1_000;

export async function checkOwner({ metadata, spec }: PoolDocument, kube: PreflightKube): Promise<OwnerFinding> {
  const { target } = spec;
  if (target === undefined) return { state: "ok", message: "Relevo makes each instance itself: nobody else knows of it", todo: null };
  const { namespace } = metadata;
  const what = `${target.kind} ${namespace}/${target.name}`;
  try {
    const type = target.kind === "Deployment" ? DEPLOYMENTS : STATEFUL_SETS;
    const object = targetObjectOf(await kube.get({ type, namespace, name: target.name }));
    if (object === undefined) return { state: "refused", message: `${what} cannot be understood`, todo: "look at it with kubectl" };
    const found = [
      ...(await autoscalers(kube, namespace, HORIZONTAL_POD_AUTOSCALERS)),
      ...(await autoscalers(kube, namespace, SCALED_OBJECTS)),
    ].filter((each) => each.target.kind === target.kind && each.target.name === target.name);
    // A ScaledObject that asks this very Pool is its hand.
    const scalers = othersOf(
      { pool: poolKey(namespace, metadata.name), scale: null },
      { owners: found.map(({ owner }) => owner) },
      { ...object, managers: [] },
    );
    const gitops = object.managers.filter(({ manager }) => manager !== OWN_MANAGER && roleOf(manager) === "gitops");
    const others = [
      ...scalers.map((owner) => `${nameOfOwner(owner)} ${deedOf(owner)}`),
      ...gitops.map(({ manager }) => `${manager} writes spec.replicas from a repository`),
    ];
    if (others.length === 0) return { state: "ok", message: `nobody else sets the count of ${what}`, todo: null };
    const todo = "hand it over with relevo adopt, which names the old owner and removes it only when it is told to";
    return { state: "refused", message: `${what} has another owner: ${others.join("; ")}`, todo };
  } catch (error) {
    if (isNotFound(error)) return { state: "refused", message: `there is no ${what}`, todo: "correct spec.target" };
    if (isForbidden(error))
      return {
        state: "refused",
        message: `nobody can tell who sets the count of ${what}: ${error.message}`,
        todo: "let the controller read it",
      };
    throw error;
  }
}

type PreflightKube = Pick<KubeApi, "get" | "list">;

/** A cluster without KEDA has no such kind, and so none of it. */
async function autoscalers(kube: PreflightKube, namespace: string, type: typeof SCALED_OBJECTS) {
  try {
    const { items } = await kube.list(type, { namespace, limit: MAX_LISTED });
    return items.flatMap((object) => autoscalerOf(object) ?? []);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}
