/** The adapter over an API server that answers as the test says; the real one is asked in test/demand/external-metric.long.test.ts. */
import { expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { systemClock } from "../../kernel/system.ts";
import { KubeApiError, type KubeApi, type KubeObject } from "../../kube/api.ts";
import { type SignalOf, signalSchema } from "../../model/demand.ts";
import type { DemandSource } from "../port.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { externalMetricAdapter } from "./adapter.ts";

interface World {
  /** What `list` answers or throws. */
  readonly list?: unknown;
  /** What `get` of the APIService answers or throws. */
  readonly service?: unknown;
}

const asked: unknown[] = [];

function sourceOf(spec: Partial<SignalOf<"external-metric">>, { list, service }: World): DemandSource {
  const answer = (value: unknown): Promise<never> => (value instanceof Error ? Promise.reject(value) : Promise.resolve(value as never));
  const kube: Pick<KubeApi, "get" | "list"> = {
    get: () => answer(service),
    list: (type, options) => {
      asked.push({ plural: type.plural, ...options });
      return list === "never" ? new Promise(() => {}) : answer(list);
    },
  };
  return externalMetricAdapter.open(
    signalSchema.parse({ kind: "external-metric", metric: "s0-kafka-orders", ...spec }) as SignalOf<"external-metric">,
    undefined,
    { clock: systemClock, kube, namespace: "shop" },
  );
}

const listOf = (...items: readonly unknown[]): unknown => ({ resourceVersion: "", items });
const valueOf = (value: unknown, over: object = {}): unknown => ({
  apiVersion: "external.metrics.k8s.io/v1beta1",
  kind: "ExternalMetricValue",
  metricName: "s0-kafka-orders",
  metricLabels: null,
  timestamp: "2026-12-01T10:00:00Z",
  value,
  ...over,
});
const serviceWith = (status: string, message: string): KubeObject => ({
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name: "v1beta1.external.metrics.k8s.io", uid: "u", resourceVersion: "1", creationTimestamp: "2026-12-01T10:00:00Z" },
  status: { conditions: [{ type: "Available", status, message }] },
});
const refusal = (code: number, message: string): KubeApiError => new KubeApiError({ code, message }, "GET");

test("one value is the backlog; without a label to name it, the metric's name is the flow (K1)", async () => {
  asked.length = 0;
  const spec = { selector: { "scaledobject.keda.sh/name": "orders", tier: "gold" } };
  expect(await sourceOf(spec, { list: listOf(valueOf("42500m")) }).read(within(10_000))).toEqual({
    backlog: 42.5,
    inFlight: null,
    oldestAgeMs: null,
    flow: "s0-kafka-orders",
    valueAt: Date.parse("2026-12-01T10:00:00Z"),
    sourceNow: null,
  });
  expect(asked).toEqual([{ plural: "s0-kafka-orders", namespace: "shop", labelSelector: "scaledobject.keda.sh/name=orders,tier=gold" }]);
});

test("with a flowLabel the metric's label says whose backlog it is; the sibling's is refused (K1)", async () => {
  const spec = { flowLabel: "queue" };
  const list = listOf(valueOf("7", { metricLabels: { queue: "queue/orders" } }));
  expect(await troubleOf(sourceOf(spec, { list }), { flow: "queue/orders" })).toBe("valid");
  expect(await troubleOf(sourceOf(spec, { list }), { flow: "queue/other" })).toBe("other_flow");
  expect([externalMetricAdapter.flowOf({ kind: "external-metric", metric: "m", selector: {} })]).toEqual(["m"]);
});

test("a metric's name stays one part of the path", async () => {
  asked.length = 0;
  await troubleOf(sourceOf({ metric: "pubsub.googleapis.com|subscription/num_undelivered" }, { list: listOf(valueOf("1")) }));
  expect(asked).toEqual([{ plural: "pubsub.googleapis.com%7Csubscription%2Fnum_undelivered", namespace: "shop" }]);
  expect(await troubleOf(sourceOf({ metric: ".." }, { list: listOf(valueOf("1")) }))).toBe("missing");
});

