/** What only some kinds have: subresources, ways to patch, finalizers, grace, pages, versions, discovery. */
import type { Case } from "../case.ts";

const MERGE = "application/merge-patch+json";
const JSON_PATCH = "application/json-patch+json";
const STRATEGIC = "application/strategic-merge-patch+json";
const APPLY = "application/apply-patch+yaml";
const MAPS = "/api/v1/namespaces/$ns/configmaps";
const PODS = "/api/v1/namespaces/$ns/pods";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases";
const BUDGETS = "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets";

const map = (name: string, more: object = {}): object => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...more },
  data: { a: "1" },
});
const pod = (name: string, spec: object = {}, labels: object = { app: "web" }): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels },
  spec: { containers: [{ name: "main", image: "any", command: ["true"] }], ...spec },
});
const templated = {
  replicas: 2,
  selector: { matchLabels: { app: "web" } },
  template: {
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "main", image: "any", env: [{ name: "A", value: "1" }] }] },
  },
};
const deployment = (name: string): object => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, spec: templated });
const budget = (name: string): object => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name },
  spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
});
const eviction = (name: string, deleteOptions: object = {}): object => ({
  apiVersion: "policy/v1",
  kind: "Eviction",
  metadata: { name, namespace: "$ns" },
  deleteOptions,
});
const node = (name: string): object => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, labels: { "topology.kubernetes.io/zone": "z1" } },
});
const bind = (name: string, to: string): object => ({
  apiVersion: "v1",
  kind: "Binding",
  metadata: { name },
  target: { apiVersion: "v1", kind: "Node", name: to },
});

const SETS = "/apis/apps/v1/namespaces/$ns/statefulsets";
const set = (name: string): object => ({ ...deployment(name), kind: "StatefulSet", spec: { ...templated, serviceName: "any" } });
const POOLS = "/apis/relevo.dev/v1alpha1/namespaces/$ns/pools";
const pool = (name: string): object => ({
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name },
  spec: {
    driver: "service",
    sites: ["local"],
    size: { desired: 2, floor: 1, max: 4 },
    blueprint: {
      objects: [
        { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" }, spec: { template: templated.template } },
      ],
    },
  },
});

const WIDGETS = "/apis/$ns.example.com/v1/namespaces/$ns/widgets";
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.$ns.example.com" },
  spec: {
    group: "$ns.example.com",
    scope: "Namespaced",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};
const widget = (name: string, spec: object = { size: 1 }): object => ({
  apiVersion: "$ns.example.com/v1",
  kind: "Widget",
  metadata: { name },
  spec,
});

