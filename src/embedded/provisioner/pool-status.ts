/** What a NodePool says of itself: that it is valid, and what it has made. */
import { isDeepStrictEqual } from "node:util";
import { NODE_POOLS } from "../../kube/resources.ts";
import { parseQuantity } from "../../kernel/units.ts";
import { refOf, withCondition, type Condition, type NodePoolView } from "../controllers/views.ts";
import { isDeleting, isTrue, type ProvisionerContext } from "./context.ts";

const CONDITIONS: readonly Condition[] = [
  { type: "NodeClassReady", status: "True", reason: "NodeClassReady", message: "" },
  { type: "ValidationSucceeded", status: "True", reason: "ValidationSucceeded", message: "" },
  { type: "NodeRegistrationHealthy", status: "True", reason: "NodeRegistrationHealthy", message: "" },
  { type: "Ready", status: "True", reason: "Ready", message: "" },
];

export async function writePoolStatus(context: ProvisionerContext): Promise<void> {
  for (const pool of context.pools.values() as readonly NodePoolView[]) await writeStatusOf(context, pool);
}

async function writeStatusOf(context: ProvisionerContext, pool: NodePoolView): Promise<void> {
  const claims = context
    .allClaims()
    .filter((claim) => isTrue(claim, "Launched") && !isDeleting(claim) && context.poolOf(claim)?.metadata.uid === pool.metadata.uid);
  const capacity = claims.map(
    (claim) => (claim.status as { readonly capacity?: Readonly<Record<string, string>> } | undefined)?.capacity ?? {},
  );
  const sum = (name: string): number => capacity.reduce((total, one) => total + (parseQuantity(one[name] ?? "0") ?? 0), 0);
  const observedGeneration = pool.metadata.generation ?? 1;
  let conditions = (pool["status"] as { readonly conditions?: readonly Condition[] } | undefined)?.conditions;
  for (const condition of CONDITIONS) conditions = withCondition(conditions, { ...condition, observedGeneration }, context.access.stamp());
  const status = {
    conditions,
    nodes: claims.length,
    resources: {
      cpu: String(sum("cpu")),
      memory: `${Math.round(sum("memory") / 2 ** 20)}Mi`,
      nodes: String(claims.length),
      pods: String(sum("pods")),
    },
  };
  if (isDeepStrictEqual(pool["status"], status)) return;
  await context.access.patchStatus(refOf(NODE_POOLS, pool), { metadata: { uid: pool.metadata.uid }, status });
}
