/** The same life for every kind: create, read, list, watch, change, conflict, delete. */
import type { CallStep, Case } from "../case.ts";

interface KindRow {
  /** `/api/v1`, `/apis/apps/v1`. */
  readonly root: string;
  readonly plural: string;
  readonly kind: string;
  readonly isClusterScoped?: boolean;
  /** Beside name and labels. */
  readonly object: Readonly<Record<string, unknown>>;
  /** A merge patch that is a change of content, and what of the answer shows it. */
  readonly change: Readonly<Record<string, unknown>>;
  readonly shows: string;
}

const CONTAINER = { name: "main", image: "any", command: ["true"] };
const TEMPLATE = { metadata: { labels: { app: "$ns" } }, spec: { containers: [CONTAINER] } };
const SELECTOR = { matchLabels: { app: "$ns" } };

/** Karpenter's own definitions, and ours out of `deploy/`: the real server is given them first. */
const NODE_CLASS = { group: "karpenter.kwok.sh", kind: "KWOKNodeClass", name: "default" };
const NODE_SPEC = { nodeClassRef: NODE_CLASS, requirements: [{ key: "kubernetes.io/arch", operator: "In", values: ["amd64"] }] };
const BLUEPRINT = {
  objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" }, spec: { template: TEMPLATE } }],
};

export const KINDS: readonly KindRow[] = [
  {
    root: "/apis/relevo.dev/v1alpha1",
    plural: "pools",
    kind: "Pool",
    object: { spec: { driver: "service", sites: ["local"], size: { desired: 2, floor: 1, max: 4 }, blueprint: BLUEPRINT } },
    change: { spec: { size: { desired: 3 } } },
    shows: "spec.size",
  },
  {
    root: "/apis/karpenter.sh/v1",
    plural: "nodeclaims",
    kind: "NodeClaim",
    isClusterScoped: true,
    object: { spec: NODE_SPEC },
    change: { metadata: { annotations: { a: "2" } } },
    shows: "metadata.annotations",
  },
  {
    root: "/apis/karpenter.sh/v1",
    plural: "nodepools",
    kind: "NodePool",
    isClusterScoped: true,
    object: { spec: { template: { spec: NODE_SPEC } } },
    change: { spec: { weight: 5 } },
    shows: "spec.weight",
  },
  { root: "/api/v1", plural: "configmaps", kind: "ConfigMap", object: { data: { a: "1" } }, change: { data: { a: "2" } }, shows: "data" },
  {
    root: "/api/v1",
    plural: "secrets",
    kind: "Secret",
    object: { stringData: { a: "1" } },
    change: { data: { a: "Mg==" } },
    shows: "data",
  },
  {
    root: "/api/v1",
    plural: "services",
    kind: "Service",
    object: { spec: { selector: { app: "$ns" }, ports: [{ port: 80 }], clusterIP: "None" } },
    change: { spec: { selector: { app: "other" } } },
    shows: "spec.selector",
  },
  {
    root: "/api/v1",
    plural: "serviceaccounts",
    kind: "ServiceAccount",
    object: {},
    change: { automountServiceAccountToken: false },
    shows: "automountServiceAccountToken",
  },
  {
    root: "/api/v1",
    plural: "pods",
    kind: "Pod",
    object: { spec: { containers: [CONTAINER] } },
    change: { metadata: { annotations: { a: "2" } } },
    shows: "metadata.annotations",
  },
  {
    root: "/api/v1",
    plural: "persistentvolumeclaims",
    kind: "PersistentVolumeClaim",
    object: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
    change: { metadata: { annotations: { a: "2" } } },
    shows: "metadata.annotations",
  },
  {
    root: "/api/v1",
    plural: "events",
    kind: "Event",
    object: { involvedObject: { kind: "Pod", name: "a", namespace: "$ns" }, reason: "Tested", message: "one", type: "Normal" },
    change: { message: "two", count: 2 },
    shows: "message",
  },
  {
    root: "/apis/coordination.k8s.io/v1",
    plural: "leases",
    kind: "Lease",
    object: { spec: { holderIdentity: "a", leaseDurationSeconds: 4, renewTime: "2030-01-01T00:00:00.000000Z" } },
    change: { spec: { holderIdentity: "b" } },
    shows: "spec.holderIdentity",
  },
  {
    root: "/apis/apps/v1",
    plural: "deployments",
    kind: "Deployment",
    object: { spec: { selector: SELECTOR, template: TEMPLATE } },
    change: { spec: { replicas: 3 } },
    shows: "spec.replicas",
  },
  {
    root: "/apis/apps/v1",
    plural: "replicasets",
    kind: "ReplicaSet",
    object: { spec: { selector: SELECTOR, template: TEMPLATE } },
    change: { spec: { replicas: 3 } },
    shows: "spec.replicas",
  },
  {
    root: "/apis/apps/v1",
    plural: "statefulsets",
    kind: "StatefulSet",
    object: { spec: { serviceName: "any", selector: SELECTOR, template: TEMPLATE } },
    change: { spec: { replicas: 3 } },
    shows: "spec.replicas",
  },
  {
    root: "/apis/apps/v1",
    plural: "daemonsets",
    kind: "DaemonSet",
    object: { spec: { selector: SELECTOR, template: TEMPLATE } },
    change: { spec: { minReadySeconds: 3 } },
    shows: "spec.minReadySeconds",
  },
  {
    root: "/apis/policy/v1",
    plural: "poddisruptionbudgets",
    kind: "PodDisruptionBudget",
    object: { spec: { minAvailable: 1, selector: SELECTOR } },
    change: { spec: { minAvailable: 2 } },
    shows: "spec.minAvailable",
  },
  {
    root: "/api/v1",
    plural: "nodes",
    kind: "Node",
    isClusterScoped: true,
    object: { spec: { providerID: "any://$ns" } },
    change: { spec: { unschedulable: true } },
    shows: "spec.unschedulable",
  },
  {
    root: "/apis/scheduling.k8s.io/v1",
    plural: "priorityclasses",
    kind: "PriorityClass",
    isClusterScoped: true,
    object: { value: 7 },
    change: { description: "any" },
    shows: "description",
  },
];

