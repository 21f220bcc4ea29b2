/** The Kafka adapter against a real broker. */
import { Admin, Consumer, type ConsumerOptions, Producer } from "@platformatic/kafka";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type ConnectionOf, connectionSchema } from "../../src/demand/connections.ts";
import { kafkaAdapter } from "../../src/demand/kafka/adapter.ts";
import type { DemandSource } from "../../src/demand/port.ts";
import { look, troubleOf, within } from "../../src/demand/testing/look.ts";
import { systemClock } from "../../src/kernel/system.ts";
import { type SignalOf, signalSchema } from "../../src/model/demand.ts";
import { type Kafka, startKafka } from "./kafka.ts";

let kafka: Kafka;
let admin: Admin;
let producer: Producer;
const open: DemandSource[] = [];

beforeAll(async () => {
  kafka = await startKafka();
  const client = { clientId: "test", bootstrapBrokers: [kafka.broker], retries: 20, retryDelay: 500 };
  admin = new Admin(client);
  // Else what is sent again while a new topic finds its leaders is there twice.
  producer = new Producer({ ...client, idempotent: true });
});
afterAll(async () => {
  await producer?.close();
  await admin?.close();
  await kafka?.stop();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((source) => source.close()));
});

const never = (): never => {
  throw new Error("nobody asks the API server");
};

