/** Offsets of a topic and of a consumer group, by the admin client. The library is loaded where there is such a connection. */
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { Admin, ListedOffsetsTopic } from "@platformatic/kafka";
import type { ConnectionOf } from "../connections.ts";
import { demandError } from "../errors.ts";
import type { GroupOnTopic, PartitionOffsets } from "./lag.ts";
import { troubleOf } from "./troubles.ts";

export interface KafkaOffsets {
  /** Three calls, one after the other. Throws troubles. */
  read(wanted: GroupOnTopic): Promise<readonly PartitionOffsets[]>;
  close(): Promise<void>;
}

const CONNECT_LIMIT_MS = 3_000;
const REQUEST_LIMIT_MS = 10_000;
const RETRY_DELAY_MS = 100;
/** More is no topic of jobs. */
const PARTITIONS_MAX = 10_000;
/** What ListOffsets understands as a time. */
const EARLIEST = -2n;
const LATEST = -1n;

export async function openOffsets({ name, brokers, sasl, tls }: ConnectionOf<"kafka">): Promise<KafkaOffsets> {
  const ca = tls?.caFile === undefined ? undefined : await readFile(tls.caFile, "utf8");
  const { Admin } = await import("@platformatic/kafka");
  const admin = new Admin({
    clientId: "relevo",
    bootstrapBrokers: [...brokers],
    connectTimeout: CONNECT_LIMIT_MS,
    requestTimeout: REQUEST_LIMIT_MS,
    // Once, for a connection that the broker has closed meanwhile; the next look comes by itself.
    retries: 1,
    retryDelay: RETRY_DELAY_MS,
    ...(sasl === undefined ? {} : { sasl }),
    ...(tls === undefined ? {} : { tls: ca === undefined ? {} : { ca }, tlsServerName: tls.serverName ?? isNamed(brokers) }),
  });
  const who = `Kafka (connection ${name})`;
  return {
    read: async (wanted) => {
      try {
        return await readOffsets(admin, wanted);
      } catch (error) {
        throw troubleOf(error, who, wanted);
      }
    },
    close: () => admin.close(),
  };
}

/** An address is no name that could be asked for; the certificate is checked against it all the same. */
function isNamed(brokers: readonly string[]): boolean {
  return brokers.every((broker) => isIP(broker.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1")) === 0);
}

async function readOffsets(admin: Admin, { topic, group }: GroupOnTopic): Promise<readonly PartitionOffsets[]> {
  const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true, autocreateTopics: false });
  const partitions = topics.get(topic)?.partitionsCount ?? 0;
  if (partitions === 0) return [];
  if (partitions > PARTITIONS_MAX)
    throw demandError("missing", `topic ${topic} has too many partitions to be asked about`, {
      found: partitions,
      allowed: `${PARTITIONS_MAX}`,
    });
  const indexes = Array.from({ length: partitions }, (_, index) => index);
  // The group before the log: what is committed later than it was read would look as if it were beyond the end.
  const [of] = await admin.listConsumerGroupOffsets({ groups: [{ groupId: group, topics: [{ name: topic, partitionIndexes: indexes }] }] });
  const listed = (timestamp: bigint): Promise<ListedOffsetsTopic[]> =>
    admin.listOffsets({ topics: [{ name: topic, partitions: indexes.map((partitionIndex) => ({ partitionIndex, timestamp })) }] });
  const [starts, ends] = await Promise.all([listed(EARLIEST), listed(LATEST)]);
  const committed = new Map(
    of?.topics
      .find(({ name }) => name === topic)
      ?.partitions.map(({ partitionIndex, committedOffset }) => [partitionIndex, committedOffset]),
  );
  const [startOf, endOf] = [byPartition(starts, topic), byPartition(ends, topic)];
  return indexes.map((partition) => ({
    partition,
    start: startOf.get(partition),
    end: endOf.get(partition),
    committed: committed.get(partition),
  }));
}

/** Without those that answered that they have none. */
function byPartition(listed: readonly ListedOffsetsTopic[], topic: string): ReadonlyMap<number, bigint> {
  const partitions = listed.find(({ name }) => name === topic)?.partitions ?? [];
  return new Map(partitions.filter(({ offset }) => offset >= 0n).map(({ partitionIndex, offset }) => [partitionIndex, offset]));
}