const collectionOf = ({ root, plural, isClusterScoped }: KindRow): string =>
  isClusterScoped ? `${root}/${plural}` : `${root}/namespaces/$ns/${plural}`;
/** Cluster-scoped names are those of the case. */
const nameOf = ({ isClusterScoped }: KindRow, name: string): string => (isClusterScoped ? `$ns-${name}` : name);
const draft = (row: KindRow, name: string, labels: object = { case: "$ns" }): object => ({
  apiVersion: row.root.replace(/^\/apis?\//, ""),
  kind: row.kind,
  metadata: { name: nameOf(row, name), labels },
  ...row.object,
});

const pages = (all: string): readonly CallStep[] => [
  { call: `GET ${all}?labelSelector=case%3D$ns&limit=1`, keep: "page" },
  { call: `GET ${all}?labelSelector=case%3D$ns&limit=1&continue=$page.continue` },
];

const MERGE = "application/merge-patch+json";

function life(row: KindRow): Case {
  const all = collectionOf(row);
  const one = `${all}/${nameOf(row, "a")}`;
  return {
    name: `${row.plural}: a life`,
    steps: [
      { call: `POST ${all}`, body: draft(row, "a"), keep: "a" },
      { call: `POST ${all}`, body: draft(row, "a") },
      { call: `GET ${one}` },
      { call: `POST ${all}?dryRun=All`, body: draft(row, "dry") },
      { call: `GET ${all}/${nameOf(row, "dry")}` },
      { call: `POST ${all}`, body: draft(row, "b") },
      { call: `GET ${all}?labelSelector=case%3D$ns` },
      // In the whole cluster the next page depends on what else there is.
      ...(row.isClusterScoped ? [] : pages(all)),
      { call: `GET ${all}?fieldSelector=metadata.name%3D${nameOf(row, "b")}` },
      { call: `GET ${all}?labelSelector=case%3D$ns`, accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" },
      {
        call: `GET ${all}?labelSelector=case%3D$ns`,
        accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
      },
      { call: `PATCH ${one}`, type: MERGE, body: { metadata: { labels: { case: "$ns" } } } },
      { call: `PATCH ${one}`, type: MERGE, body: row.change, pick: [row.shows] },
      { call: `PATCH ${one}`, type: MERGE, body: row.change },
      { call: `PATCH ${one}`, type: MERGE, body: { metadata: { resourceVersion: "$a.rv", labels: { x: "y" } } } },
      { call: `PATCH ${one}`, type: MERGE, body: { metadata: { uid: "00000000-0000-0000-0000-000000000000", labels: { x: "y" } } } },
      { call: `PATCH ${all}/${nameOf(row, "nobody")}`, type: MERGE, body: { metadata: { labels: { x: "y" } } } },
      { call: `DELETE ${one}`, body: { preconditions: { uid: "00000000-0000-0000-0000-000000000000" } } },
      { call: `DELETE ${one}`, body: { preconditions: { uid: "$a.uid", resourceVersion: "$a.rv" } } },
      { call: `DELETE ${one}`, body: { preconditions: { uid: "$a.uid" } } },
      { call: `DELETE ${one}` },
      { call: `GET ${one}` },
      { call: `DELETE ${all}?labelSelector=case%3D$ns` },
      { call: `GET ${all}?labelSelector=case%3D$ns` },
    ],
  };
}

function watched(row: KindRow): Case {
  const all = collectionOf(row);
  const one = `${all}/${nameOf(row, "a")}`;
  const label = (value: string): CallStep => ({ call: `PATCH ${one}`, type: MERGE, body: { metadata: { labels: { case: value } } } });
  return {
    name: `${row.plural}: a watch with a selector`,
    steps: [
      { call: `POST ${all}`, body: draft(row, "a"), keep: "a" },
      {
        watch: `${all}?watch=true&allowWatchBookmarks=true&labelSelector=case%3D$ns&resourceVersion=$a.rv`,
        events: 6,
        pick: ["metadata.labels"],
        during: [
          label("elsewhere"),
          label("$ns"),
          { call: `PATCH ${one}`, type: MERGE, body: row.change },
          { call: `POST ${all}`, body: draft(row, "b") },
          { call: `DELETE ${one}` },
          { call: `DELETE ${all}/${nameOf(row, "b")}` },
        ],
      },
      { call: `POST ${all}`, body: draft(row, "c") },
      {
        watch: `${all}?watch=true&allowWatchBookmarks=true&labelSelector=case%3D$ns&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
        events: 2,
      },
      { watch: `${all}?watch=true&labelSelector=case%3D$ns&sendInitialEvents=true`, events: 1 },
      { call: `DELETE ${all}/${nameOf(row, "c")}` },
    ],
  };
}

function refused(row: KindRow): Case {
  const all = collectionOf(row);
  return {
    name: `${row.plural}: what is refused`,
    steps: [
      { call: `POST ${all}`, body: { ...draft(row, "a"), metadata: { name: "Not_A_Name" } } },
      { call: `POST ${all}`, body: { ...draft(row, "a"), metadata: {} } },
      { call: `POST ${all}`, body: { ...draft(row, "a"), kind: "Nothing" } },
      { call: `POST ${all}`, body: { ...draft(row, "a"), apiVersion: "nothing/v1" } },
      { call: `POST ${all}`, body: "{" },
      { call: `POST ${all}`, body: "text", type: "text/plain" },
      { call: `POST ${all}?fieldValidation=Strict`, body: { ...draft(row, "a"), nonsense: 1 } },
      { call: `PUT ${all}`, body: draft(row, "a") },
      { call: `PUT ${all}/${nameOf(row, "a")}`, body: draft(row, "a") },
      { call: `PUT ${all}/${nameOf(row, "a")}`, body: draft(row, "b") },
      { call: `GET ${all}?labelSelector=a%3D%3D%3Db` },
      { call: `GET ${all}?fieldSelector=spec.nonsense%3Db` },
      { call: `GET ${all}?continue=nonsense&limit=1` },
      { call: `GET ${all}?resourceVersion=nonsense` },
      { call: `POST ${all}?dryRun=Some`, body: draft(row, "a") },
    ],
  };
}

export const kindCases: readonly Case[] = KINDS.flatMap((row) => [life(row), watched(row), refused(row)]);