function sourceOf(spec: Partial<SignalOf<"kafka">>, connection: Partial<ConnectionOf<"kafka">> = {}): DemandSource {
  const source = kafkaAdapter.open(
    signalSchema.parse({ kind: "kafka", connection: "events", topic: "orders", group: "workers", ...spec }) as SignalOf<"kafka">,
    connectionSchema.parse({ kind: "kafka", name: "events", brokers: [kafka.broker], ...connection }) as ConnectionOf<"kafka">,
    { clock: systemClock, kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

const create = (topic: string, partitions = 3): Promise<unknown> => admin.createTopics({ topics: [topic], partitions, replicas: 1 });
/** So many into each partition. */
const send = (topic: string, ...counts: readonly number[]): Promise<unknown> =>
  producer.send({
    messages: counts.flatMap((count, partition) =>
      Array.from({ length: count }, (_, index) => ({ topic, partition, value: Buffer.from(`job ${index}`) })),
    ),
  });
const commit = (topic: string, groupId: string, ...offsets: readonly (number | undefined)[]): Promise<unknown> =>
  admin.alterConsumerGroupOffsets({
    groupId,
    topics: [
      {
        name: topic,
        partitionOffsets: offsets.flatMap((offset, partition) => (offset === undefined ? [] : [{ partition, offset: BigInt(offset) }])),
      },
    ],
  });

test("lag follows what is written and what the group commits, over all partitions (K1)", async () => {
  await create("orders");
  await send("orders", 5, 7, 0);
  const source = sourceOf({});
  expect(await look(source)).toMatch(/^missing: group workers on topic orders has never committed an offset/);
  await commit("orders", "workers", 0, 0, 0);
  expect(await look(source, { flow: "kafka/orders/workers" })).toEqual({
    backlog: 12,
    inFlight: null,
    oldestAgeMs: null,
    flow: "kafka/orders/workers",
    valueAt: null,
    sourceNow: null,
  });
  await commit("orders", "workers", 5, 3, 0);
  await send("orders", 1, 0, 2);
  expect(await source.read(within(10_000))).toMatchObject({ backlog: 7 });
  await commit("orders", "workers", 6, 7, 2);
  expect(await source.read(within(10_000))).toMatchObject({ backlog: 0 });
});

test("a group's own consumer brings it to zero; the sibling group on the same topic is another flow (K1)", async () => {
  await create("captures", 2);
  await send("captures", 10, 10);
  await commit("captures", "sibling", 0, 0);
  const options: ConsumerOptions<Buffer, Buffer, Buffer, Buffer> = {
    groupId: "capture",
    clientId: "test",
    bootstrapBrokers: [kafka.broker],
  };
  const consumer = new Consumer(options);
  const stream = await consumer.consume({ topics: ["captures"], mode: "earliest", autocommit: false });
  let taken = 0;
  for await (const message of stream) {
    await message.commit();
    if (++taken === 20) break;
  }
  await stream.close();
  await consumer.close();
  expect(await sourceOf({ topic: "captures", group: "capture" }).read(within(10_000))).toMatchObject({ backlog: 0 });
  const sibling = sourceOf({ topic: "captures", group: "sibling" });
  expect(await sibling.read(within(10_000))).toMatchObject({ backlog: 20 });
  expect(await troubleOf(sibling, { flow: "kafka/captures/capture" })).toBe("other_flow");
});

test("a new partition that holds messages of which the group knows nothing is half an answer; an empty one is none (K11)", async () => {
  await create("grown", 1);
  await send("grown", 4);
  await commit("grown", "workers", 1);
  await admin.createPartitions({ topics: [{ name: "grown", count: 2, assignments: [{ brokerIds: [1] }] }] });
  const source = sourceOf({ topic: "grown" });
  await expect.poll(() => look(source), { timeout: 10_000 }).toMatchObject({ backlog: 3 });
  await producer.metadata({ topics: ["grown"], forceUpdate: true });
  await send("grown", 0, 2);
  expect(await look(source)).toBe(
    "partial: group workers on topic grown has never committed an offset on some partitions that hold messages: partition 1",
  );
});

test("an offset beyond the log's end is of another log, never a negative that is hidden; a topic that is gone is missing, and so is one made anew", async () => {
  await create("remade", 1);
  await send("remade", 3);
  await commit("remade", "workers", 500);
  const source = sourceOf({ topic: "remade" });
  expect(await look(source)).toMatch(/^type_changed: .*beyond the end of the log.*partition 0: committed 500, end 3$/);
  await commit("remade", "workers", 1);
  expect(await source.read(within(10_000))).toMatchObject({ backlog: 2 });
  await admin.deleteTopics({ topics: ["remade"] });
  await expect
    .poll(() => look(source), { timeout: 10_000 })
    .toMatch(/^missing: Kafka \(connection events\) has no topic remade or no group workers/);
  await create("remade", 1);
  await expect.poll(() => look(source), { timeout: 10_000 }).toMatch(/^missing: group workers on topic remade has never committed/);
});

test("what retention took is not waiting any more", async () => {
  await create("short", 1);
  await send("short", 10);
  await commit("short", "workers", 2);
  await admin.deleteRecords({ topics: [{ name: "short", partitions: [{ partition: 0, offset: 6n }] }] });
  expect(await sourceOf({ topic: "short" }).read(within(10_000))).toMatchObject({ backlog: 4 });
});

test("Describe on the topic and the group is all that it needs; a wrong password, a missing right and a stranger's certificate are told apart (K8)", async () => {
  await create("guarded", 1);
  await send("guarded", 2);
  await commit("guarded", "workers", 1);
  const secure = (mechanism: "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512", password = "secret"): Partial<ConnectionOf<"kafka">> => ({
    brokers: [kafka.saslBroker],
    sasl: { mechanism, username: "relevo", password },
    tls: { caFile: kafka.caFile },
  });
  const guarded = { topic: "guarded" };
  expect(await look(sourceOf(guarded, secure("SCRAM-SHA-512")))).toBe(
    "credentials_refused: Kafka (connection events) refuses to tell of topic guarded and group workers: TOPIC_AUTHORIZATION_FAILED",
  );
  const grant = (resourceType: number, resourceName: string) => ({
    resourceType,
    resourceName,
    resourcePatternType: 3,
    principal: "User:relevo",
    host: "*",
    operation: 8,
    permissionType: 3,
  });
  await admin.createAcls({ creations: [grant(2, "guarded")] as never });
  await expect
    .poll(() => look(sourceOf(guarded, secure("SCRAM-SHA-512"))), { timeout: 10_000 })
    .toMatch(/^credentials_refused: .*GROUP_AUTHORIZATION_FAILED$/);
  await admin.createAcls({ creations: [grant(3, "workers")] as never });
  for (const mechanism of ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] as const)
    await expect.poll(() => look(sourceOf(guarded, secure(mechanism))), { timeout: 10_000 }).toMatchObject({ backlog: 1 });
  expect(await troubleOf(sourceOf(guarded, secure("SCRAM-SHA-256", "wrong")))).toBe("credentials_refused");
  expect(await troubleOf(sourceOf(guarded, secure("PLAIN", "wrong")))).toBe("credentials_refused");
  expect(await look(sourceOf(guarded, { ...secure("PLAIN"), tls: {} }))).toMatch(/^unreachable: .*self-signed certificate/);
});

test("a broker that hangs is given up with the signal, one that is killed is unreachable, and both are read again by themselves", async () => {
  await create("steady", 1);
  await send("steady", 3);
  await commit("steady", "workers", 0);
  const source = sourceOf({ topic: "steady" });
  expect(await source.read(within(10_000))).toMatchObject({ backlog: 3 });
  kafka.pause();
  expect(await look(source, {}, within(300))).toBe("unreachable: Kafka (connection events) did not answer in time");
  kafka.resume();
  await expect.poll(() => look(source), { timeout: 30_000 }).toMatchObject({ backlog: 3 });
  await kafka.crash();
  expect(await troubleOf(source)).toBe("unreachable");
  await kafka.start();
  await expect.poll(() => look(source), { timeout: 30_000 }).toMatchObject({ backlog: 3 });
});