export const specialCases: readonly Case[] = [
  {
    name: "finalizers hold what is deleted",
    steps: [
      { call: `POST ${MAPS}`, body: map("a", { finalizers: ["example.com/hold"] }), keep: "a" },
      {
        watch: `${MAPS}?watch=true&resourceVersion=$a.rv`,
        events: 3,
        during: [
          { call: `DELETE ${MAPS}/a` },
          { call: `DELETE ${MAPS}/a` },
          { call: `PATCH ${MAPS}/a`, type: MERGE, body: { metadata: { finalizers: ["example.com/hold", "example.com/more"] } } },
          { call: `PATCH ${MAPS}/a`, type: MERGE, body: { data: { a: "2" } } },
          { call: `PATCH ${MAPS}/a`, type: MERGE, body: { metadata: { finalizers: null } } },
        ],
      },
      { call: `GET ${MAPS}/a` },
    ],
  },
  {
    name: "a pod's grace",
    steps: [
      { call: "POST /api/v1/nodes", body: node("$ns-n") },
      { call: `POST ${PODS}`, body: pod("bound", { nodeName: "$ns-n", terminationGracePeriodSeconds: 60 }), keep: "a" },
      { call: `POST ${PODS}`, body: pod("free") },
      {
        watch: `${PODS}?watch=true&resourceVersion=$a.rv`,
        events: 5,
        during: [
          { call: `DELETE ${PODS}/free` },
          { call: `DELETE ${PODS}/bound` },
          { call: `DELETE ${PODS}/bound?gracePeriodSeconds=90` },
          { call: `DELETE ${PODS}/bound?gracePeriodSeconds=5` },
          { call: `DELETE ${PODS}/bound`, body: { gracePeriodSeconds: 0 } },
        ],
      },
      { call: "DELETE /api/v1/nodes/$ns-n" },
    ],
  },
  {
    name: "binding a pod",
    steps: [
      { call: "POST /api/v1/nodes", body: node("$ns-n") },
      { call: `POST ${PODS}`, body: pod("a") },
      { call: `POST ${PODS}/a/binding`, body: bind("a", "$ns-n") },
      { call: `GET ${PODS}/a`, pick: ["spec.nodeName", "metadata.labels", "status.conditions"] },
      { call: `POST ${PODS}/a/binding`, body: bind("a", "$ns-n") },
      { call: `POST ${PODS}/nobody/binding`, body: bind("nobody", "$ns-n") },
      { call: `PATCH ${PODS}/a`, type: MERGE, body: { spec: { nodeName: "other" } } },
      {
        call: `PATCH ${PODS}/a`,
        type: MERGE,
        body: { spec: { containers: [{ name: "main", image: "other" }] } },
        pick: ["spec.containers.0.image"],
      },
      { call: `PATCH ${PODS}/a`, type: MERGE, body: { spec: { terminationGracePeriodSeconds: 7 } } },
      { call: `DELETE ${PODS}/a?gracePeriodSeconds=0` },
      { call: "DELETE /api/v1/nodes/$ns-n" },
    ],
  },
  {
    name: "evictions",
    steps: [
      { call: `POST ${PODS}`, body: pod("pending") },
      { call: `POST ${PODS}`, body: pod("dry") },
      { call: `POST ${PODS}/dry/eviction`, body: { ...eviction("dry"), deleteOptions: { dryRun: ["All"] } } },
      { call: `POST ${PODS}/pending/eviction`, body: eviction("other") },
      {
        call: `POST ${PODS}/pending/eviction`,
        body: eviction("pending", { preconditions: { uid: "00000000-0000-0000-0000-000000000000" } }),
      },
      { call: `POST ${BUDGETS}`, body: budget("one") },
      { call: `POST ${PODS}/pending/eviction`, body: eviction("pending") },
      { call: `POST ${PODS}/pending/eviction`, body: eviction("pending") },
      { call: `POST ${PODS}`, body: pod("running"), keep: "p" },
      {
        call: `PATCH ${PODS}/running/status`,
        type: MERGE,
        body: { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } },
      },
      { call: `POST ${PODS}/running/eviction`, body: eviction("running") },
      {
        call: `PATCH ${BUDGETS}/one/status`,
        type: MERGE,
        body: { status: { observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 1 } },
      },
      { call: `POST ${PODS}/running/eviction`, body: eviction("running") },
      { call: `POST ${BUDGETS}`, body: budget("two") },
      { call: `POST ${PODS}/running/eviction`, body: eviction("running") },
      { call: `DELETE ${BUDGETS}/two` },
      { call: `PATCH ${BUDGETS}/one/status`, type: MERGE, body: { status: { disruptionsAllowed: 1 } } },
      {
        watch: `${PODS}?watch=true&resourceVersion=$p.rv`,
        events: 4,
        during: [{ call: `POST ${PODS}/running/eviction`, body: eviction("running") }],
        pick: ["status.conditions"],
      },
      { call: `GET ${BUDGETS}/one`, pick: ["status.disruptionsAllowed"] },
    ],
  },
  {
    name: "statuses of built-in kinds",
    steps: [
      { call: "POST /api/v1/nodes", body: { ...node("$ns-n"), status: { capacity: { cpu: "4" } } }, pick: ["status.capacity"] },
      {
        call: "PATCH /api/v1/nodes/$ns-n/status",
        type: MERGE,
        body: { metadata: { labels: { a: "b" } }, spec: { unschedulable: true }, status: { capacity: { cpu: "8" } } },
        pick: ["metadata.labels", "spec.unschedulable", "status.capacity"],
      },
      {
        call: "PATCH /api/v1/nodes/$ns-n/status",
        type: STRATEGIC,
        body: { status: { conditions: [{ type: "Ready", status: "True" }] } },
        pick: ["status.conditions"],
      },
      {
        call: "PATCH /api/v1/nodes/$ns-n/status",
        type: STRATEGIC,
        body: { status: { conditions: [{ type: "Other", status: "True" }] } },
        pick: ["status.conditions"],
      },
      {
        call: "PATCH /api/v1/nodes/$ns-n/status",
        type: MERGE,
        body: { status: { conditions: [{ type: "Ready", status: "False" }] } },
        pick: ["status.conditions"],
      },
      { call: "GET /api/v1/nodes/$ns-n/status" },
      { call: "DELETE /api/v1/nodes/$ns-n" },
      { call: `POST ${DEPLOYMENTS}`, body: { ...deployment("a"), status: { replicas: 9 } }, pick: ["status"] },
      {
        call: `PATCH ${DEPLOYMENTS}/a/status`,
        type: MERGE,
        body: { spec: { replicas: 9 }, status: { observedGeneration: 1, replicas: 2 } },
        pick: ["spec.replicas", "status.replicas"],
      },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: MERGE, body: { status: { replicas: 7 } }, pick: ["status.replicas"] },
    ],
  },
  {
    name: "the scale of a workload",
    steps: [
      { call: `POST ${DEPLOYMENTS}`, body: deployment("a"), keep: "a" },
      { call: `GET ${DEPLOYMENTS}/a/scale`, pick: ["spec.replicas", "status.selector"] },
      { call: `PATCH ${DEPLOYMENTS}/a/scale`, type: MERGE, body: { spec: { replicas: 5 } }, pick: ["spec.replicas"] },
      { call: `PATCH ${DEPLOYMENTS}/a/scale`, type: MERGE, body: { metadata: { resourceVersion: "$a.rv" }, spec: { replicas: 6 } } },
      {
        call: `PUT ${DEPLOYMENTS}/a/scale`,
        body: { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: "a", namespace: "$ns" }, spec: { replicas: 1 } },
        pick: ["spec.replicas"],
      },
      { call: `PATCH ${DEPLOYMENTS}/a/scale`, type: MERGE, body: { spec: { replicas: -1 } } },
      { call: `GET ${DEPLOYMENTS}/a`, pick: ["spec.replicas"] },
      { call: `GET ${DEPLOYMENTS}/nobody/scale` },
    ],
  },
  {
    name: "a stateful set, applied and scaled",
    steps: [
      { call: `PATCH ${SETS}/a?fieldManager=one`, type: APPLY, body: set("a"), pick: ["spec.replicas"] },
      { call: `PATCH ${SETS}/a?fieldManager=one`, type: APPLY, body: set("a") },
      { call: `PATCH ${SETS}/a/scale`, type: MERGE, body: { spec: { replicas: 3 } }, pick: ["spec.replicas"] },
      { call: `GET ${SETS}/a`, pick: ["spec.replicas"] },
      { call: `DELETE ${SETS}/a` },
    ],
  },
  {
    name: "a node's taints by a strategic patch, and a cordon",
    steps: [
      { call: "POST /api/v1/nodes", body: node("$ns-n"), keep: "n" },
      {
        call: "PATCH /api/v1/nodes/$ns-n",
        type: STRATEGIC,
        body: { spec: { taints: [{ key: "a", value: "b", effect: "NoSchedule" }] } },
        pick: ["spec.taints"],
      },
      { call: "PATCH /api/v1/nodes/$ns-n", type: STRATEGIC, body: { spec: { unschedulable: true } }, pick: ["spec"] },
      { call: "PATCH /api/v1/nodes/$ns-n", type: STRATEGIC, body: { spec: { unschedulable: null, taints: [] } }, pick: ["spec"] },
      {
        call: "PATCH /api/v1/nodes/$ns-n",
        type: MERGE,
        body: { metadata: { uid: "$n.uid", resourceVersion: "$n.rv" }, spec: { unschedulable: true } },
      },
      { call: "PATCH /api/v1/nodes/$ns-n", type: MERGE, body: { spec: { providerID: "any://one" } }, pick: ["spec.providerID"] },
      { call: "PATCH /api/v1/nodes/$ns-n", type: MERGE, body: { spec: { providerID: "any://other" } } },
      { call: "DELETE /api/v1/nodes/$ns-n" },
    ],
  },
  {
    name: "statuses of Pools",
    steps: [
      { call: `POST ${POOLS}`, body: pool("a"), keep: "a", pick: ["status"] },
      {
        call: `PATCH ${POOLS}/a/status`,
        type: MERGE,
        body: { status: { phase: "Steady" }, spec: { size: { desired: 9 } } },
        pick: ["status.phase", "spec.size"],
      },
      { call: `GET ${POOLS}/a/status`, pick: ["status.phase"] },
      { call: `PATCH ${POOLS}/a`, type: MERGE, body: { status: { phase: "Other" } }, pick: ["status.phase"] },
      { call: `DELETE ${POOLS}/a` },
    ],
  },
  {
    name: "a namespace that goes",
    steps: [
      { call: `POST ${MAPS}`, body: map("a", { finalizers: ["example.com/hold"] }) },
      { call: "DELETE /api/v1/namespaces/$ns" },
      { call: `POST ${MAPS}`, body: map("b") },
      { call: `PATCH ${MAPS}/a`, type: MERGE, body: { data: { a: "2" } } },
      { call: "GET /api/v1/namespaces/$ns", pick: ["status.phase", "spec.finalizers"] },
    ],
  },
  {
    name: "ways to patch",
    steps: [
      { call: `POST ${DEPLOYMENTS}`, body: deployment("a") },
      {
        call: `PATCH ${DEPLOYMENTS}/a`,
        type: STRATEGIC,
        body: { spec: { template: { spec: { containers: [{ name: "main", env: [{ name: "B", value: "2" }] }] } } } },
        pick: ["spec.template.spec.containers.0.env"],
      },
      {
        call: `PATCH ${DEPLOYMENTS}/a`,
        type: STRATEGIC,
        body: { spec: { template: { spec: { containers: [{ name: "main", env: [{ name: "A", $patch: "delete" }] }] } } } },
        pick: ["spec.template.spec.containers.0.env"],
      },
      {
        call: `PATCH ${DEPLOYMENTS}/a`,
        type: JSON_PATCH,
        body: [
          { op: "test", path: "/spec/replicas", value: 2 },
          { op: "replace", path: "/spec/replicas", value: 4 },
        ],
        pick: ["spec.replicas"],
      },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: JSON_PATCH, body: [{ op: "test", path: "/spec/replicas", value: 9 }] },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: JSON_PATCH, body: [{ op: "remove", path: "/spec/nothing" }] },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: JSON_PATCH, body: { op: "remove" } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: MERGE, body: { spec: { replicas: "many" } } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: MERGE, body: { spec: { selector: { matchLabels: { app: "other" } } } } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: MERGE, body: { metadata: { name: "b" } } },
      { call: `PATCH ${DEPLOYMENTS}/a`, type: "application/json", body: {} },
      { call: `PATCH ${DEPLOYMENTS}/a?fieldValidation=Strict`, type: MERGE, body: { spec: { nonsense: 1 } } },
      { call: `PATCH ${DEPLOYMENTS}/a?dryRun=All`, type: MERGE, body: { spec: { replicas: 8 } }, pick: ["spec.replicas"] },
      { call: `GET ${DEPLOYMENTS}/a`, pick: ["spec.replicas"] },
    ],
  },
  {
    name: "server-side apply",
    steps: [
      { call: `PATCH ${MAPS}/a?fieldManager=one`, type: APPLY, body: map("a"), pick: ["data"] },
      { call: `PATCH ${MAPS}/a?fieldManager=one`, type: APPLY, body: map("a") },
      { call: `PATCH ${MAPS}/a?fieldManager=two`, type: APPLY, body: { ...map("a"), data: { a: "2" } } },
      { call: `PATCH ${MAPS}/a?fieldManager=two&force=true`, type: APPLY, body: { ...map("a"), data: { a: "2", b: "3" } }, pick: ["data"] },
      { call: `PATCH ${MAPS}/a?fieldManager=two`, type: APPLY, body: { ...map("a"), data: { a: "2" } }, pick: ["data"] },
      { call: `PATCH ${MAPS}/a`, type: APPLY, body: map("a") },
      { call: `PATCH ${MAPS}/other?fieldManager=one`, type: APPLY, body: map("a") },
    ],
  },
  {
    name: "replacing whole",
    steps: [
      { call: `POST ${MAPS}`, body: map("a"), keep: "a" },
      { call: `PUT ${MAPS}/a`, body: { ...map("a", { resourceVersion: "$a.rv" }), data: { b: "2" } }, pick: ["data"] },
      { call: `PUT ${MAPS}/a`, body: { ...map("a", { resourceVersion: "$a.rv" }), data: { b: "3" } } },
      { call: `PUT ${MAPS}/a`, body: { ...map("a"), data: { b: "3" } }, pick: ["data"] },
      { call: `PUT ${MAPS}/a`, body: { ...map("a"), data: { b: "3" } } },
      { call: `PUT ${MAPS}/a`, body: map("a", { uid: "00000000-0000-0000-0000-000000000000" }) },
      { call: `PUT ${MAPS}/nobody`, body: map("nobody", { resourceVersion: "$a.rv" }) },
      { call: `PUT ${MAPS}/a`, body: map("a", { namespace: "default" }) },
    ],
  },
  {
    name: "names that the server makes, and namespaces that are not there",
    steps: [
      { call: `POST ${MAPS}`, body: { metadata: { generateName: "a-" } } },
      { call: "POST /api/v1/namespaces/$ns-none/configmaps", body: map("a") },
      { call: "GET /api/v1/namespaces/$ns-none/configmaps" },
      { call: "GET /api/v1/namespaces/$ns-none/configmaps/a" },
      { call: `POST ${MAPS}`, body: map("a", { namespace: "default" }) },
      { call: "GET /api/v1/namespaces/$ns" },
      { call: "POST /api/v1/namespaces", body: { metadata: { name: "$ns" } } },
      { call: `POST ${MAPS}`, body: { ...map("big"), data: { a: "x".repeat(1_100_000) } } },
      { call: `POST ${MAPS}`, body: map("a", { labels: { "not a key": "b" } }) },
      { call: `POST ${MAPS}`, body: map("a", { labels: { a: "not a value!" } }) },
      { call: `POST ${MAPS}`, body: map("a", { resourceVersion: "5" }) },
      { call: `POST ${MAPS}`, body: map("a", { finalizers: ["no-slash"] }) },
      { call: `POST ${MAPS}`, body: map("owned", { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "" }] }) },
    ],
  },
  {
    name: "times of Leases have six digits",
    steps: [
      { call: `POST ${LEASES}`, body: { metadata: { name: "a" }, spec: { renewTime: "2030-01-01T00:00:00.000Z" } } },
      {
        call: `POST ${LEASES}`,
        body: { metadata: { name: "a" }, spec: { renewTime: "2030-01-01T00:00:00.000000Z" } },
        pick: ["spec.renewTime"],
      },
      { call: `PATCH ${LEASES}/a`, type: MERGE, body: { spec: { renewTime: "2030-01-01T00:00:01Z" } } },
      { call: `PATCH ${LEASES}/a`, type: MERGE, body: { spec: { leaseDurationSeconds: 0 } } },
    ],
  },
  {
    name: "pages",
    steps: [
      ...["a", "b", "c", "d", "e"].map((name) => ({ call: `POST ${MAPS}`, body: map(name) })),
      { call: `GET ${MAPS}?limit=2`, keep: "one" },
      { call: `POST ${MAPS}`, body: map("bb") },
      { call: `DELETE ${MAPS}/d` },
      { call: `GET ${MAPS}?limit=2&continue=$one.continue`, keep: "two" },
      { call: `GET ${MAPS}?continue=$two.continue` },
      { call: `GET ${MAPS}?limit=2&continue=$one.continue&resourceVersion=1` },
      { call: `GET ${MAPS}?limit=2&resourceVersion=0` },
      { call: `GET ${MAPS}` },
      { call: `GET ${MAPS}?resourceVersion=$one.rv&resourceVersionMatch=Exact` },
      { call: `GET ${MAPS}?resourceVersionMatch=Exact` },
    ],
  },
  {
    name: "watches by version",
    steps: [
      { call: `POST ${MAPS}`, body: map("a"), keep: "a" },
      { call: `PATCH ${MAPS}/a`, type: MERGE, body: { data: { a: "2" } } },
      { watch: `${MAPS}?watch=true`, events: 2 },
      { watch: `${MAPS}?watch=true&resourceVersion=0`, events: 2 },
      { watch: `${MAPS}?watch=true&resourceVersion=$a.rv`, events: 2 },
      { watch: `${MAPS}?watch=true&resourceVersion=nonsense`, events: 1 },
      { watch: `${MAPS}?watch=true&resourceVersion=$a.rv&timeoutSeconds=1&allowWatchBookmarks=true`, events: 5 },
      { call: `GET ${MAPS}/a?watch=true&resourceVersion=$a.rv` },
      { watch: `${MAPS}?watch=true&fieldSelector=metadata.name%3Da&resourceVersion=$a.rv`, events: 2 },
      { watch: `${MAPS}?watch=true&limit=1&resourceVersion=$a.rv`, events: 1 },
      { watch: `${MAPS}?watch=true`, accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", events: 1 },
    ],
  },
  {
    name: "custom resources",
    steps: [
      { call: "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: definition },
      { call: "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: definition },
      {
        watch: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?watch=true&fieldSelector=metadata.name%3Dwidgets.$ns.example.com",
        events: 4,
        pick: [],
      },
      { call: `POST ${WIDGETS}`, body: { ...widget("a"), status: { seen: 1 } }, keep: "a", pick: ["status"] },
      {
        call: `PATCH ${WIDGETS}/a/status`,
        type: MERGE,
        body: { metadata: { labels: { a: "b" } }, spec: { size: 9 }, status: { seen: 2 } },
        pick: ["metadata.labels", "spec", "status"],
      },
      { call: `PATCH ${WIDGETS}/a`, type: MERGE, body: { status: { seen: 3 } }, pick: ["status"] },
      { call: `PATCH ${WIDGETS}/a`, type: MERGE, body: { spec: { size: 2 } } },
      { call: `PATCH ${WIDGETS}/a`, type: STRATEGIC, body: { spec: { size: 3 } } },
      { call: `PATCH ${WIDGETS}/a`, type: MERGE, body: { metadata: { uid: "00000000-0000-0000-0000-000000000000" }, spec: { size: 9 } } },
      { call: `PATCH ${WIDGETS}/a`, type: MERGE, body: { metadata: { resourceVersion: "$a.rv" }, spec: { size: 9 } } },
      { call: `PATCH ${WIDGETS}/a`, type: JSON_PATCH, body: [{ op: "replace", path: "/spec/size", value: 4 }], pick: ["spec"] },
      { call: `PUT ${WIDGETS}/a`, body: widget("a", { size: 5 }) },
      { call: `PATCH ${WIDGETS}/b?fieldManager=one`, type: APPLY, body: widget("b"), pick: ["spec"] },
      { call: `GET ${WIDGETS}` },
      { call: `GET ${WIDGETS}`, accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" },
      { watch: `${WIDGETS}?watch=true&resourceVersion=$a.rv`, events: 6 },
      { call: `DELETE ${WIDGETS}/a` },
      { call: `DELETE ${WIDGETS}/a` },
      { call: "GET /apis/$ns.example.com/v1", pick: ["groupVersion"] },
      { call: "DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.$ns.example.com" },
    ],
  },
  {
    name: "paths that lead nowhere, and what every server tells",
    steps: [
      { call: "GET /apis/nothing.example.com/v1/things" },
      { call: "GET /api/v1/things" },
      { call: "GET /api/v2/pods" },
      { call: `GET ${PODS}/a/nothing` },
      { call: "GET /nothing" },
      { call: "GET /readyz" },
      { call: "GET /livez" },
      { call: "GET /version", pick: ["major"] },
      { call: "GET /api", pick: ["versions"] },
      { call: "DELETE /api/v1/namespaces/$ns/pods/nobody" },
      { call: "PATCH /api/v1/namespaces/$ns/pods", type: MERGE, body: {} },
      { call: "POST /api/v1/namespaces/$ns/pods/a", body: pod("a") },
      {
        call: "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes: { verb: "list", resource: "pods" } },
        },
        pick: ["status.allowed"],
      },
    ],
  },
  {
    name: "pods that are not valid",
    steps: [
      { call: `POST ${PODS}`, body: pod("a1", { containers: [] }) },
      { call: `POST ${PODS}`, body: pod("a2", { containers: [{ image: "any" }] }) },
      {
        call: `POST ${PODS}`,
        body: pod("a3", {
          containers: [
            { name: "main", image: "any" },
            { name: "main", image: "any" },
          ],
        }),
      },
      { call: `POST ${PODS}`, body: pod("a4", { restartPolicy: "Sometimes" }) },
      { call: `POST ${PODS}`, body: pod("a5", { terminationGracePeriodSeconds: -1 }) },
      { call: `POST ${PODS}`, body: pod("a6", { containers: [{ name: "main", image: "any", ports: [{ containerPort: 70_000 }] }] }) },
      { call: `POST ${PODS}`, body: pod("a7", { priorityClassName: "nobody" }) },
      {
        call: `POST ${PODS}`,
        body: pod("a8"),
        pick: [
          "status.phase",
          "status.qosClass",
          "spec.restartPolicy",
          "spec.terminationGracePeriodSeconds",
          "spec.priority",
          "spec.schedulerName",
        ],
      },
    ],
  },
  {
    name: "deployments that are not valid",
    steps: [
      { call: `POST ${DEPLOYMENTS}`, body: { ...deployment("a"), spec: {} } },
      {
        call: `POST ${DEPLOYMENTS}`,
        body: {
          ...deployment("a"),
          spec: {
            selector: { matchLabels: { app: "other" } },
            template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main", image: "any" }] } },
          },
        },
      },
      {
        call: `POST ${DEPLOYMENTS}`,
        body: {
          ...deployment("a"),
          spec: {
            replicas: -1,
            selector: { matchLabels: { app: "web" } },
            template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main", image: "any" }] } },
          },
        },
      },
      {
        call: `POST ${DEPLOYMENTS}`,
        body: deployment("a"),
        pick: ["spec.replicas", "spec.strategy", "spec.progressDeadlineSeconds", "spec.revisionHistoryLimit"],
      },
    ],
  },
];
