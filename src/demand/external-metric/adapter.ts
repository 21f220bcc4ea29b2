/**
 * Backlog by the Kubernetes API of external metrics, which KEDA's metrics server, the Prometheus adapter and the clouds' adapters serve: what any KEDA trigger
 * measures is read by it, under the name and the selector that its HPA would use (`s0-kafka-orders`, `scaledobject.keda.sh/name: orders`).
 *
 * It is always the Pool's own namespace. One value: an HPA would add several up, but nobody knows whose they are.
 */
import { z } from "zod";
import { type Instant, parseInstant } from "../../kernel/clock.ts";
import { parseQuantity } from "../../kernel/units.ts";
import { KubeApiError, type ResourceType } from "../../kube/api.ts";
import type { DemandReading, SignalOf } from "../../model/demand.ts";
import { demandError, unreachable } from "../errors.ts";
import type { DemandAdapter, DemandPorts } from "../port.ts";
import { endedBy } from "../ended-by.ts";

type Spec = SignalOf<"external-metric">;

const GROUP = "external.metrics.k8s.io";
const VERSION = "v1beta1";
const API_SERVICE = `${VERSION}.${GROUP}`;
const API_SERVICES: ResourceType = {
  group: "apiregistration.k8s.io",
  version: "v1",
  kind: "APIService",
  plural: "apiservices",
  namespaced: false,
};
const WHO = `the API of external metrics (APIService ${API_SERVICE})`;

export const externalMetricAdapter: DemandAdapter<"external-metric"> = {
  kind: "external-metric",
  needs: {
    infrastructure: `a metrics adapter behind APIService ${API_SERVICE}: KEDA, prometheus-adapter, or a cloud's`,
    permissions: [`list on * of ${GROUP} in the Pool's namespace`, `get on apiservices ${API_SERVICE}, to say what is missing`],
  },
  flowOf: ({ metric, flowLabel }) => (flowLabel === undefined ? metric : null),
  open: (spec, _connection, { kube, namespace }) => ({
    read: (signal) => endedBy(signal, readDemand(spec, namespace, kube), WHO),
    close: () => Promise.resolve(),
  }),
};

async function readDemand(spec: Spec, namespace: string, kube: DemandPorts["kube"]): Promise<DemandReading> {
  const { metric, selector } = spec;
  if (/^\.{1,2}$/.test(metric)) throw demandError("missing", "this is no name of a metric", { found: metric });
  // The path's last part is the metric's name, which may hold a slash or a bar.
  const type = { group: GROUP, version: VERSION, kind: "ExternalMetricValue", plural: encodeURIComponent(metric), namespaced: true };
  const labelSelector = Object.entries(selector)
    .map(([label, value]) => `${label}=${value}`)
    .join(",");
  const what = `metric ${metric} of namespace ${namespace}${labelSelector === "" ? "" : ` (${labelSelector})`}`;
  try {
    const { items } = await kube.list(type, { namespace, ...(labelSelector === "" ? {} : { labelSelector }) });
    return readingOf(items, spec, what);
  } catch (error) {
    throw await troubleOf(error, what, kube);
  }
}

const valueSchema = z.object({
  metricName: z.string().optional(),
  metricLabels: z.record(z.string(), z.string()).nullish(),
  timestamp: z.string().nullish(),
  value: z.union([z.string(), z.number()]),
});

function readingOf(items: readonly unknown[], { metric, flowLabel }: Spec, what: string): DemandReading {
  const [first, ...others] = items;
  if (first === undefined) throw demandError("missing", `there is no value of ${what}`);
  if (others.length > 0)
    throw demandError("partial", `there are ${items.length} values of ${what}, and only one can be the backlog`, {
      todo: "name one by its labels: selector",
    });
  const parsed = valueSchema.safeParse(first);
  if (!parsed.success) throw demandError("type_changed", `the value of ${what} is none of this API`, { found: first });
  const { value, timestamp, metricLabels } = parsed.data;
  const backlog = parseQuantity(value);
  if (backlog === undefined) throw demandError("not_a_number", `the value of ${what} is no quantity`, { found: value });
  const flow = flowLabel === undefined ? metric : metricLabels?.[flowLabel];
  if (flow === undefined || flow === "")
    throw demandError("missing", `${what} has no label ${flowLabel}: it does not say whose backlog it is`, { found: metricLabels ?? {} });
  // The API server says nothing of the adapter's clock: age is told by how long the same time is seen.
  return { backlog, inFlight: null, oldestAgeMs: null, flow, valueAt: timeOf(timestamp, what), sourceNow: null };
}

function timeOf(timestamp: string | null | undefined, what: string): Instant | null {
  if (timestamp === undefined || timestamp === null) return null;
  const at = parseInstant(timestamp);
  if (at === undefined) throw demandError("type_changed", `the time of ${what} is none`, { found: timestamp });
  return at;
}

async function troubleOf(error: unknown, what: string, kube: DemandPorts["kube"]): Promise<Error> {
  if (!(error instanceof KubeApiError)) return unreachable(WHO, error);
  const found = error.status.message?.slice(0, 400) ?? error.status.reason;
  const { httpCode } = error;
  if (httpCode === 401 || httpCode === 403)
    return demandError("credentials_refused", `the API server does not let us list ${what}`, { found });
  if (httpCode !== 404 && httpCode !== 503)
    return demandError("unreachable", `${WHO} answered with an error`, { found: `${httpCode} ${found}` });
  const state = await stateOfService(kube);
  if (state === "absent")
    return demandError("not_available", `no APIService ${API_SERVICE} is registered in this cluster`, {
      todo: "install KEDA, or the metrics adapter that serves this metric",
    });
  if (typeof state === "object") return demandError("unreachable", `APIService ${API_SERVICE} is not available`, { found: state.message });
  return httpCode === 404
    ? demandError("missing", `${WHO} knows no ${what}`, { found })
    : demandError("unreachable", `${WHO} answered with an error`, { found: `503 ${found}` });
}

const serviceSchema = z.object({
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string(), message: z.string().optional() })) }),
});

/** `unknown`: we may not look, or it says nothing. */
async function stateOfService(kube: DemandPorts["kube"]): Promise<"absent" | "available" | "unknown" | { readonly message: string }> {
  try {
    const parsed = serviceSchema.safeParse(await kube.get({ type: API_SERVICES, name: API_SERVICE }));
    const available = parsed.data?.status.conditions.find(({ type }) => type === "Available");
    if (available === undefined) return "unknown";
    return available.status === "True" ? "available" : { message: available.message ?? available.status };
  } catch (error) {
    return error instanceof KubeApiError && error.httpCode === 404 ? "absent" : "unknown";
  }
}
