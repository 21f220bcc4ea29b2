/** The adapter against a server that answers as Prometheus does, and as it should not. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { type SignalOf, signalSchema } from "../../model/demand.ts";
import { type ConnectionOf, connectionSchema } from "../connections.ts";
import type { DemandSource } from "../port.ts";
import { type Answer, HTTP_FAULTS, type HttpPeer, startHttpPeer } from "../testing/http-peer.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { prometheusAdapter } from "./adapter.ts";

const AT = 1_764_547_200;
const MINUTES_5 = 300_000;
const open: DemandSource[] = [];
let server: HttpPeer;

beforeEach(async () => {
  server = await startHttpPeer();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((source) => source.close()));
  await server.close();
});

function sourceOf(spec: Partial<SignalOf<"prometheus">> = {}, connection: Partial<ConnectionOf<"prometheus">> = {}): DemandSource {
  const source = prometheusAdapter.open(
    signalSchema.parse({
      kind: "prometheus",
      connection: "metrics",
      query: "backlog",
      flowLabel: "queue",
      ...spec,
    }) as SignalOf<"prometheus">,
    connectionSchema.parse({ kind: "prometheus", name: "metrics", url: server.url, ...connection }),
    { clock: systemClock, kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

const never = (): never => {
  throw new Error("nobody asks the API server");
};

const vector = (...samples: readonly unknown[]): unknown => ({ status: "success", data: { resultType: "vector", result: samples } });
const sample = (value: unknown, labels: Readonly<Record<string, string>> = { queue: "queue/orders" }, at = AT): unknown => ({
  metric: labels,
  value: [at, value],
});
/** `timestamp()` is answered with `taken`. */
const answers = (body: unknown, { taken = AT, date = AT }: { taken?: number; date?: number } = {}) => {
  const headers = { date: new Date(date * 1_000).toUTCString() };
  return (path: string): Answer => ({ headers, body: path.includes("timestamp(") ? vector(sample(String(taken), {})) : body });
};

test("a sample is the backlog of the flow that its label names, with its own time and the server's clock (K1)", async () => {
  server.answer(answers(vector(sample("4.2e1")), { taken: AT - 15, date: AT + 1 }));
  expect(await sourceOf({}, { bearerToken: "secret" }).read(within(10_000))).toEqual({
    backlog: 42,
    inFlight: null,
    oldestAgeMs: null,
    flow: "queue/orders",
    valueAt: (AT - 15) * 1_000,
    sourceNow: (AT + 1) * 1_000,
  });
  expect(server.asked.toSorted()).toEqual(["GET /api/v1/query?query=backlog", "GET /api/v1/query?query=timestamp(\nbacklog\n)"]);
  expect(server.headers.map(({ authorization }) => authorization)).toEqual(["Bearer secret", "Bearer secret"]);
});

test("an ageQuery tells the age of the oldest, in seconds; without a sample it is not known", async () => {
  const ages: Readonly<Record<string, unknown>> = { known: vector(sample("90.5", {})), unknown: vector() };
  const age = async (ageQuery: string): Promise<unknown> => {
    server.answer((path) => (path.includes(`query=${ageQuery}`) ? { body: ages[ageQuery] } : answers(vector(sample("1")))(path)));
    return (await sourceOf({ ageQuery }).read(within(10_000))).oldestAgeMs;
  };
  expect([await age("known"), await age("unknown")]).toEqual([90_500, null]);
});

test.each<[name: string, body: unknown, trouble: string]>([
  ["NaN", vector(sample("NaN")), "not_a_number"],
  ["+Inf", vector(sample("+Inf")), "infinite"],
  ["-Inf", vector(sample("-Inf")), "infinite"],
  ["-1", vector(sample("-1")), "negative"],
  ["0", vector(sample("0")), "valid"],
  ["a null", vector(sample(null)), "not_a_number"],
  ["a number that is no text", vector(sample(5)), "not_a_number"],
  ["empty text", vector(sample("")), "not_a_number"],
  ["a word", vector(sample("many")), "not_a_number"],
  ["a hexadecimal number", vector(sample("0x10")), "not_a_number"],
  ["more than can be", vector(sample("1e300")), "infinite"],
  ["no sample", vector(), "missing"],
  ["no label", vector(sample("5", {})), "missing"],
  ["an empty label", vector(sample("5", { queue: "" })), "missing"],
  ["several samples", vector(sample("5"), sample("6", { queue: "queue/other" })), "partial"],
  ["a scalar", { status: "success", data: { resultType: "scalar", result: [AT, "5"] } }, "type_changed"],
  ["a matrix", { status: "success", data: { resultType: "matrix", result: [{ metric: {}, values: [[AT, "5"]] }] } }, "type_changed"],
  ["a histogram", vector({ metric: { queue: "queue/orders" }, histogram: [AT, {}] }), "type_changed"],
  ["an error with status 200", { status: "error", error: "what" }, "type_changed"],
  ["warnings", { ...(vector(sample("5")) as object), warnings: ["1 of 3 stores did not answer"] }, "partial"],
  ["isPartial", { ...(vector(sample("5")) as object), isPartial: true }, "partial"],
  ["the sibling's flow", vector(sample("5", { queue: "queue/other" })), "other_flow"],
])("%s is judged for what it is, and is no zero (K11)", async (_, body, trouble) => {
  server.answer(answers(body));
  expect(await troubleOf(sourceOf(), { flow: "queue/orders" })).toBe(trouble);
});

test.each(HTTP_FAULTS)("%s is a trouble (K11)", async (_, answer, trouble) => {
  server.answer(answer);
  expect(await troubleOf(sourceOf())).toBe(trouble);
});

test("a server that does not answer is given up with the signal, and one that is not there is said to be so", async () => {
  for (const how of ["silent", "stuck"] as const) {
    server.answer({ how, body: { status: "success" } });
    expect(await look(sourceOf(), {}, within(50))).toBe("unreachable: Prometheus (connection metrics) did not answer in time");
  }
  expect(await look(sourceOf({}, { url: "http://127.0.0.1:1" }))).toBe(
    "unreachable: Prometheus (connection metrics) cannot be reached: connect ECONNREFUSED 127.0.0.1:1",
  );
});

test("a server whose clock is five minutes off is believed while its samples are new by its own clock (K11)", async () => {
  for (const off of [MINUTES_5, -MINUTES_5]) {
    const now = Math.floor((systemClock.now() + off) / 1_000);
    server.answer(answers(vector(sample("7", { queue: "queue/orders" }, now)), { taken: now - 10, date: now }));
    expect(await troubleOf(sourceOf())).toBe("valid");
    server.answer(answers(vector(sample("7", { queue: "queue/orders" }, now)), { taken: now - 90, date: now }));
    expect(await troubleOf(sourceOf())).toBe("stale");
  }
});

test("an ageQuery about another flow is refused (K1)", async () => {
  server.answer((path) => answers(path.includes("query=age") ? vector(sample("3", { queue: "queue/other" })) : vector(sample("1")))(path));
  expect(await look(sourceOf({ ageQuery: "age" }))).toBe("other_flow: the ageQuery is about queue/other, the query about queue/orders");
});

test("a CA file that is not there is said at the look, and found by a later one", async () => {
  expect(await look(sourceOf({}, { tls: { caFile: "/nowhere/ca.pem" } }))).toBe(
    "unreachable: ENOENT: no such file or directory, open '/nowhere/ca.pem'",
  );
});
