/** What the demo puts into the cluster beside `deploy/`: machines to be had, the pools, and what is recorded of our own calls. */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import type { KubeObjectDraft } from "../../../kube/api.ts";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
/** Karpenter ends a node's pods so long after its deletion at the latest. */
export const TERMINATION_GRACE = "2m";
const POD_GRACE_S = 10;

export const CONTROLLER_ACCOUNT = "relevo-controller";
export const OWN_NAMESPACE = "relevo-system";
export const INSTANCES_ACCOUNT = "relevo-instances";

/** CRDs, RBAC and policies of `deploy/` for `kubectl apply -k`; controller and gateway run as processes here, so their pods are left out. `dir` will hold it. */
export function overlayOf(dir: string): string {
  const deploy = relative(dir, `${ROOT}deploy`);
  const without = ["Deployment", "DaemonSet"].map((kind) => ({
    target: { kind },
    patch: `$patch: delete\napiVersion: apps/v1\nkind: ${kind}\nmetadata: { name: any }\n`,
  }));
  return JSON.stringify({ resources: ["crds", "control-plane", "pool-namespace"].map((part) => `${deploy}/${part}`), patches: without });
}

/** What `relevo controller` and those for whom it acts ask the API server is written down, as a witness that is not us. */
export const AUDIT_POLICY = JSON.stringify({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", users: [`system:serviceaccount:${OWN_NAMESPACE}:${CONTROLLER_ACCOUNT}`] }, { level: "None" }],
});

export const NODE_CLASS: KubeObjectDraft = { apiVersion: "karpenter.kwok.sh/v1alpha1", kind: "KWOKNodeClass", metadata: { name: "demo" } };

/** Spot machines without an end of their own: Karpenter replaces a drifted one when nothing on it objects. */
export function nodePool(name: string): KubeObjectDraft {
  const requirement = (key: string, value: string) => ({ key, operator: "In", values: [value] });
  return {
    apiVersion: "karpenter.sh/v1",
    kind: "NodePool",
    metadata: { name },
    spec: {
      // As many at once as there are: what keeps the fleet whole is Relevo, not Karpenter's pace.
      disruption: { budgets: [{ nodes: "100%" }], consolidateAfter: "Never", consolidationPolicy: "WhenEmpty" },
      template: {
        metadata: { labels: { "demo/revision": "one" } },
        spec: {
          expireAfter: "Never",
          nodeClassRef: { group: "karpenter.kwok.sh", kind: "KWOKNodeClass", name: "demo" },
          requirements: [
            requirement("karpenter.sh/capacity-type", "spot"),
            requirement("kubernetes.io/arch", "amd64"),
            requirement("kubernetes.io/os", "linux"),
          ],
        },
      },
    },
  };
}

/** Nodes of another revision drift. Those that come have an end, for the act with a deadline. */
export const NEXT_REVISION = JSON.stringify({
  spec: { template: { metadata: { labels: { "demo/revision": "two" } }, spec: { terminationGracePeriod: TERMINATION_GRACE } } },
});

interface OrdersDocument extends KubeObjectDraft {
  readonly spec: {
    readonly size: object;
    readonly service: object;
    readonly disruption: object;
    readonly traffic: object;
    readonly blueprint: { readonly objects: readonly [OrdersDeployment] };
  };
}

interface OrdersDeployment {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: [{ readonly ports?: unknown; readonly command?: unknown }] } };
  };
}

/** The example's own document on machines of a NodePool of its own, each instance on another machine, spoken to at the stand-in's port. */
export function ordersPool(options: {
  readonly name: string;
  readonly mode: "Act" | "Off";
  readonly nodePool: string;
  readonly desired: number;
  readonly port: number;
  readonly provisioners?: readonly string[] | undefined;
}): KubeObjectDraft {
  const { name, mode, desired, port } = options;
  const document = parse(readFileSync(`${ROOT}examples/orders/pool.yaml`, "utf8")) as OrdersDocument;
  const [deployment] = document.spec.blueprint.objects;
  const { containers } = deployment.spec.template.spec;
  const labels = { app: name, instance: "$(relevo.instance)" };
  const apart = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: name } } };
  const [container] = containers;
  const template = {
    metadata: { labels },
    spec: {
      terminationGracePeriodSeconds: POD_GRACE_S,
      nodeSelector: { "karpenter.sh/nodepool": options.nodePool },
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } },
      containers: [{ ...container, ports: [{ name: "http", containerPort: port }] }],
    },
  };
  const objects = [
    {
      ...deployment,
      metadata: { name: "$(relevo.instance)", labels: { app: name } },
      spec: { replicas: 1, selector: { matchLabels: labels }, template },
    },
  ];
  return {
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name, namespace: "default" },
    spec: {
      ...document.spec,
      size: { desired, floor: Math.max(1, desired - 1), max: 2 * desired },
      service: { ...document.spec.service, port },
      deletion: "drain",
      disruption: { ...document.spec.disruption, mode, provisioners: options.provisioners ?? ["karpenter"] },
      traffic: { ...document.spec.traffic, route: name },
      blueprint: { objects },
    },
  };
}
