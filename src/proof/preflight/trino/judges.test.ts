/** Each judgement of the preflight of Trino, by table; the figures are those that were measured in the field. */
import { describe, expect, test } from "vitest";
import { sizingSchema } from "../../../model/sizing.ts";
import { capabilityOf, judgeCapability } from "./capability.ts";
import { judgeConnectors } from "./connectors.ts";
import { type PodPlan, parseSize, podSpecSchema } from "./facts.ts";
import { judgeFit, judgeQuotas, machinesFor, smallestThatFits } from "./machines.ts";
import { judgeContainer, judgeHeap } from "./memory.ts";
import { judgeMounts } from "./mounts.ts";
import { judgeQos, qosOf } from "./qos.ts";
import { judgeErrorDurations, judgeGrace } from "./times.ts";

const podOf = (container: object = {}, rest: object = {}) =>
  podSpecSchema.parse({ containers: [{ name: "trino", ...container }], ...rest });
const resources = (cpu: readonly [string, string], memory: readonly [string, string] = ["4Gi", "4Gi"]) => ({
  resources: { requests: { cpu: cpu[0], memory: memory[0] }, limits: { cpu: cpu[1], memory: memory[1] } },
});

function planOf(given: Partial<PodPlan> & { readonly config?: Readonly<Record<string, string>> } = {}): PodPlan {
  const { config = {}, ...rest } = given;
  return {
    workload: "StatefulSet x-worker",
    role: "worker",
    replicas: 1,
    spec: podOf(resources(["1", "1"])),
    files: new Map([["config.properties", new Map(Object.entries(config))]]),
    jvm: ["-Xmx2g"],
    ...rest,
  };
}

describe("mounts (T4)", () => {
  const volumes = [
    { name: "config", configMap: { name: "c" } },
    { name: "exchange", configMap: { name: "e" } },
    { name: "data", emptyDir: {} },
  ];
  const mounts = (...volumeMounts: readonly object[]) => judgeMounts(podOf({ volumeMounts }, { volumes }));
  test("a single file inside a read-only ConfigMap volume is refused", () => {
    expect(
      mounts(
        { name: "config", mountPath: "/etc/trino" },
        { name: "exchange", mountPath: "/etc/trino/exchange-manager.properties", subPath: "exchange-manager.properties" },
      ),
    ).toEqual({
      state: "refused",
      message:
        "container trino: the single file /etc/trino/exchange-manager.properties lies inside /etc/trino, which config fills read-only",
      todo: "mount a folder of its own there, or put the file into the outer ConfigMap",
    });
  });
  test("a folder inside it is fine, as is a single file inside a writable one", () => {
    expect(mounts({ name: "config", mountPath: "/etc/trino" }, { name: "exchange", mountPath: "/etc/trino/catalog" }).state).toBe("ok");
    expect(
      mounts({ name: "data", mountPath: "/data" }, { name: "exchange", mountPath: "/data/a.properties", subPath: "a.properties" }).state,
    ).toBe("ok");
    expect(mounts({ name: "config", mountPath: "/etc/trino" }, { name: "exchange", mountPath: "/etc/trinox/a", subPath: "a" }).state).toBe(
      "ok",
    );
  });
  test("two at one place are refused", () => {
    expect(mounts({ name: "config", mountPath: "/etc/trino/" }, { name: "exchange", mountPath: "/etc/trino" }).message).toBe(
      "container trino: config and exchange are both mounted at /etc/trino",
    );
  });
});

describe("QoS (T9)", () => {
  test.each([
    ["Burstable", podOf(resources(["300m", "1"]))],
    ["Guaranteed", podOf(resources(["1000m", "1"]))],
    ["Guaranteed", podOf({ resources: { limits: { cpu: "1", memory: "4Gi" } } })],
    ["Burstable", podOf({ resources: { requests: { cpu: "1" } } })],
    ["BestEffort", podOf()],
    ["Burstable", podOf(resources(["1", "1"]), { initContainers: [{ name: "clean" }] })],
  ] as const)("%s, as the API server computes it", (qos, spec) => {
    expect(qosOf(spec)).toBe(qos);
  });
  test("cpu {min 300m, max 1} is refused, and the container is named", () => {
    expect(judgeQos(podOf(resources(["300m", "1"])), [])).toMatchObject({
      state: "refused",
      message: "it renders Burstable: container trino asks for 300m cpu and may take 1",
    });
  });
  test("what a live pod is counts more than what the document would make", () => {
    expect(judgeQos(podOf(resources(["1", "1"])), [{ pod: "x-worker-0", qos: "Burstable" }])).toMatchObject({
      state: "refused",
      message: "pod x-worker-0 runs as Burstable",
    });
  });
});

