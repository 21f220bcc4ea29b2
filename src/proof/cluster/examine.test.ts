import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { KubeApiError, type KubeApi, type KubeObject, type KubeObjectDraft, type ListOptions, type ResourceType } from "../../kube/api.ts";
import { poolSchema } from "../../model/pool.ts";
import type { StoreDescription } from "../../store/port.ts";
import { mayLandOn } from "./eligible.ts";
import { examineCluster } from "./examine.ts";
import type { ClusterFacts, InspectedNode } from "./facts.ts";

const NOON = Date.UTC(2030, 0, 1, 12);

interface World {
  readonly objects?: readonly { readonly type: string; readonly object: unknown }[];
  readonly absent?: readonly string[];
  readonly forbidden?: readonly string[];
  /** `verb group/resource` that is not granted. */
  readonly denied?: readonly string[];
  readonly serverAheadMs?: number;
}

/** Answers lists, reviews and rehearsals, and nothing else. */
function kubeOf({ objects = [], absent = [], forbidden = [], denied = [], serverAheadMs = 0 }: World, asked: string[], user = ""): KubeApi {
  const none = () => Promise.reject(new Error("not asked for"));
  const refuse = (code: number, reason: string) => Promise.reject(new KubeApiError({ code, reason }, "test"));
  const api: Partial<KubeApi> = {
    list: ({ plural }: ResourceType, { labelSelector }: ListOptions = {}) => {
      if (absent.includes(plural)) return refuse(404, "NotFound");
      if (forbidden.includes(plural)) return refuse(403, "Forbidden");
      const items = objects.filter(({ type }) => type === plural).map(({ object }) => object as KubeObject);
      const [key = "", value] = labelSelector?.split("=") ?? [];
      const chosen = items.filter(
        ({ metadata }) => key === "" || (metadata.labels?.[key] !== undefined && (value ?? metadata.labels[key]) === metadata.labels[key]),
      );
      return Promise.resolve({ resourceVersion: "1", items: chosen });
    },
    create: (_type: ResourceType, { spec }: KubeObjectDraft) => {
      if (absent.includes("selfsubjectaccessreviews")) return refuse(404, "NotFound");
      const { verb, group, resource, namespace } = (spec as { resourceAttributes: Record<string, string> }).resourceAttributes;
      asked.push(`${user}${verb} ${group}/${resource}${namespace === undefined ? "" : ` in ${namespace}`}`);
      return Promise.resolve({
        metadata: {},
        status: { allowed: !denied.includes(`${verb} ${group}/${resource}`) },
      } as unknown as KubeObject);
    },
    rehearse: () =>
      Promise.resolve({ metadata: { creationTimestamp: new Date(NOON + serverAheadMs).toISOString() } } as unknown as KubeObject),
    as: (name: string) => kubeOf({ objects, absent, forbidden, denied }, asked, `${name.split(":").at(-1)}: `),
  };
  return new Proxy(api, { get: (target, key) => target[key as keyof KubeApi] ?? none }) as KubeApi;
}

const spec = {
  driver: "service",
  size: { desired: 2 },
  serviceAccountName: "relevo-instances",
  blueprint: {
    objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" }, spec: { template: { spec: {} } } }],
  },
  disruption: { mode: "Act" },
};
const ORDERS = {
  key: "default/orders",
  document: poolSchema.parse({ apiVersion: "relevo.dev/v1alpha1", kind: "Pool", metadata: { name: "orders" }, spec }),
};
const NODE: InspectedNode = {
  name: "node-a",
  labels: { "karpenter.sh/nodepool": "spot" },
  taints: [],
  provisioner: "karpenter",
  pools: ["default/orders"],
};
const STORE: StoreDescription = { kind: "postgresql", version: "15.8", where: "postgresql://db/relevo", schema: 3, synchronous: "standby" };

interface Change extends Partial<Omit<ClusterFacts, "nodes" | "pools" | "store" | "kube" | "otherVersions">> {
  readonly world?: World;
  readonly nodes?: readonly InspectedNode[];
  readonly pools?: ReturnType<ClusterFacts["pools"]>;
  readonly described?: Partial<StoreDescription>;
  readonly versions?: readonly string[];
  readonly asked?: string[];
}

async function examined({ world = {}, nodes = [NODE], pools = [ORDERS], described, versions = [], asked = [], ...facts }: Change = {}) {
  return examineCluster({
    kube: kubeOf(world, asked),
    clock: new VirtualClock(NOON),
    store: { describeStore: async () => ({ ...STORE, ...described }) },
    pools: () => pools,
    nodes: () => nodes,
    capabilities: ["events", "doctor"],
    ownNamespace: "relevo-system",
    isShared: true,
    otherVersions: () => versions,
    ...facts,
  });
}

