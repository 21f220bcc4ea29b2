/** ScaledObjects as KEDA's documentation shows them, and what becomes of each. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { connectionsSchema } from "../demand/connections.ts";
import { poolSchema } from "../model/pool.ts";
import type { ImportedPool } from "./keda/import-scaled-object.ts";
import { parsePoolFile } from "./documents.ts";
import { runCli } from "./testing/run-cli.ts";

const FIXTURES = join(import.meta.dirname, "keda", "fixtures");

async function imported(file: string, ...more: readonly string[]): Promise<ImportedPool> {
  const { out, code, err } = await runCli(["import", "keda", "-f", join(FIXTURES, `${file}.yaml`), "-o", "json", ...more]);
  if (code !== 0) throw new Error(err);
  const [pool] = (JSON.parse(out) as { imported: readonly ImportedPool[] }).imported;
  if (pool === undefined) throw new Error("nothing was imported");
  return pool;
}

const brief = ({ pool, connection }: ImportedPool) => {
  const { spec } = pool as { spec: { size: object; target: object; worker: { flow: string }; scale: object } };
  return { size: spec.size, target: spec.target, flow: spec.worker.flow, scale: spec.scale, connection };
};
const told = ({ differences }: ImportedPool) => differences.map(({ level, field }) => `${level} ${field}`);

test("a query of PostgreSQL: its answer is the backlog, its password a variable of the controller, activation and cool-down are told", async () => {
  const pool = await imported("postgresql");
  expect(brief(pool)).toEqual({
    size: { desired: 1, floor: 0, max: 12 },
    target: { kind: "Deployment", name: "invoice-worker" },
    flow: "scaledobject/billing/invoices",
    scale: {
      signal: {
        kind: "postgresql",
        connection: "invoices",
        query: "SELECT (SELECT count(*) FROM invoices WHERE state = 'open') AS backlog, 'scaledobject/billing/invoices' AS flow",
      },
      ...{ target: 20, pollEvery: "10s", down: { window: "600s" }, fallback: { after: "30s", instances: 4 } },
    },
    connection: {
      ...{ name: "invoices", kind: "postgresql" },
      url: "postgresql://keda:${env:INVOICES_PASSWORD}@db.billing.svc:5432/invoices?sslmode=require",
    },
  });
  expect(told(pool)).toEqual([
    "changed spec.cooldownPeriod",
    "changed spec.fallback",
    "changed spec.triggers[0].metadata.activationTargetQueryValue",
    "todo spec.triggers[0].metadata.query",
    "todo spec.triggers[0].metadata.password",
  ]);
});

test("a Redis list that is paused stays paused", async () => {
  const pool = await imported("redis");
  expect(brief(pool)).toEqual({
    size: { desired: 1, floor: 1, max: 9 },
    target: { kind: "Deployment", name: "thumbnails" },
    flow: "redis/thumbnails",
    scale: {
      signal: { kind: "redis-list", connection: "thumbnails", list: "thumbnails" },
      ...{ target: 8, pollEvery: "30s", down: { window: "300s" }, pausedAt: 3 },
    },
    connection: { name: "thumbnails", kind: "redis", url: "rediss://:${env:THUMBNAILS_PASSWORD}@redis.shop.svc:6379/2", tls: {} },
  });
});

test("a Redis stream with its group; an autoscaler that would reset the count is to be told not to", async () => {
  const pool = await imported("redis-streams");
  expect(brief(pool)).toMatchObject({
    ...{ flow: "redis/events/readers", target: { kind: "StatefulSet", name: "events" } },
    scale: { signal: { kind: "redis-stream", stream: "events", group: "readers" }, target: 10 },
    connection: { url: "redis://redis:6379/0" },
  });
  expect(told(pool)).toContain("todo spec.advanced.restoreToOriginalReplicaCount");
  expect(told(pool)).toContain("changed spec.triggers[0].metadata.pendingEntriesCount");
});

test("a Kafka group with its login; a second trigger is left out aloud, and can be asked for", async () => {
  const pool = await imported("kafka");
  expect(brief(pool)).toEqual({
    size: { desired: 1, floor: 1, max: 24 },
    target: { kind: "Deployment", name: "orders" },
    flow: "kafka/orders/order-workers",
    scale: {
      signal: { kind: "kafka", connection: "orders", topic: "orders", group: "order-workers" },
      ...{ target: 50, pollEvery: "5s", down: { window: "120s" } },
    },
    connection: {
      ...{ name: "orders", kind: "kafka", brokers: ["k1:9092", "k2:9092"], tls: {} },
      sasl: { mechanism: "SCRAM-SHA-512", username: "${env:ORDERS_USERNAME}", password: "${env:ORDERS_PASSWORD}" },
    },
  });
  expect(told(pool)).toEqual([
    "changed spec.triggers[1]",
    "changed spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.policies",
    "note spec.fallback",
    "changed spec.triggers[0].metadata.allowIdleConsumers",
    "todo spec.triggers[0].metadata.username",
    "todo spec.triggers[0].metadata.password",
  ]);
  await expect(imported("kafka", "--trigger", "1")).rejects.toThrow("no trigger that looks at work that waits");
});

test("an SQS queue whose KEDA asks as the pod: the controller asks as itself", async () => {
  const pool = await imported("aws-sqs-queue");
  expect(brief(pool)).toMatchObject({
    ...{ flow: "sqs/mails", size: { floor: 2, max: 30 }, connection: { name: "mails", kind: "sqs", region: "eu-west-1" } },
    scale: { signal: { kind: "sqs", queue: "mails" }, target: 5 },
  });
  expect(told(pool)).toEqual([
    "changed spec.idleReplicaCount",
    "note spec.fallback",
    "changed spec.triggers[0].metadata.scaleOnInFlight",
    "todo spec.triggers[0].metadata.identityOwner",
  ]);
});

test("a Pub/Sub subscription, and a query of Prometheus whose answer is labelled with its flow", async () => {
  expect(brief(await imported("gcp-pubsub"))).toMatchObject({
    flow: "pubsub/acme/clicks",
    scale: { signal: { kind: "pubsub", project: "acme", subscription: "clicks" }, target: 25 },
    connection: { name: "clicks", kind: "google-monitoring", auth: "metadata" },
  });
  const prometheus = await imported("prometheus");
  expect(brief(prometheus)).toMatchObject({
    flow: "scaledobject/default/renders",
    scale: {
      target: 12.5,
      signal: {
        ...{ kind: "prometheus", flowLabel: "flow" },
        query: 'label_replace(sum(render_queue_depth{queue="hd"}), "flow", "scaledobject/default/renders", "", "")',
      },
    },
    connection: { url: "http://prometheus.monitoring:9090", bearerToken: "${env:RENDERS_BEARERTOKEN}" },
  });
  expect(told(prometheus)).toContain("changed spec.triggers[0].metadata.ignoreNullValues");
  expect(told(prometheus)).toContain("changed spec.triggers[0].metricType");
});

test("what only KEDA reads stays KEDA's metric, and what looks at no backlog is left out", async () => {
  const pool = await imported("rabbitmq");
  expect(brief(pool)).toMatchObject({
    scale: { signal: { kind: "external-metric", metric: "s1-rabbitmq", selector: { "scaledobject.keda.sh/name": "parcels" } } },
    connection: null,
  });
  expect(told(pool).slice(0, 1)).toEqual(["changed spec.triggers[0]"]);
});

describe("whatever is imported", () => {
  const names = readdirSync(FIXTURES).map((file) => file.replace(/\.yaml$/, ""));

  test.each(names)("%s is a valid Pool with a valid connection, as JSON and as the text that relevo apply takes", async (name) => {
    const { pool, connection } = await imported(name);
    const filled = JSON.parse(JSON.stringify(connection).replaceAll(/\$\{env:\w+\}/g, "x")) as unknown;
    expect([
      poolSchema.safeParse(pool).success,
      connectionsSchema.safeParse({ connections: connection === null ? [] : [filled] }).success,
    ]).toEqual([true, true]);
    const { out } = await runCli(["import", "keda", "-f", join(FIXTURES, `${name}.yaml`)]);
    expect(parsePoolFile("imported", out).problems).toEqual([]);
    expect(parsePoolFile("imported", out).documents.map(({ raw }) => raw)).toEqual([pool]);
  });

  test("no secret that stands in the file stands in what is made of it", async () => {
    const text = readFileSync(join(FIXTURES, "redis.yaml"), "utf8").replace(
      "passwordFromEnv: REDIS_PASSWORD",
      'password: "hunter2hunter2"',
    );
    const { out } = await runCli(["import", "keda", "-f", "-"], { stdin: text });
    expect([out.includes("hunter2"), out.includes("${env:THUMBNAILS_PASSWORD}")]).toEqual([false, true]);
  });
});

test.each([
  ["min above max", "minReplicaCount: 1", "minReplicaCount: 99", "a minimum above its maximum"],
  [
    "a target that is no workload",
    "scaleTargetRef: { name: thumbnails }",
    "scaleTargetRef: { apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: x }",
    "what a Pool cannot",
  ],
  ["a ScaledJob", "kind: ScaledObject", "kind: ScaledJob", "ScaledJob makes a Job"],
  ["no triggers", "  triggers:", "  triggers: []\n  more:", "not as KEDA defines it"],
  ["no YAML", "metadata:\n", "metadata: [\n", "is not YAML"],
])("refused: %s", async (_what, from, to, sentence) => {
  const text = readFileSync(join(FIXTURES, "redis.yaml"), "utf8").replace(from, to);
  const { code, err } = await runCli(["import", "keda", "-f", "-"], { stdin: text });
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(sentence) as string });
});

test("a login inside of an address is not copied, and is told (K8)", async () => {
  const head =
    "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: { name: capture }\nspec:\n  scaleTargetRef: { name: capture }\n  triggers:\n";
  const triggers = [
    "    - { type: prometheus, metadata: { serverAddress: 'http://u:hunter2@metrics:9090/a', query: x, threshold: '4' } }\n",
    "    - { type: redis, metadata: { address: 'u:hunter2@cache:6379', listName: jobs } }\n",
    "    - { type: prometheus, metadata: { serverAddress: 'http://u:hun/ter2@metrics:9090/a', query: x, threshold: '4' } }\n",
  ];
  const runs = await Promise.all(triggers.map((trigger) => runCli(["import", "keda", "-f", "-"], { stdin: head + trigger })));
  expect(runs.map(({ code, out }) => [code, /hun\/?ter2|ter2@/.test(out), /(metrics:9090\/a|cache:6379)/.exec(out)?.[0]])).toEqual([
    [0, false, "metrics:9090/a"],
    [0, false, "cache:6379"],
    [0, false, "metrics:9090/a"],
  ]);
  expect(runs[0]?.out).toContain("serverAddress: holds a login, which is not copied");
});
