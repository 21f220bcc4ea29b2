import { expect, test } from "vitest";
import type { KubeObject } from "../../kube/api.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { poolSchema } from "../../model/pool.ts";
import { fakeKube } from "./testing/fake-kube.ts";
import type { PodSight, ServerProbe } from "./ports.ts";
import { proveEffect } from "./prove.ts";

const STARTED = Date.parse("2030-01-01T10:00:00Z");
const NEWER = STARTED + 60_000;

const CONFIG = "coordinator=true\nquery.max-memory=600MB\nretry-policy=TASK\n";

function document(data: Readonly<Record<string, string>>, retryPolicy = "TASK") {
  const pod = (name: string) => ({
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        containers: [{ name: "trino", image: "trino", volumeMounts: [{ name: "etc", mountPath: "/etc/trino" }] }],
        volumes: [{ name: "etc", configMap: { name: "$(relevo.instance)-etc" } }],
      },
    },
  });
  return poolSchema.parse({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "lake" },
    spec: {
      driver: "trino",
      size: { desired: 1 },
      trino: { retryPolicy },
      blueprint: {
        objects: [
          { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "$(relevo.instance)-etc" }, data },
          { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" }, spec: pod("c-$(relevo.instance)") },
        ],
      },
    },
  });
}

interface Situation {
  /** What stands in the API, where it is not what is declared. */
  readonly live?: Readonly<Record<string, string>>;
  /** Null: nobody sees into the pod. */
  readonly files?: Readonly<Record<string, string>> | null;
  readonly changedAt?: number;
  readonly commandLine?: readonly string[];
  readonly probe?: Partial<ServerProbe>;
}

const PROBE: ServerProbe = {
  session: async () => new Map([["query_max_memory", { value: "600MB", byDefault: "600MB" }]]),
  retryPolicy: async () => "TASK",
  exchange: async (location) => ({ says: "happened", where: `3 files at ${location}` }),
  mayManage: async () => true,
  close: async () => undefined,
};

async function prove(data: Readonly<Record<string, string>>, situation: Situation = {}, blueprintHash = "now") {
  const { live = data, files = data, changedAt = STARTED - 1_000, commandLine = ["java"], probe } = situation;
  const pool = document(data);
  const labels = { "relevo.dev/instance": "lake-a" };
  const [, lead] = pool.spec.blueprint.objects;
  const object = (kind: string, name: string, more: object): KubeObject => ({
    ...{ apiVersion: "v1", kind, ...more },
    metadata: {
      ...{ name, namespace: "default", uid: `uid-${name}`, resourceVersion: "1", creationTimestamp: "2030-01-01T09:00:00Z" },
      labels,
    },
  });
  const spec = JSON.parse(JSON.stringify(lead?.["spec"]).replaceAll("$(relevo.instance)", "lake-a")) as object;
  const pod = {
    ...object("Pod", "lake-a-1", { spec: { containers: [{ name: "trino" }] } }),
    status: {
      ...{ phase: "Running", podIP: "127.0.0.9" },
      containerStatuses: [{ name: "trino", ready: true, restartCount: 0, state: { running: { startedAt: "2030-01-01T10:00:00Z" } } }],
    },
  };
  const kube = fakeKube([
    object("ConfigMap", "lake-a-etc", { data: live }),
    object("Deployment", "lake-a", { spec }),
    { ...pod, metadata: { ...pod.metadata, labels: { ...labels, app: "c-lake-a" } } },
  ]);
  const sight: PodSight = {
    blind: "nobody looks",
    look: async () =>
      files === null
        ? null
        : {
            ...{ commandLine, startedAt: STARTED },
            readFile: async (path) => (files[path] === undefined ? undefined : { text: files[path], changedAt, where: `etc/${path}` }),
          },
  };
  return await proveEffect(
    { document: pool, blueprintHash, instances: [{ id: "lake-a", blueprintHash: "now", site: "local" }] },
    { kube, sight, probes: () => ({ ...PROBE, ...probe }) },
  );
}