/** All that is not ok. */
async function trouble(change: Change): Promise<readonly string[]> {
  return (await examined(change)).filter(({ state }) => state !== "ok").map(({ check, state, message }) => `${state} ${check}: ${message}`);
}

const object = (
  type: string,
  kind: string,
  name: string,
  more: object = {},
  labels: Readonly<Record<string, string>> = {},
  namespace = "default",
) => ({
  type,
  object: {
    kind,
    metadata: { name, namespace, uid: name, resourceVersion: "1", creationTimestamp: "2030-01-01T12:00:00Z", labels },
    ...more,
  },
});
const running = (image: string, more: object = {}) => ({ spec: { template: { spec: { containers: [{ image, ...more }] } } } });

test("a sound cluster is ok in each part", async () => {
  expect((await examined()).map(({ check, state, message }) => `${state} ${check}: ${message}`)).toEqual([
    "ok store kind: PostgreSQL 15.8, schema 3, with a synchronous standby",
    "ok versions: all live replicas are of one version",
    "ok server clock: the API server's and the controller's agree within its stamps' second",
    "ok definition pools.relevo.dev: serves v1alpha1",
    expect.stringMatching(/^ok permissions: all \d+ that were asked about are granted$/),
    "ok karpenter: karpenter.sh/v1 is served; its version is not known: no Deployment of it is seen",
    "ok nodes for default/orders: all 1 that its pods may land on belong to a declared provisioner (karpenter)",
    "ok own place: 0 pods of Relevo, none on what it evacuates",
    "ok other actors: nobody else is seen that cordons or drains nodes or evicts pods",
    "ok other scalers: nobody else sets the replicas of the 0 workloads of instances",
  ]);
});

describe("permissions", () => {
  test("a missing one is refused where a claim rests on it, and a warning elsewhere, named with its account (D12)", async () => {
    expect(await trouble({ world: { denied: ["patch /nodes", "create apps/deployments", "list /events"] } })).toEqual([
      "refused permissions for instances: missing: create deployments.apps in default as relevo-instances",
      "refused permissions for disruption: missing: patch nodes",
      "warning permissions for events: missing: list events",
    ]);
  });

  test("only what is switched on is asked about: with mode Off no cordon, without replicas no election", async () => {
    const asked: string[] = [];
    const off = {
      ...ORDERS,
      document: {
        ...ORDERS.document,
        spec: { ...ORDERS.document.spec, disruption: { ...ORDERS.document.spec.disruption, mode: "Off" as const } },
      },
    };
    await examined({ pools: [off], isShared: false, asked });
    expect(asked.filter((each) => /patch \/(nodes|pods)|leases|subjectaccess/.test(each))).toEqual([]);
    expect(asked).toContain("impersonate /serviceaccounts in default");
    expect(asked).toContain("relevo-instances: create apps/deployments in default");
  });

  test("a cluster that has no reviews is not asked", async () => {
    expect(await trouble({ world: { absent: ["selfsubjectaccessreviews"] } })).toEqual([]);
  });
});

