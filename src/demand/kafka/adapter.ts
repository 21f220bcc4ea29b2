/** Backlog by the lag of a consumer group: what `kafka-consumer-groups --describe` adds up. Kafka does not tell what is in flight, nor how old the oldest is. */
import type { DemandReading } from "../../model/demand.ts";
import type { ConnectionOf } from "../connections.ts";
import { endedBy } from "../ended-by.ts";
import { demandError } from "../errors.ts";
import type { DemandAdapter } from "../port.ts";
import { SharedClients } from "../shared-clients.ts";
import { type GroupOnTopic, lagOf } from "./lag.ts";
import { type KafkaOffsets, openOffsets } from "./offsets.ts";

const clients = new SharedClients<ConnectionOf<"kafka">, KafkaOffsets>(openOffsets, (offsets) => offsets.close());

export const kafkaAdapter: DemandAdapter<"kafka"> = {
  kind: "kafka",
  needs: {
    infrastructure: "Apache Kafka 2.4 or newer, or a broker with its protocol",
    permissions: ["Describe on the topic", "Describe on the consumer group"],
  },
  flowOf: ({ topic, group }) => `kafka/${topic}/${group}`,
  open({ topic, group }, connection) {
    if (connection?.kind !== "kafka") throw demandError("not_available", "a kafka signal needs a connection of kind kafka");
    const lease = clients.lease(connection);
    const readDemand = async (): Promise<DemandReading> => readingOf({ topic, group }, await lease.client());
    return {
      read: (signal) => endedBy(signal, readDemand(), `Kafka (connection ${connection.name})`),
      close: () => lease.release(),
    };
  },
};

async function readingOf(wanted: GroupOnTopic, offsets: KafkaOffsets): Promise<DemandReading> {
  return {
    backlog: lagOf(await offsets.read(wanted), wanted),
    inFlight: null,
    oldestAgeMs: null,
    flow: `kafka/${wanted.topic}/${wanted.group}`,
    valueAt: null,
    sourceNow: null,
  };
}