describe("machines and quotas (T7, T17)", () => {
  const small = { name: "e2-standard-2", cpu: "1934m", memory: "6Gi", disks: [{ type: "pd-balanced", gb: 100 }] };
  const large = { name: "e2-standard-4", cpu: "3920m", memory: "13Gi", disks: [{ type: "pd-balanced", gb: 100 }] };
  const sizing = (more: object = {}) => sizingSchema.parse({ machines: [large, small], ...more });
  const plans = [planOf({ role: "coordinator" }), planOf({ replicas: 2 })];

  test("after the system's tax 434m are free of two cores: the next larger machine is the smallest that fits", () => {
    expect(smallestThatFits(plans, sizing())?.name).toBe("e2-standard-4");
    expect(judgeFit(plans, sizing())).toEqual({
      state: "warning",
      message:
        "e2-standard-4 is the smallest that fits: 2420m of its 3920m are free after the system's 1500m (38 %); e2-standard-2: the coordinator asks for 1000m where 434m are free",
      todo: "keep the pods off the smaller ones",
    });
  });
  test("where none fits it is refused, and where none is declared held", () => {
    expect(judgeFit(plans, sizing({ machines: [small] }))).toMatchObject({
      state: "refused",
      message: "e2-standard-2: the coordinator asks for 1000m where 434m are free",
    });
    expect(judgeFit(plans, sizingSchema.parse({})).state).toBe("held");
  });
  test("a cluster of three such pods needs two of the larger machine", () => {
    const machine = smallestThatFits(plans, sizing());
    expect(machine && machinesFor(plans, machine, sizing())).toBe(2);
  });

  const quota = (given: object, count = 1, read = new Map<string, number | Error>()) => {
    const all = sizing({ quotas: [{ dimension: "SSD_TOTAL_GB", limit: 250, ...given }] });
    return judgeQuotas(all, smallestThatFits(plans, all), count, read)[0];
  };
  test("SSD_TOTAL_GB 202 of 250 used: a node with a 100 GB pd-balanced disk is refused in advance", () => {
    expect(quota({ used: 202 })).toEqual({
      state: "refused",
      message: "SSD_TOTAL_GB: 202 + 100 = 302 > 250: there is room for 0 of the 1 e2-standard-4 that another cluster needs",
      todo: "raise the quota SSD_TOTAL_GB to 302, or free 52 of it",
    });
  });
  test.each([
    [{ used: 150 }, 1, new Map(), "ok", "SSD_TOTAL_GB: 150 + 100 = 250 ≤ 250"],
    [
      { used: 100 },
      2,
      new Map(),
      "refused",
      "SSD_TOTAL_GB: 100 + 2 × 100 = 300 > 250: there is room for 1 of the 2 e2-standard-4 that another cluster needs",
    ],
    [{}, 1, new Map([["SSD_TOTAL_GB", 50]]), "ok", "SSD_TOTAL_GB: 50 + 100 = 150 ≤ 250"],
    [{}, 1, new Map([["SSD_TOTAL_GB", new Error("503")]]), "held", "SSD_TOTAL_GB: how much is used of 250 is not known (503)"],
    [{}, 1, new Map(), "held", "SSD_TOTAL_GB: how much is used of 250 is not known"],
  ] as const)("%o for %i: a use that was not read is held, never assumed", (given, count, read, state, message) => {
    expect(quota(given, count, new Map<string, number | Error>(read))).toMatchObject({ state, message });
  });
});

