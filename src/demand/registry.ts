/** The adapters by kind of signal: one line for each folder. */
import type { SignalKind } from "../model/demand.ts";
import { externalMetricAdapter } from "./external-metric/adapter.ts";
import { kafkaAdapter } from "./kafka/adapter.ts";
import type { DemandAdapter } from "./port.ts";
import { postgresqlAdapter } from "./postgresql/adapter.ts";
import { prometheusAdapter } from "./prometheus/adapter.ts";
import { pubsubAdapter } from "./pubsub/adapter.ts";
import { queueAdapter } from "./queue/adapter.ts";
import { redisListAdapter } from "./redis/list-adapter.ts";
import { redisStreamAdapter } from "./redis/stream-adapter.ts";
import { sqsAdapter } from "./sqs/adapter.ts";
import { trinoAdapter } from "./trino/adapter.ts";

export type DemandAdapters = { readonly [K in SignalKind]?: DemandAdapter<K> };

export const DEMAND_ADAPTERS: DemandAdapters = {
  queue: queueAdapter,
  postgresql: postgresqlAdapter,
  "redis-list": redisListAdapter,
  "redis-stream": redisStreamAdapter,
  prometheus: prometheusAdapter,
  "external-metric": externalMetricAdapter,
  sqs: sqsAdapter,
  kafka: kafkaAdapter,
  pubsub: pubsubAdapter,
  trino: trinoAdapter,
};
