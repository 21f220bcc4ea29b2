/** The adapter against a server that answers as Cloud Monitoring does, and as it should not. */
import { generateKeyPairSync, verify } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { formatInstant } from "../../kernel/clock.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { type SignalOf, signalSchema } from "../../model/demand.ts";
import { type ConnectionOf, connectionSchema } from "../connections.ts";
import type { DemandSource } from "../port.ts";
import { type Answer, HTTP_FAULTS, type HttpPeer, startHttpPeer } from "../testing/http-peer.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { pubsubAdapter } from "./adapter.ts";

const NOW = Date.parse("2026-12-01T10:00:00Z");
const open: DemandSource[] = [];
const folders: string[] = [];
let server: HttpPeer;
const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const private_key = privateKey.export({ type: "pkcs8", format: "pem" });

beforeEach(async () => {
  server = await startHttpPeer();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(open.splice(0).map((source) => source.close()));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
  await server.close();
});

const never = (): never => {
  throw new Error("nobody asks the API server");
};

function sourceOf(
  auth: ConnectionOf<"google-monitoring">["auth"] = "none",
  spec: Partial<SignalOf<"pubsub">> = {},
  connection: Partial<ConnectionOf<"google-monitoring">> = {},
): DemandSource {
  const source = pubsubAdapter.open(
    signalSchema.parse({ kind: "pubsub", connection: "gcp", project: "shop-1", subscription: "orders", ...spec }) as SignalOf<"pubsub">,
    connectionSchema.parse({ kind: "google-monitoring", name: "gcp", endpoint: server.url, auth, ...connection }),
    { clock: new VirtualClock(NOW), kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

const point = (value: unknown, at = NOW - 60_000): unknown => ({
  interval: { startTime: formatInstant(at), endTime: formatInstant(at) },
  value,
});
const series = (points: readonly unknown[], subscription = "orders"): unknown => ({
  metric: { type: "pubsub.googleapis.com/subscription/num_undelivered_messages" },
  resource: { type: "pubsub_subscription", labels: { project_id: "shop-1", subscription_id: subscription } },
  metricKind: "GAUGE",
  valueType: "INT64",
  points,
});
const listOf = (...all: readonly unknown[]): unknown => ({ timeSeries: all, unit: "1" });
const one = (value: unknown, at?: number): unknown => listOf(series([point(value, at)]));
const dated = (body: unknown, date = NOW): Answer => ({ body, headers: { date: new Date(date).toUTCString() } });
const both =
  (backlog: unknown, age: unknown, date = NOW) =>
  (path: string): Answer =>
    dated(path.includes("oldest_unacked") ? age : backlog, date);

test("the newest points of the two series are backlog and age, with their time, Google's clock and the series' own name (K1)", async () => {
  const backlog = listOf(series([point({ int64Value: "42" }), point({ int64Value: "50" }, NOW - 120_000)]));
  server.answer(both(backlog, one({ int64Value: "90" })));
  expect(await sourceOf().read(within(10_000))).toEqual({
    backlog: 42,
    inFlight: null,
    oldestAgeMs: 90_000,
    flow: "pubsub/shop-1/orders",
    valueAt: NOW - 60_000,
    sourceNow: NOW,
  });
  const query = (metric: string): string =>
    `GET /v3/projects/shop-1/timeSeries?filter=metric.type="pubsub.googleapis.com/subscription/${metric}"` +
    ' AND resource.labels.project_id="shop-1" AND resource.labels.subscription_id="orders"' +
    "&interval.startTime=2026-12-01T09:50:00.000Z&interval.endTime=2026-12-01T10:00:00.000Z";
  expect(server.asked).toEqual([query("num_undelivered_messages"), query("oldest_unacked_message_age")]);
});

test("the newest point is the newest by its time, not by its place", async () => {
  server.answer(both(listOf(series([point({ int64Value: "1" }, NOW - 300_000), point({ int64Value: "2" })])), {}));
  expect(await look(sourceOf(), { maxAgeMs: 300_000 })).toMatchObject({ backlog: 2, oldestAgeMs: null });
});

test("an age of another time, or of an empty subscription, is none", async () => {
  server.answer(both(one({ int64Value: "3" }), one({ int64Value: "400" }, NOW - 400_000)));
  expect(await look(sourceOf(), { maxAgeMs: 300_000 })).toMatchObject({ backlog: 3, oldestAgeMs: null });
  server.answer(both(one({ int64Value: "0" }), one({ int64Value: "400" })));
  expect(await look(sourceOf(), { maxAgeMs: 300_000 })).toMatchObject({ backlog: 0, oldestAgeMs: null });
});

test.each<[name: string, body: unknown, trouble: string]>([
  ["no data", {}, "missing"],
  ["an empty list", { timeSeries: [] }, "missing"],
  ["a series without points", listOf(series([])), "missing"],
  ["0", one({ int64Value: "0" }), "valid"],
  ["-1", one({ int64Value: "-1" }), "negative"],
  ["NaN", one({ doubleValue: "NaN" }), "not_a_number"],
  ["Infinity", one({ doubleValue: "Infinity" }), "infinite"],
  ["an integer that is no text", one({ int64Value: 5 }), "not_a_number"],
  ["a word", one({ int64Value: "many" }), "not_a_number"],
  ["null", one({ int64Value: null }), "not_a_number"],
  ["a distribution", one({ distributionValue: {} }), "not_a_number"],
  ["more than can be", one({ int64Value: "9".repeat(30) }), "infinite"],
  ["two series", listOf(series([point({ int64Value: "5" })]), series([point({ int64Value: "6" })], "other")), "partial"],
  ["the sibling's series", listOf(series([point({ int64Value: "5" })], "other")), "other_flow"],
  ["an execution error", { ...(one({ int64Value: "5" }) as object), executionErrors: [{ code: 4, message: "late" }] }, "partial"],
  ["a region that did not answer", { ...(one({ int64Value: "5" }) as object), unreachable: ["projects/shop-1/locations/x"] }, "partial"],
  ["a time that is none", listOf(series([{ interval: { endTime: "now" }, value: { int64Value: "5" } }])), "type_changed"],
  ["a series without labels", { timeSeries: [{ points: [] }] }, "type_changed"],
])("%s is judged for what it is, and is no zero (K11)", async (_, body, trouble) => {
  server.answer(both(body, {}));
  expect(await troubleOf(sourceOf(), { maxAgeMs: 300_000, flow: "pubsub/shop-1/orders" })).toBe(trouble);
});

test.each(HTTP_FAULTS)("%s is a trouble (K11)", async (_, answer, trouble) => {
  server.answer(answer);
  expect(await troubleOf(sourceOf())).toBe(trouble);
});

test("a half answer is none: without the age series' answer there is no reading", async () => {
  server.answer((path) => (path.includes("oldest_unacked") ? { status: 503 } : dated(one({ int64Value: "5" }))));
  expect(await troubleOf(sourceOf(), { maxAgeMs: 300_000 })).toBe("unreachable");
});

test("a server that does not answer is given up with the signal, and one that is not there is said to be so", async () => {
  for (const how of ["silent", "stuck"] as const) {
    server.answer({ how, body: { status: "success" } });
    expect(await look(sourceOf(), {}, within(50))).toBe("unreachable: Cloud Monitoring (connection gcp) did not answer in time");
  }
  expect(await look(sourceOf("none", {}, { endpoint: "http://127.0.0.1:1" }))).toBe(
    "unreachable: Cloud Monitoring (connection gcp) cannot be reached: connect ECONNREFUSED 127.0.0.1:1",
  );
});

test("where our clock is five minutes off, the window is asked for by Google's, and age is told by it (K11)", async () => {
  for (const off of [300_000, -300_000]) {
    const theirs = NOW + off;
    server.answer((path) => {
      const end = Date.parse(/endTime=([^&]+)/.exec(path)?.[1] ?? "");
      const inWindow = Math.abs(end - theirs) < 30_000;
      return dated(inWindow ? one({ int64Value: "7" }, theirs - 90_000) : {}, theirs);
    });
    expect(await look(sourceOf(), { maxAgeMs: 120_000 })).toMatchObject({ backlog: 7, valueAt: theirs - 90_000, sourceNow: theirs });
    expect(await troubleOf(sourceOf(), { maxAgeMs: 60_000 })).toBe("stale");
  }
});

test("what could change the filter is no subscription", async () => {
  expect(await troubleOf(sourceOf("none", { subscription: 'x" OR metric.type="y' }))).toBe("missing");
  expect(await troubleOf(sourceOf("none", { project: "../../other" }))).toBe("missing");
  expect(server.asked).toEqual([]);
});

async function keyFile(key: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "relevo-key-"));
  folders.push(folder);
  const path = join(folder, "key.json");
  await writeFile(path, JSON.stringify(key));
  return path;
}

test("with a service account's key a signed JWT is exchanged for a token, which is kept for all looks (K8)", async () => {
  const token_uri = `${server.url}/token`;
  const path = await keyFile({
    type: "service_account",
    client_email: "relevo@shop-1.example",
    private_key,
    private_key_id: "k1",
    token_uri,
  });
  let assertion = "";
  server.answer((path_, body) => {
    if (!path_.startsWith("/token")) return dated(one({ int64Value: "5" }));
    assertion = new URLSearchParams(body).get("assertion") ?? "";
    return { body: { access_token: "t-1", expires_in: 3_600, token_type: "Bearer" } };
  });
  const source = sourceOf({ keyFile: path });
  await source.read(within(10_000));
  await source.read(within(10_000));
  expect(server.asked.map((line) => line.replace(/\?.*$/s, ""))).toEqual([
    "POST /token",
    ...Array.from({ length: 4 }, () => "GET /v3/projects/shop-1/timeSeries"),
  ]);
  expect(server.headers.slice(1).map(({ authorization }) => authorization)).toEqual(Array.from({ length: 4 }, () => "Bearer t-1"));
  const [header = "", claims = "", signature = ""] = assertion.split(".");
  const read = (part: string): unknown => JSON.parse(Buffer.from(part, "base64url").toString());
  expect(read(header)).toEqual({ alg: "RS256", typ: "JWT", kid: "k1" });
  expect(read(claims)).toEqual({
    iss: "relevo@shop-1.example",
    scope: "https://www.googleapis.com/auth/monitoring.read",
    aud: token_uri,
    iat: NOW / 1_000 - 300,
    exp: NOW / 1_000 + 3_300,
  });
  expect(verify("RSA-SHA256", Buffer.from(`${header}.${claims}`), publicKey, Buffer.from(signature, "base64url"))).toBe(true);
});

test("a token that is refused before its time is exchanged once, and then the credentials are said to be refused (K8)", async () => {
  vi.stubEnv("GCE_METADATA_HOST", server.url.replace("http://", ""));
  let tokens = 0;
  server.answer((path) => {
    if (path.startsWith("/computeMetadata/")) return { body: { access_token: `t-${++tokens}`, expires_in: 3_600 } };
    return server.headers.at(-1)?.authorization === "Bearer t-1" ? { status: 401 } : dated(one({ int64Value: "0" }));
  });
  expect(await troubleOf(sourceOf("metadata"), { maxAgeMs: 300_000 })).toBe("valid");
  expect(server.headers.map((each) => each["metadata-flavor"] ?? each.authorization)).toEqual([
    "Google",
    "Bearer t-1",
    "Google",
    "Bearer t-2",
  ]);
  server.answer((path) => (path.startsWith("/computeMetadata/") ? { body: { access_token: "t", expires_in: 3_600 } } : { status: 403 }));
  expect(await troubleOf(sourceOf("metadata"))).toBe("credentials_refused");
});

test("many looks at once wait for one token", async () => {
  vi.stubEnv("GCE_METADATA_HOST", server.url.replace("http://", ""));
  server.answer((path) =>
    path.startsWith("/computeMetadata/") ? { body: { access_token: "t", expires_in: 3_600 } } : dated(one({ int64Value: "0" })),
  );
  const source = sourceOf("metadata");
  await Promise.all(Array.from({ length: 10 }, () => source.read(within(10_000))));
  expect(server.asked.filter((line) => line.includes("computeMetadata"))).toHaveLength(1);
});

test.each<[name: string, key: object, answer: Answer, trouble: string]>([
  ["a key of another kind", { type: "authorized_user" }, {}, "credentials_refused"],
  ["a private key that is none", { type: "service_account", client_email: "a@b", private_key: "none" }, {}, "credentials_refused"],
])("%s is refused before anybody is asked (K8)", async (_, key, answer, trouble) => {
  server.answer(answer);
  const seen = await look(sourceOf({ keyFile: await keyFile(key) }));
  expect(seen).toMatch(new RegExp(`^${trouble}: Google's tokens \\(connection gcp\\)`));
  expect(server.asked).toEqual([]);
});

test.each<[name: string, answer: Answer, trouble: string]>([
  ["an unknown key", { status: 400, body: { error: "invalid_grant" } }, "credentials_refused"],
  ["no token", { body: {} }, "credentials_refused"],
  ["a token server that is down", { status: 503 }, "unreachable"],
  ["HTML", { body: "<html>" }, "type_changed"],
])("%s at the token server is told for what it is (K8)", async (_, answer, trouble) => {
  const path = await keyFile({ type: "service_account", client_email: "a@b", private_key, token_uri: `${server.url}/token` });
  server.answer(answer);
  const seen = await look(sourceOf({ keyFile: path }));
  expect(seen).toMatch(new RegExp(`^${trouble}: `));
  expect(seen).not.toContain("PRIVATE KEY");
});

test("a key file that is not there, and a metadata server that does not answer, are said by name", async () => {
  expect(await look(sourceOf({ keyFile: "/nowhere/key.json" }))).toMatch(/^credentials_refused: .*the key file cannot be read/);
  vi.stubEnv("GCE_METADATA_HOST", server.url.replace("http://", ""));
  server.answer({ how: "silent" });
  expect(await look(sourceOf("metadata"), {}, within(50))).toBe("unreachable: Google's tokens (connection gcp) did not answer in time");
});
