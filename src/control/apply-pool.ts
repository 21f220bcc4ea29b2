/** A Pool as somebody applies it: created or replaced in the Kubernetes API, its route its own. */
import { RelevoError } from "../kernel/errors.ts";
import { isNotFound, type KubeApi, type KubeObjectDraft } from "../kube/api.ts";
import type { Informer } from "../kube/informer.ts";
import { POOLS } from "../kube/resources.ts";
import { type PoolDocument, poolKey, routeOf } from "../model/pool.ts";
import type { ApplyResult } from "../server/control-plane.ts";
import type { PoolEntry } from "./pool-informer.ts";

export interface ApplyParts {
  readonly kube: KubeApi;
  readonly pools: Informer<PoolEntry>;
}

/** A dry run is the API server's own: its schema, its rules and its webhooks are asked. Errors: `route_taken` (conflict); what the Kubernetes API refuses. */
export async function applyPool(
  { kube, pools }: ApplyParts,
  document: KubeObjectDraft,
  parsed: PoolDocument,
  dryRun: boolean,
): Promise<ApplyResult> {
  const { namespace, name } = parsed.metadata;
  const ref = { type: POOLS, namespace, name };
  const pool = poolKey(namespace, name);
  const rival = pools.list().find((each) => each.key !== pool && routeOf(each.document) === routeOf(parsed));
  if (rival)
    throw new RelevoError("route_taken", `the route ${routeOf(parsed)} is that of pool ${rival.key}`, {
      class: "conflict",
      field: "spec.traffic.route",
      found: routeOf(parsed),
      allowed: "a route that no other pool has",
    });
  const existing = await kube.get(ref).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  if (!existing) {
    if (dryRun) await kube.rehearse?.("create", ref, document);
    else await kube.create(POOLS, document, { namespace });
    return { pool, result: "created" };
  }
  if (JSON.stringify(existing.spec) === JSON.stringify(document.spec)) return { pool, result: "unchanged" };
  const { uid, resourceVersion } = existing.metadata;
  const changed = {
    ...existing,
    metadata: { ...existing.metadata, ...document.metadata, uid, resourceVersion },
    spec: document.spec,
  };
  if (dryRun) await kube.rehearse?.("replace", ref, changed);
  else await kube.replace(ref, changed);
  return { pool, result: "configured" };
}