describe("nodes", () => {
  test("one that no declared provisioner owns refuses the pool's mode Act, unless its pods cannot land there (D17)", async () => {
    const foreign: InspectedNode = { ...NODE, name: "node-b", provisioner: null, pools: [] };
    const tainted = {
      ...foreign,
      name: "control-plane",
      taints: [{ key: "node-role.kubernetes.io/control-plane", value: "", effect: "NoSchedule", timeAdded: null }],
    };
    expect(await trouble({ nodes: [NODE, foreign, tainted] })).toEqual([
      "refused nodes for default/orders: belong to no declared provisioner (karpenter): node-b (none)",
    ]);
  });

  test("selector, affinity and tolerations decide where a pod may land; a cordon does not", () => {
    const withPod = (pod: object) => {
      const [lead] = spec.blueprint.objects;
      return poolSchema.parse({
        ...ORDERS.document,
        spec: { ...spec, blueprint: { objects: [{ ...lead, spec: { template: { spec: pod } } }] } },
      });
    };
    const affinity = (operator: string, values?: readonly string[]) => ({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator, values }] }],
          },
        },
      },
    });
    const node = { ...NODE, labels: { zone: "a" } };
    const taint = (key: string, effect = "NoSchedule") => ({ ...node, taints: [{ key, value: "x", effect, timeAdded: null }] });
    const cases: readonly (readonly [object, InspectedNode, boolean])[] = [
      [{ nodeSelector: { zone: "a" } }, node, true],
      [{ nodeSelector: { zone: "b" } }, node, false],
      [affinity("In", ["a"]), node, true],
      [affinity("NotIn", ["a"]), node, false],
      [affinity("Exists"), node, true],
      [affinity("DoesNotExist"), node, false],
      [{}, taint("dedicated"), false],
      [{}, taint("dedicated", "PreferNoSchedule"), true],
      [{}, taint("node.kubernetes.io/unschedulable"), true],
      [{ tolerations: [{ key: "dedicated", operator: "Exists" }] }, taint("dedicated"), true],
      [{ tolerations: [{ key: "dedicated", value: "y" }] }, taint("dedicated"), false],
      [{ tolerations: [{ key: "dedicated", value: "x", effect: "NoExecute" }] }, taint("dedicated"), false],
      [{ tolerations: [{ operator: "Exists" }] }, taint("dedicated"), true],
    ];
    for (const [pod, where, expected] of cases) expect([pod, mayLandOn(withPod(pod), where)]).toEqual([pod, expected]);
  });

  test("Relevo on a spot node, beside its instances, or in their node pool is refused; its agents belong everywhere", async () => {
    const pod = (name: string, nodeName: string, component = "controller") =>
      object(
        "pods",
        "Pod",
        name,
        { spec: { nodeName }, status: {} },
        { "app.kubernetes.io/part-of": "relevo", "app.kubernetes.io/component": component },
        "relevo-system",
      );
    const plain = { ...NODE, pools: [] };
    const nodes = [
      NODE,
      { ...plain, name: "spot", labels: { "karpenter.sh/capacity-type": "spot" } },
      { ...plain, name: "same", labels: { "karpenter.sh/nodepool": "spot" } },
      { ...plain, name: "own", labels: { "karpenter.sh/nodepool": "system" } },
    ];
    const objects = [pod("a", "node-a"), pod("b", "spot"), pod("c", "same"), pod("d", "own"), pod("e", "node-a", "agent")];
    expect(await trouble({ nodes, world: { objects } })).toEqual([
      "refused own place: runs on capacity that it evacuates: a on node-a (carries instances of default/orders), b on spot (karpenter.sh/capacity-type=spot), c on same (karpenter.sh/nodepool=spot, as instances that it evacuates)",
    ]);
  });
});

describe("Karpenter", () => {
  test("absent where a pool in mode Act declares it is refused", async () => {
    expect(await trouble({ world: { absent: ["nodepools"] } })).toEqual([
      "refused karpenter: karpenter.sh/v1 is not served, and pools in mode Act declare it as the owner of their nodes",
    ]);
  });

  test("its version is told, and a NodePool that sets terminationGracePeriod bounds what protection can do", async () => {
    const bound = { spec: { template: { spec: { terminationGracePeriod: "10m" } } } };
    const objects = [
      object(
        "deployments",
        "Deployment",
        "karpenter",
        {},
        { "app.kubernetes.io/name": "karpenter", "app.kubernetes.io/version": "1.6.0" },
        "kube-system",
      ),
      object("nodepools", "NodePool", "spot", bound),
      object("nodepools", "NodePool", "calm", { spec: { template: { spec: {} } } }),
    ];
    const findings = await examined({ world: { objects } });
    expect(findings.filter(({ check }) => check === "karpenter").map(({ message }) => message)).toEqual([
      "karpenter.sh/v1 is served, version 1.6.0",
    ]);
    expect(await trouble({ world: { objects } })).toEqual([
      "warning NodePool spot: terminationGracePeriod is 10m: its nodes end then, with what is protected on them; such losses are counted as deadline",
    ]);
  });
});

