/**
 * KEDA's external scaler contract (`externalscaler.ExternalScaler`), as its documentation defines it (keda.sh, "External Scalers"; KEDA is © its authors, under
 * the Apache License 2.0): the same names, numbers and types, written as the descriptor that protobufjs reads.
 */
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { fromJSON, type ServiceDefinition as LoadedService } from "@grpc/proto-loader";
import { RelevoError } from "../../kernel/errors.ts";

export interface ScaledObjectRef {
  readonly name: string;
  readonly namespace: string;
  /** The trigger's own `metadata`. */
  readonly scalerMetadata: Readonly<Record<string, string>>;
}
export interface IsActiveResponse {
  readonly result: boolean;
}
export interface GetMetricSpecResponse {
  readonly metricSpecs: readonly { readonly metricName: string; readonly targetSize: number; readonly targetSizeFloat: number }[];
}
export interface GetMetricsRequest {
  readonly scaledObjectRef: ScaledObjectRef | null;
  readonly metricName: string;
}
export interface GetMetricsResponse {
  readonly metricValues: readonly { readonly metricName: string; readonly metricValue: number; readonly metricValueFloat: number }[];
}

const field = (type: string, id: number) => ({ type, id });
const many = (type: string, id: number) => ({ rule: "repeated", type, id });
const method = (requestType: string, responseType: string) => ({ requestType, responseType });

const DESCRIPTOR = {
  nested: {
    externalscaler: {
      nested: {
        ExternalScaler: {
          methods: {
            IsActive: method("ScaledObjectRef", "IsActiveResponse"),
            StreamIsActive: { ...method("ScaledObjectRef", "IsActiveResponse"), responseStream: true },
            GetMetricSpec: method("ScaledObjectRef", "GetMetricSpecResponse"),
            GetMetrics: method("GetMetricsRequest", "GetMetricsResponse"),
          },
        },
        ScaledObjectRef: {
          fields: { name: field("string", 1), namespace: field("string", 2), scalerMetadata: { keyType: "string", ...field("string", 3) } },
        },
        IsActiveResponse: { fields: { result: field("bool", 1) } },
        GetMetricSpecResponse: { fields: { metricSpecs: many("MetricSpec", 1) } },
        MetricSpec: { fields: { metricName: field("string", 1), targetSize: field("int64", 2), targetSizeFloat: field("double", 3) } },
        GetMetricsRequest: { fields: { scaledObjectRef: field("ScaledObjectRef", 1), metricName: field("string", 2) } },
        GetMetricsResponse: { fields: { metricValues: many("MetricValue", 1) } },
        MetricValue: { fields: { metricName: field("string", 1), metricValue: field("int64", 2), metricValueFloat: field("double", 3) } },
      },
    },
  },
};

export interface ExternalScalerDefinition extends ServiceDefinition {
  readonly IsActive: MethodDefinition<ScaledObjectRef, IsActiveResponse>;
  readonly StreamIsActive: MethodDefinition<ScaledObjectRef, IsActiveResponse>;
  readonly GetMetricSpec: MethodDefinition<ScaledObjectRef, GetMetricSpecResponse>;
  readonly GetMetrics: MethodDefinition<GetMetricsRequest, GetMetricsResponse>;
}

export function externalScalerService(): ExternalScalerDefinition {
  const service = fromJSON(DESCRIPTOR as Parameters<typeof fromJSON>[0], { keepCase: true, longs: Number, defaults: true })[
    "externalscaler.ExternalScaler"
  ];
  if (service === undefined || "format" in service)
    throw new RelevoError("keda_contract_missing", "The contract of KEDA's scalers has no service.");
  return service as LoadedService as unknown as ExternalScalerDefinition;
}
