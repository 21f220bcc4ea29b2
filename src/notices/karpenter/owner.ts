/** Which NodeClaim owns a node: exact, by UID, and both sides must name each other. */
import type { KubeNode, NodeClaim } from "../../kube/types.ts";
import type { NodeOwner } from "../../plan/snapshot.ts";

/** Null while the claim is not registered yet, and for whatever only looks alike. */
export function nodeClaimOf(node: KubeNode, nodeClaims: Iterable<NodeClaim>): NodeClaim | null {
  const references = node.metadata.ownerReferences.filter((each) => each.apiVersion === "karpenter.sh/v1" && each.kind === "NodeClaim");
  for (const claim of nodeClaims) {
    const isNamed = references.some((each) => each.uid === claim.metadata.uid && each.name === claim.metadata.name);
    const namesBack =
      claim.status.nodeName === node.metadata.name && claim.status.providerID === node.spec.providerID && node.spec.providerID !== "";
    if (isNamed && namesBack) return claim;
  }
  return null;
}

export function ownerOfNode(node: KubeNode, nodeClaims: Iterable<NodeClaim>): NodeOwner | null {
  const claim = nodeClaimOf(node, nodeClaims);
  return claim === null ? null : { provisioner: "karpenter", name: claim.metadata.name, uid: claim.metadata.uid };
}