test.each<[name: string, list: unknown, trouble: string]>([
  ["0", listOf(valueOf("0")), "valid"],
  ["a number that is no text", listOf(valueOf(12)), "valid"],
  ["1k", listOf(valueOf("1k")), "valid"],
  ["-1", listOf(valueOf("-1")), "negative"],
  ["more than can be", listOf(valueOf("1000000E")), "infinite"],
  ["no quantity", listOf(valueOf("many")), "not_a_number"],
  ["empty text", listOf(valueOf("")), "not_a_number"],
  ["null", listOf(valueOf(null)), "type_changed"],
  ["no value field", listOf({ metricName: "s0-kafka-orders" }), "type_changed"],
  ["a value that is null", listOf(null), "type_changed"],
  ["no value", listOf(), "missing"],
  ["several values", listOf(valueOf("1"), valueOf("2")), "partial"],
  ["a time that is none", listOf(valueOf("1", { timestamp: "yesterday" })), "type_changed"],
  ["no time", listOf(valueOf("1", { timestamp: null })), "valid"],
  ["a list without items", { resourceVersion: "" }, "unreachable"],
])("%s is judged for what it is, and is no zero (K11)", async (_, list, trouble) => {
  expect(await troubleOf(sourceOf({}, { list }))).toBe(trouble);
});

test.each<[name: string, world: World, sentence: string]>([
  [
    "a cluster without the API",
    { list: refusal(404, "404 page not found"), service: refusal(404, "not found") },
    "not_available: no APIService v1beta1.external.metrics.k8s.io is registered in this cluster",
  ],
  [
    "an adapter that is down",
    { list: refusal(503, "service unavailable"), service: serviceWith("False", "no endpoints for keda-operator-metrics-apiserver") },
    "unreachable: APIService v1beta1.external.metrics.k8s.io is not available: no endpoints for keda-operator-metrics-apiserver",
  ],
  [
    "a metric that it does not know",
    { list: refusal(404, "no such metric"), service: serviceWith("True", "all checks passed") },
    "missing: the API of external metrics (APIService v1beta1.external.metrics.k8s.io) knows no metric s0-kafka-orders of namespace shop: no such metric",
  ],
  [
    "a 404 where APIServices may not be looked at",
    { list: refusal(404, "404 page not found"), service: refusal(403, "no") },
    "missing: the API of external metrics (APIService v1beta1.external.metrics.k8s.io) knows no metric s0-kafka-orders of namespace shop: 404 page not found",
  ],
  [
    "a refusal",
    { list: refusal(403, "relevo cannot list resource s0-kafka-orders") },
    "credentials_refused: the API server does not let us list metric s0-kafka-orders of namespace shop: relevo cannot list resource s0-kafka-orders",
  ],
  [
    "an error of the scaler behind it",
    { list: refusal(500, "error when getting metric") },
    "unreachable: the API of external metrics (APIService v1beta1.external.metrics.k8s.io) answered with an error: 500 error when getting metric",
  ],
  [
    "an API server that is away",
    { list: new RelevoError("kube_unreachable", "the connection to the API server broke", { class: "retryable" }) },
    "unreachable: the API of external metrics (APIService v1beta1.external.metrics.k8s.io) cannot be reached: the connection to the API server broke",
  ],
])("%s is said by the name of what is missing (K2)", async (_, world, sentence) => {
  expect(await look(sourceOf({}, world))).toBe(sentence);
});

test("an API server that does not answer is given up with the signal", async () => {
  expect(await look(sourceOf({}, { list: "never" }), {}, within(30))).toBe(
    "unreachable: the API of external metrics (APIService v1beta1.external.metrics.k8s.io) did not answer in time",
  );
});

test("an adapter whose clock is five minutes off is believed while its values get newer, and is stale when the same one is seen too long (K11)", async () => {
  const source = sourceOf({}, { list: listOf(valueOf("3", { timestamp: "2026-12-01T10:05:00Z" })) });
  const first = await look(source, { at: 0 });
  if (typeof first === "string") throw new Error(first);
  expect(await troubleOf(source, { at: 59_000, former: { reading: first, firstSeen: 0 } })).toBe("valid");
  expect(await troubleOf(source, { at: 61_000, former: { reading: first, firstSeen: 0 } })).toBe("stale");
});