const states = async (...given: Parameters<typeof prove>) => (await prove(...given)).rows.map(({ name, state }) => `${name} ${state}`);

test("each key is told with each hop and the proof that fits its kind (T1)", async () => {
  const { rows } = await prove({ "config.properties": "retry-policy=TASK\n" });
  expect(rows).toEqual([
    {
      ...{ instance: "lake-a", pod: "lake-a-1", kind: "config", role: "coordinator", file: "config.properties", name: "retry-policy" },
      hops: [
        { hop: "declared", value: "TASK", where: "the Pool's blueprint" },
        { hop: "rendered", value: "TASK", where: "ConfigMap lake-a-etc" },
        { hop: "delivered", value: "TASK", where: "etc/config.properties" },
        { hop: "effective", value: "TASK", where: "as the engine took it for a query of ours" },
      ],
      ...{ state: "effective", message: "the process has it: as the engine took it for a query of ours", todo: null },
    },
  ]);
});

test("a file that changed after the process began is stale, whatever its ConfigMap says (T15)", async () => {
  expect(await states({ "config.properties": CONFIG }, { changedAt: NEWER })).toEqual([
    "coordinator stale",
    "query.max-memory stale",
    "retry-policy stale",
  ]);
});

test("a ConfigMap that changed and a pod that did not: stale (T15)", async () => {
  const files = { "config.properties": CONFIG.replace("600MB", "300MB") };
  expect(await states({ "config.properties": CONFIG }, { files })).toEqual([
    "coordinator effective",
    "query.max-memory stale",
    "retry-policy effective",
  ]);
});

test("an instance that was made from an earlier blueprint is stale (T15)", async () => {
  const live = { "config.properties": CONFIG.replace("600MB", "300MB") };
  const seen = await states({ "config.properties": CONFIG }, { live, files: live }, "later");
  expect(seen).toContain("query.max-memory stale");
});

test("where nobody sees into a pod only what the process says itself is effective (I24)", async () => {
  expect(await states({ "config.properties": CONFIG }, { files: null })).toEqual([
    "coordinator rendered",
    "query.max-memory effective",
    "retry-policy effective",
  ]);
});

test("each kind of key by its own proof; without it the file alone is delivered (T1)", async () => {
  const data = {
    "config.properties": "retry-policy=TASK\n",
    "jvm.config": "-Xmx1g\n",
    "exchange-manager.properties": "exchange.base-directories=/exchange\n",
    "access-control.properties": "access-control.name=file\n",
    "session-property-rules.json": '[{"sessionProperties":{"query_max_memory":"600MB"}}]',
  };
  expect(await states(data, { commandLine: ["java", "-Xmx1g"] })).toEqual([
    "retry-policy effective",
    "-Xmx effective",
    "exchange.base-directories effective",
    "access-control.name effective",
    "query_max_memory effective",
  ]);
  const silent = async (): Promise<never> => {
    throw new RelevoError("instance_unreachable", "Nobody answers.");
  };
  const exchange = async () => ({ says: "nothing" as const, where: "it cannot be listed from here" });
  const probe = { session: silent, retryPolicy: silent, mayManage: silent, exchange };
  expect(await states(data, { commandLine: [], probe })).toEqual([
    "retry-policy effective",
    "-Xmx dropped",
    "exchange.base-directories delivered",
    "access-control.name delivered",
    "query_max_memory delivered",
  ]);
});

test("an engine that took another policy than the document's is believed", async () => {
  expect(await states({ "config.properties": CONFIG }, { probe: { retryPolicy: async () => "NONE" } })).toContain("retry-policy dropped");
});

test("a policy that only the document names is declared and nothing more", async () => {
  expect(await states({ "config.properties": "coordinator=true" })).toEqual(["coordinator effective", "retry-policy declared"]);
});