test("who else acts on nodes is named: NTH, cluster autoscaler, descheduler, Karpenter's own queue; what is scaled to nothing is not", async () => {
  const objects = [
    object("daemonsets", "DaemonSet", "nth", running("public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.0"), {}, "kube-system"),
    object("deployments", "Deployment", "ca", running("registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0"), {}, "kube-system"),
    object("deployments", "Deployment", "descheduler", running("registry.k8s.io/descheduler/descheduler:v0.33.0"), {}, "kube-system"),
    object(
      "deployments",
      "Deployment",
      "karpenter",
      running("public.ecr.aws/karpenter/controller:1.6.0", { env: [{ name: "INTERRUPTION_QUEUE", value: "q" }] }),
      {},
      "kube-system",
    ),
    object(
      "deployments",
      "Deployment",
      "karpenter-quiet",
      running("public.ecr.aws/karpenter/controller:1.6.0", { env: [{ name: "INTERRUPTION_QUEUE", value: "" }] }),
    ),
    object("deployments", "Deployment", "off", { spec: { replicas: 0, template: running("x/descheduler:1").spec.template } }),
    object("deployments", "Deployment", "app", running("example/shop:1")),
  ];
  expect(await trouble({ world: { objects } })).toEqual([
    "warning other actors: cluster autoscaler (Deployment kube-system/ca) removes nodes; it leaves those alone that carry protected pods (safe-to-evict: false)",
    "warning other actors: descheduler (Deployment kube-system/descheduler) evicts pods by policies of its own and does not know Relevo's protection",
    "warning other actors: Karpenter's own queue (Deployment kube-system/karpenter) drains a node as soon as its own interruption queue says so",
    "warning other actors: node termination handler (DaemonSet kube-system/nth) cordons and drains nodes on the notices that Relevo acts on",
  ]);
});

test("an HPA or a ScaledObject on an instance's workload is refused: two owners of one count (K3); on anything else it is none of ours", async () => {
  const ours = object("deployments", "Deployment", "orders-a", {}, { "relevo.dev/instance": "orders-a", "relevo.dev/pool": "orders" });
  const scaler = (type: string, kind: string, name: string, target: object) =>
    object(type, kind, name, { spec: { scaleTargetRef: target } });
  const objects = [
    ours,
    scaler("horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", { kind: "Deployment", name: "orders-a" }),
    scaler("scaledobjects", "ScaledObject", "keda", { name: "orders-a" }),
    scaler("horizontalpodautoscalers", "HorizontalPodAutoscaler", "other", { kind: "Deployment", name: "shop" }),
  ];
  expect(await trouble({ world: { objects } })).toEqual([
    "refused other scalers: HorizontalPodAutoscaler default/hpa sets the replicas of Deployment default/orders-a, an instance of orders: two owners of one count",
    "refused other scalers: ScaledObject default/keda sets the replicas of Deployment default/orders-a, an instance of orders: two owners of one count",
  ]);
});

test("what may not be listed is said, and a kind that is not served is no trouble", async () => {
  expect(await trouble({ world: { forbidden: ["daemonsets"], absent: ["scaledobjects"] } })).toEqual([
    "warning other actors: daemonsets may not be listed",
  ]);
});

test.each([
  [
    { synchronous: "disk" },
    "warning store kind: PostgreSQL 15.8, schema 3, without a synchronous standby: a fail-over to another server loses the last commits, and then everything is held as store_rewound",
  ],
  [
    { synchronous: "none" },
    "refused store kind: PostgreSQL 15.8, schema 3: fsync is off, so an answered commit may be lost with its machine",
  ],
  [
    { synchronous: "standby_missing" },
    "warning store kind: PostgreSQL 15.8, schema 3: a synchronous standby is wanted and none is connected, so commits wait",
  ],
  [{ synchronous: "unknown" }, "warning store kind: PostgreSQL 15.8, schema 3: whether a standby confirms commits may not be seen"],
  [{ kind: "sqlite", synchronous: "disk" }, "refused store kind: SQLite 15.8, schema 3: a file serves one controller only"],
] as const)("the store's durability %j is told", async (described, told) => {
  expect(await trouble({ described })).toEqual([told]);
});

test("a server's clock that is five minutes off is told (its stamps are whole seconds)", async () => {
  expect(await trouble({ world: { serverAheadMs: 300_000 } })).toEqual([
    "warning server clock: the API server's differs from the controller's by about 301 s",
  ]);
});

test("replicas of another version are told (D17), and a check that fails does not keep the others from telling", async () => {
  expect(await trouble({ versions: ["relevo-1 (0.0.9)"] })).toEqual([
    "warning versions: other replicas are of another version: relevo-1 (0.0.9)",
  ]);
  const store = { describeStore: () => Promise.reject(new TypeError("odd")) };
  const facts = {
    kube: kubeOf({}, []),
    clock: new VirtualClock(NOON),
    store,
    pools: () => [],
    nodes: () => [NODE],
    capabilities: [],
    ownNamespace: null,
    isShared: false,
    otherVersions: () => [],
  };
  const findings = await examineCluster(facts);
  expect(findings.filter(({ state }) => state !== "ok").map(({ check, message }) => [check, message])).toEqual([
    ["store kind", "could not be looked at: odd"],
  ]);
});
