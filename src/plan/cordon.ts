/** The cordon of the very nodes that evidence names, and only with a complete inventory and no error (D4, D9, I6). */
import type { Evidence } from "../model/evidence.ts";
import { reason } from "../model/reasons.ts";
import type { Draft } from "./draft.ts";
import { indexOf } from "./pool-index.ts";
import type { InstanceSnapshot, PoolSnapshot } from "./snapshot.ts";
import { compareText, idOf, isHeld, openStep } from "./view.ts";

export function cordonNodes(pool: PoolSnapshot, instance: InstanceSnapshot, recorded: readonly Evidence[], draft: Draft): void {
  if (!isHeld(instance) && instance.record.phase !== "draining") return;
  for (const evidence of recorded.toSorted((a, b) => compareText(a.id, b.id))) {
    if (evidence.loss === "forced" || evidence.reason === "operator_drain" || evidence.nodeUid === null) continue;
    const node = indexOf(pool).nodes.get(evidence.nodeUid);
    if (!node) continue;
    if (node.unschedulable) {
      if (node.cordonedBy === null) draft.hold(node.name, reason("foreign_cordon", { node: node.name }));
      continue;
    }
    if (node.deleting || draft.hasCordon(node.uid) || openStep(pool, idOf(instance), "cordon_node")) continue;
    if (pool.inventory.state === "incomplete") {
      draft.hold(node.name, reason("inventory_incomplete", { missing: pool.inventory.missing }));
    } else if (pool.inventory.state === "error") {
      draft.hold(node.name, reason("inventory_error", { error: pool.inventory.error }));
    } else {
      draft.decide({
        kind: "cordon_node",
        instance: idOf(instance),
        node: { name: node.name, uid: node.uid },
        evidence: evidence.id,
        reason: reason("cordon_condemned_node", { node: node.name, instance: idOf(instance), evidence: evidence.reason }),
      });
    }
  }
}
