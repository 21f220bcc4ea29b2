/** Paths, types of patches and small objects that the cases are made of. */
export const MERGE = "application/merge-patch+json";
export const JSON_PATCH = "application/json-patch+json";
export const STRATEGIC = "application/strategic-merge-patch+json";
export const APPLY = "application/apply-patch+yaml";
export const MAPS = "/api/v1/namespaces/$ns/configmaps";
export const PODS = "/api/v1/namespaces/$ns/pods";
export const DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments";
export const LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases";
export const BUDGETS = "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets";

export const map = (name: string, more: object = {}): object => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...more },
  data: { a: "1" },
});
export const pod = (name: string, spec: object = {}, labels: object = { app: "web" }): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels },
  spec: { containers: [{ name: "main", image: "any", command: ["true"] }], ...spec },
});
export const templated = {
  replicas: 2,
  selector: { matchLabels: { app: "web" } },
  template: {
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "main", image: "any", env: [{ name: "A", value: "1" }] }] },
  },
};
export const deployment = (name: string): object => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, spec: templated });
export const budget = (name: string): object => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name },
  spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
});
export const eviction = (name: string, deleteOptions: object = {}): object => ({
  apiVersion: "policy/v1",
  kind: "Eviction",
  metadata: { name, namespace: "$ns" },
  deleteOptions,
});
export const node = (name: string): object => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, labels: { "topology.kubernetes.io/zone": "z1" } },
});
export const bind = (name: string, to: string): object => ({
  apiVersion: "v1",
  kind: "Binding",
  metadata: { name },
  target: { apiVersion: "v1", kind: "Node", name: to },
});

export const SETS = "/apis/apps/v1/namespaces/$ns/statefulsets";
export const set = (name: string): object => ({ ...deployment(name), kind: "StatefulSet", spec: { ...templated, serviceName: "any" } });
export const POOLS = "/apis/relevo.dev/v1alpha1/namespaces/$ns/pools";
export const pool = (name: string): object => ({
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

export const WIDGETS = "/apis/$ns.example.com/v1/namespaces/$ns/widgets";
export const definition = {
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
export const widget = (name: string, spec: object = { size: 1 }): object => ({
  apiVersion: "$ns.example.com/v1",
  kind: "Widget",
  metadata: { name },
  spec,
});
