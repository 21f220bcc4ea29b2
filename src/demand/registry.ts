/** The adapters by kind of signal: one line for each folder. */
import type { SignalKind } from "../model/demand.ts";
import { externalMetricAdapter } from "./external-metric/adapter.ts";
import type { DemandAdapter } from "./port.ts";
import { prometheusAdapter } from "./prometheus/adapter.ts";
import { sqsAdapter } from "./sqs/adapter.ts";

export type DemandAdapters = { readonly [K in SignalKind]?: DemandAdapter<K> };

export const DEMAND_ADAPTERS: DemandAdapters = {
  prometheus: prometheusAdapter,
  "external-metric": externalMetricAdapter,
  sqs: sqsAdapter,
};