describe("memory (T16)", () => {
  test.each([
    [{}, "NONE", "ok", "queries 614 MiB + headroom 614 MiB = 1229 MiB ≤ heap 2048 MiB"],
    [{}, "TASK", "ok", "queries 614 MiB + headroom 614 MiB + task descriptors 307 MiB = 1536 MiB ≤ heap 2048 MiB"],
    [{ "query.max-memory-per-node": "1200MB" }, "NONE", "ok", "queries 1200 MiB + headroom 614 MiB = 1814 MiB ≤ heap 2048 MiB"],
    [
      { "query.max-memory-per-node": "1200MB" },
      "TASK",
      "refused",
      "queries 1200 MiB + headroom 614 MiB + task descriptors 307 MiB = 2122 MiB > heap 2048 MiB",
    ],
  ] as const)("the heap with %o and %s: %s", (config, policy, state, message) => {
    expect(judgeHeap(planOf({ config }), policy)).toMatchObject({ state, message });
  });
  test.each([
    ["4Gi", "ok"],
    ["2400Mi", "warning"],
    ["2Gi", "refused"],
  ] as const)("a heap of 2 GiB in a container of %s: %s", (limit, state) => {
    expect(judgeContainer(planOf({ spec: podOf(resources(["1", "1"], [limit, limit])) })).state).toBe(state);
  });
  test("a container without a limit, and a heap that nobody said", () => {
    expect(judgeContainer(planOf({ spec: podOf() })).state).toBe("refused");
    expect(judgeHeap(planOf({ jvm: [] }), "NONE").state).toBe("held");
    expect(judgeHeap(planOf({ jvm: ["-XX:MaxRAMPercentage=50"] }), "NONE").message).toContain("heap 2048 MiB");
  });
  test.each([
    ["1g", 2 ** 30],
    ["600MB", 600 * 2 ** 20],
    ["128M", 2 ** 27],
    ["1024", 1024],
    ["5 GB", 5 * 2 ** 30],
    ["many", undefined],
  ])("a size of %s", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });
});

describe("times against the notice", () => {
  test.each([
    [
      {},
      30_000,
      "warning",
      "a worker that dies goes unseen for 1m (query.remote-task.max-error-duration of the worker), and a notice is 30s",
    ],
    [
      { "query.remote-task.max-error-duration": "10s", "exchange.max-error-duration": "10s" },
      30_000,
      "ok",
      "a worker that dies goes unseen for 10s (query.remote-task.max-error-duration of the worker), less than the notice of 30s",
    ],
  ] as const)("%o and %i ms: %s", (config, notice, state, message) => {
    expect(judgeErrorDurations([planOf({ config })], notice)).toMatchObject({ state, message });
  });
  const grace = (seconds: number, value?: string) =>
    planOf({
      spec: podOf(resources(["1", "1"]), { terminationGracePeriodSeconds: seconds }),
      config: value === undefined ? {} : { "shutdown.grace-period": value },
    });
  test.each([
    [grace(30), "refused", "a worker's shut-down takes at least 2 × 2m = 4m, and its pod is killed after 30s"],
    [grace(600), "warning", "2 × 2m = 4m do not fit the notice of 2m: what still runs is lost"],
    [grace(600, "10s"), "ok", "2 × 10s = 20s, less than the notice of 2m"],
  ] as const)("the grace is slept twice", (plan, state, message) => {
    expect(judgeGrace(plan, 120_000, "NONE")).toMatchObject({ state, message });
  });
});

describe("connectors", () => {
  const catalog = (name: string, connector: string) =>
    planOf({ files: new Map([[`catalog/${name}.properties`, new Map([["connector.name", connector]])]]) });
  test.each([
    [catalog("lake", "iceberg"), "TASK", "ok", "each can retry: lake"],
    [
      catalog("lab", "tpch"),
      "TASK",
      "warning",
      "lab (tpch): its splits are bound to their node, and a query hangs after the loss of that node",
    ],
    [catalog("logs", "elasticsearch"), "TASK", "warning", "logs (elasticsearch): what writes there fails under a retry policy"],
    [catalog("lab", "tpch"), "NONE", "ok", "no retry policy is declared: a lost worker fails its queries"],
  ] as const)("%#", (plan, policy, state, message) => {
    expect(judgeConnectors([plan], policy)).toMatchObject({ state, message });
  });
});

describe("capability (T2)", () => {
  const schema = {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties: {
          clusterConfig: { type: "object", properties: { faultTolerantExecution: { type: "object" } } },
          configOverrides: { type: "object", additionalProperties: { type: "object" } },
          any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    },
  };
  test.each([
    ["spec.clusterConfig.faultTolerantExecution", "supported"],
    ["spec.clusterConfig.other", "absent"],
    ["spec.configOverrides.exchange-manager.properties", "unsupported"],
    ["spec.any.thing", "unsupported"],
    ["spec.constructor", "absent"],
  ] as const)("%s is %s: a free-form map is no support", (path, capability) => {
    expect(capabilityOf(schema, path.split("."))).toBe(capability);
  });
  test("of a definition that serves another version nothing is known", () => {
    const crd = { spec: { versions: [{ name: "v1", served: true, schema: { openAPIV3Schema: schema } }] } };
    expect(judgeCapability(crd, "v1alpha1", "spec.any").state).toBe("held");
    expect(judgeCapability(crd, "v1", "spec.clusterConfig.faultTolerantExecution").state).toBe("ok");
  });
});
