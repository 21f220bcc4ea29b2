/** Read models of nodes and NodeClaims that a test fills, with the indexes that the notice desk asks. */
import type { Change } from "../../kube/informer.ts";
import type { KubeNode, NodeClaim } from "../../kube/types.ts";
import { machineIdOf } from "../../notices/machine.ts";
import type { NoticeDeskOptions } from "../notice-desk.ts";

export interface FakeNodes {
  readonly world: NoticeDeskOptions["world"];
  /** As the API server tells: another UID under the same name is a removal and an addition. */
  put(name: string, providerID: string, uid?: string): void;
  remove(name: string): void;
  putClaim(name: string, providerID: string): void;
  /** False: the nodes are not all known. */
  complete(isComplete: boolean): void;
}

export function fakeNodes(): FakeNodes {
  const nodes = new Map<string, KubeNode>();
  const claims = new Map<string, string>();
  const listeners: ((change: Change<KubeNode>) => void)[] = [];
  let isComplete = true;
  const tell = (name: string, before: KubeNode | undefined, after: KubeNode | undefined): void => {
    const change: Change<KubeNode> = {
      namespace: undefined,
      name,
      uid: (after ?? before)?.metadata.uid ?? "",
      before,
      after,
      gone: after === undefined,
      problem: undefined,
    };
    for (const listener of listeners) listener(change);
  };
  const matches = (index: string, value: string, { metadata, spec }: KubeNode): boolean =>
    index === "uid" ? metadata.uid === value : machineIdOf(spec.providerID) === value;
  const world = {
    nodes: {
      list: () => [...nodes.values()],
      get: (_namespace: undefined, name: string) => nodes.get(name),
      byIndex: (index: string, value: string) => [...nodes.values()].filter((node) => matches(index, value, node)),
      synced: () => isComplete,
      onChange: (listener: (change: Change<KubeNode>) => void) => {
        listeners.push(listener);
        return () => {};
      },
    },
    nodeClaims: {
      byIndex: (_index: string, value: string) =>
        [...claims.values()].filter((providerID) => machineIdOf(providerID) === value) as unknown[] as NodeClaim[],
    },
    trouble: () => undefined,
  };
  return {
    world: world as unknown as NoticeDeskOptions["world"],
    put(name, providerID, uid = `uid-${name}`) {
      const before = nodes.get(name);
      if (before && before.metadata.uid !== uid) {
        nodes.delete(name);
        tell(name, before, undefined);
      }
      const after = nodeOf(name, uid, providerID);
      nodes.set(name, after);
      tell(name, before?.metadata.uid === uid ? before : undefined, after);
    },
    remove(name) {
      const before = nodes.get(name);
      nodes.delete(name);
      if (before) tell(name, before, undefined);
    },
    putClaim: (name, providerID) => void claims.set(name, providerID),
    complete: (is) => void (isComplete = is),
  };
}

function nodeOf(name: string, uid: string, providerID: string): KubeNode {
  return {
    metadata: {
      name,
      namespace: "",
      uid,
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: 0,
      deletionTimestamp: null,
      labels: {},
      annotations: {},
      ownerReferences: [],
    },
    spec: { providerID, unschedulable: false, taints: [] },
    status: { conditions: [], addresses: [], allocatable: {} },
  } as unknown as KubeNode;
}
