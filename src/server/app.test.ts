import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import type { FastifyInstance } from "fastify";
import { epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { LeaseTokens } from "../lease/token.ts";
import { storeUnavailable } from "../store/port.ts";
import { signBody } from "./access.ts";
import { createServer, type ServerOptions } from "./app.ts";
import { createLogger } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { aPool, anInstance, FakeControlPlane, NOON, ORDERS_YAML_OBJECT, someEvidence } from "./testing/fake-control-plane.ts";

const TOKEN = "t0ken";
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

interface Running {
  readonly app: FastifyInstance;
  readonly fake: FakeControlPlane;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly logged: () => Record<string, unknown>[];
}

const LEASES = new LeaseTokens("key of the test");

async function aServer(fake = new FakeControlPlane({ pools: [aPool()] }), options: Partial<ServerOptions> = {}): Promise<Running> {
  const clock = new VirtualClock(NOON);
  const metrics = createMetrics();
  const lines: string[] = [];
  const log = createLogger({ level: "debug", name: "test", clock, destination: { write: (line) => void lines.push(line) } });
  const parts = { controlPlane: fake, metrics, log, clock, leaseTokens: LEASES };
  const app = await createServer({
    ...parts,
    options: { host: "127.0.0.1", token: TOKEN, webhookSecret: null, version: "0.0.0", ...options },
  });
  return { app, fake, metrics, logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

test("a request without the token, or with another, is refused before anything is read", async () => {
  const { app, fake } = await aServer();

  const missing = await app.inject({ url: "/v1/pools" });
  const wrong = await app.inject({ url: "/v1/pools", headers: { authorization: "Bearer other" } });

  expect([missing.statusCode, missing.json()]).toEqual([
    401,
    {
      error: {
        code: "unauthorized",
        message: "A bearer token is missing.",
        allowed: "authorization: Bearer <token>",
        todo: "give the token of .relevo/run.json, or set RELEVO_TOKEN",
      },
    },
  ]);
  expect([wrong.statusCode, wrong.json().error.message]).toEqual([401, "The bearer token is wrong."]);
  expect(fake.calls).toEqual([]);
});

test("health, readiness, metrics and the API's description need no token", async () => {
  const { app } = await aServer();

  const answers = await Promise.all(["/healthz", "/readyz", "/metrics", "/openapi.json"].map((url) => app.inject({ url })));

  expect(answers.map((answer) => answer.statusCode)).toEqual([200, 200, 200, 200]);
  expect(answers[0]?.json()).toEqual({ ok: true, now: "2030-01-01T12:00:00.000Z", version: "0.0.0" });
});

test("a controller that is not ready says why with 503", async () => {
  const readiness = { ready: false, checks: [{ name: "store", ok: false, message: "disk full" }] };
  const { app } = await aServer(new FakeControlPlane({ readiness }));

  const answer = await app.inject({ url: "/readyz" });

  expect([answer.statusCode, answer.json()]).toEqual([503, readiness]);
});

test("any address but loopback demands a token", async () => {
  await expect(aServer(undefined, { host: "0.0.0.0", token: null })).rejects.toMatchObject({
    code: "bind_needs_token",
    found: "0.0.0.0",
    allowed: "127.0.0.0/8, ::1 and localhost without a token",
  });
  await expect(aServer(undefined, { host: "0.0.0.0" })).resolves.toBeDefined();
  await expect(aServer(undefined, { host: "127.0.0.1", token: null })).resolves.toBeDefined();
});

test("without a token the API answers only to loopback names", async () => {
  const { app } = await aServer(undefined, { token: null });

  const rebound = await app.inject({ url: "/v1/pools", headers: { host: "evil.example:7070" } });
  const local = await app.inject({ url: "/v1/pools", headers: { host: "127.0.0.1:7070" } });

  expect([rebound.statusCode, rebound.json().error.code]).toEqual([403, "host_not_allowed"]);
  expect(local.statusCode).toBe(200);
});

test("without a token and a secret no web page posts a notice; with a secret the signature decides", async () => {
  const body = "{}";
  const page = { host: "127.0.0.1:7070", origin: "https://evil.example", "content-type": "application/json" };
  const post = async (webhookSecret: string | null, headers: Readonly<Record<string, string>>) => {
    const { app } = await aServer(undefined, { token: null, webhookSecret });
    return (await app.inject({ method: "POST", url: "/v1/notices/eventbridge", headers, payload: body })).statusCode;
  };

  expect(await post(null, page)).toBe(403);
  expect(await post(null, { ...page, host: "evil.example" })).toBe(403);
  expect(await post("a-secret-of-some-length", page)).toBe(401);
});

test("without a token no web page is answered, whatever it asks for; one typed by a person is", async () => {
  const { app, fake } = await aServer(undefined, { token: null });
  const asked = async (headers: Readonly<Record<string, string>>, url = "/gateway/v1/stream?replica=page") =>
    (await app.inject({ url, headers: { host: "127.0.0.1:7070", ...headers } })).json();

  expect((await asked({ origin: "https://evil.example" })).error.code).toBe("origin_not_allowed");
  expect((await asked({ "sec-fetch-site": "cross-site" })).error.code).toBe("origin_not_allowed");
  expect(fake.calls).toEqual([]);
  expect(await asked({ "sec-fetch-site": "none" }, "/v1/pools")).toHaveProperty("items");
});

test.each([
  ["a path that is no text", "GET /v1/pools/%ff/x HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n", 400, "path_invalid"],
  [
    "a name that is too long",
    `GET /v1/pools/${"a".repeat(400)}/x HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`,
    414,
    "path_too_long",
  ],
  ["no HTTP", "\u0016\u0003\u0001\r\n\r\n", 400, "request_malformed"],
  ["a head that is too large", `GET / HTTP/1.1\r\nx: ${"a".repeat(40_000)}\r\n\r\n`, 431, "head_too_large"],
  ["a broken chunk", "POST /v1/freeze HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n", 400, "request_malformed"],
])("what the server refuses before any route has the same form of error: %s", async (_name, bytes, status, code) => {
  const { app } = await aServer(undefined, { token: null });
  const url = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
  const socket = connect(Number(url.port), "127.0.0.1");
  socket.on("error", () => undefined); // the server may end first
  socket.write(bytes);
  const answer = await text(socket);
  await app.close();

  expect([Number(answer.slice(9, 12)), JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))).error.code]).toEqual([status, code]);
});

test("a body of any depth or size gets an error that is small", async () => {
  const { app } = await aServer();
  const deep = `${"[".repeat(50_000)}1${"]".repeat(50_000)}`;
  const large = JSON.stringify({ kind: "x".repeat(500_000) });
  const answers = [];
  for (const payload of [deep, large]) {
    const headers = { ...AUTHORIZED, "content-type": "application/json" };
    answers.push(await app.inject({ method: "POST", url: "/v1/apply", headers, payload }));
  }

  expect(answers.map((answer) => [answer.statusCode, answer.json().error.code, answer.body.length < 5_000])).toEqual([
    [400, "body_invalid", true],
    [422, "document_invalid", true],
  ]);
});

test("a pool is shown with its counts and the reason why nothing is done (D11)", async () => {
  const { app } = await aServer();

  const answer = await app.inject({ url: "/v1/pools/default/orders", headers: AUTHORIZED });

  expect(answer.json()).toEqual({
    pool: "default/orders",
    namespace: "default",
    name: "orders",
    driver: "service",
    mode: "Act",
    desired: 4,
    floor: 3,
    max: 8,
    serving: 4,
    priority: "standard",
    standby: { wanted: 0, ready: 0 },
    phases: { serving: 4 },
    route: "orders",
    provisioners: ["karpenter"],
    generation: "0.7",
    authorityEpoch: "0.3",
    owner: "controller-1",
    resourceVersion: "12",
    freeze: null,
    heldSteps: 0,
    reasons: [
      {
        subject: "",
        code: "nothing_to_do",
        sentence: "as many instances serve as are desired, and no evidence is against any of them",
        since: "2030-01-01T12:00:00.000Z",
      },
    ],
    losses: [],
    traffic: null,
  });
});

test("a pool that is not there is a 404 that says what was looked for", async () => {
  const { app } = await aServer();

  const answer = await app.inject({ url: "/v1/pools/default/other", headers: AUTHORIZED });

  expect([answer.statusCode, answer.json()]).toEqual([
    404,
    { error: { code: "pool_not_found", message: "There is no pool default/other.", found: "default/other", todo: "see relevo get pools" } },
  ]);
});

test("evidence is typed and sanitised, absent and populated alike, and its first reading is logged (D16)", async () => {
  const fake = new FakeControlPlane();
  const { app, logged } = await aServer(fake);

  const absent = await app.inject({ url: "/v1/evidence", headers: AUTHORIZED });
  fake.state.evidence.push(someEvidence());
  const populated = await app.inject({ url: "/v1/evidence?pool=default/orders", headers: AUTHORIZED });

  expect(absent.json()).toEqual({ items: [] });
  expect(populated.json()).toEqual({
    items: [
      {
        id: "ev-1",
        pool: "default/orders",
        instance: "orders-a",
        incarnation: 1,
        loss: "voluntary",
        reason: "node_drifted",
        firstSeen: "2030-01-01T12:00:00.000Z",
        deadline: null,
        node: { name: "node-a", uid: "node-a-uid" },
        nodeClaim: { name: "claim-a", uid: "claim-a-uid" },
        pod: null,
        notice: null,
        witnesses: [],
        authorityEpoch: "0.0",
      },
    ],
  });
  expect(logged().filter(({ event }) => event === "evidence_first_read")).toMatchObject([{ count: 0, pool: null, from: "127.0.0.1" }]);
});

test("a plan is shown as decisions and holds, each with its sentence", async () => {
  const { app } = await aServer();

  const answer = await app.inject({ url: "/v1/pools/default/orders/plan", headers: AUTHORIZED });

  expect(answer.json()).toEqual({
    pool: "default/orders",
    at: "2030-01-01T12:00:00.000Z",
    decisions: [
      {
        kind: "create_instance",
        subject: "orders-a",
        detail: null,
        reason: { code: "below_desired", sentence: "3 of 4 instances serve: one more is created" },
      },
    ],
    holds: [
      {
        subject: "orders-b",
        until: null,
        reason: { code: "serving_not_above_desired", sentence: "4 serve and 4 are desired: a voluntary drain waits for one more" },
      },
    ],
    nextLookAt: "2030-01-01T12:00:05.000Z",
  });
});

test("a query out of range names its field, what was found and what is allowed", async () => {
  const { app } = await aServer();

  const answer = await app.inject({ url: "/v1/steps?limit=5000", headers: AUTHORIZED });

  expect([answer.statusCode, answer.json()]).toEqual([
    400,
    {
      error: {
        code: "query_invalid",
        message: "limit is not valid",
        field: "limit",
        found: "5000",
        allowed: "a whole number from 1 to 1000",
      },
    },
  ]);
});

test("a document with a mistake is refused with its field, and nothing is applied", async () => {
  const { app, fake } = await aServer();
  const document = { ...ORDERS_YAML_OBJECT, spec: { ...ORDERS_YAML_OBJECT.spec, size: { desired: "four" } } };

  const answer = await app.inject({ method: "POST", url: "/v1/apply", headers: AUTHORIZED, payload: document });

  expect([answer.statusCode, answer.json()]).toEqual([
    422,
    {
      error: {
        code: "document_invalid",
        message: "spec.size.desired is not valid",
        field: "spec.size.desired",
        found: "four",
        allowed: "a whole number from 0 to 10000",
      },
    },
  ]);
  expect(fake.calls).toEqual([]);
});

test("a document is applied as it was written, without the defaults", async () => {
  const { app, fake } = await aServer();

  const answer = await app.inject({ method: "POST", url: "/v1/apply?dryRun=true", headers: AUTHORIZED, payload: ORDERS_YAML_OBJECT });

  expect(answer.json()).toEqual({ pool: "default/orders", result: "created", dryRun: true });
  expect(fake.calls).toEqual([{ call: "apply", with: { document: ORDERS_YAML_OBJECT, dryRun: true } }]);
});

test("an operator's commands carry who and why, and a refusal keeps its code", async () => {
  const fake = new FakeControlPlane({ pools: [aPool()], instances: [anInstance("orders-a")] });
  const { app } = await aServer(fake);
  const post = (url: string, payload: object) => app.inject({ method: "POST", url, headers: AUTHORIZED, payload });

  const drained = await post("/v1/instances/orders-a/drain", { by: "ann", why: "test" });
  const frozen = await post("/v1/freeze", { pool: null, for: "2h", why: "audit", by: "ann" });
  const foreign = await post("/v1/nodes/node-b/uncordon", { by: "ann" });

  expect(drained.json()).toEqual({ evidence: "ev-1" });
  expect(frozen.json()).toEqual({ pools: ["default/orders"], until: "2030-01-01T14:00:00.000Z" });
  expect([foreign.statusCode, foreign.json().error]).toEqual([
    409,
    { code: "not_our_cordon", message: "node-b was not cordoned by Relevo.", found: "node-b", todo: "use kubectl uncordon" },
  ]);
  expect(fake.calls).toEqual([
    { call: "drain", with: { instance: "orders-a", by: "ann", why: "test" } },
    { call: "freeze", with: { pool: null, until: NOON + 7_200_000, why: "audit", by: "ann" } },
    { call: "uncordon", with: { node: "node-b", by: "ann" } },
  ]);
});

test("an unknown failure is a 500 that tells the log and not the caller", async () => {
  const fake = new FakeControlPlane({ pools: [aPool()] });
  fake.listPools = () => Promise.reject(new TypeError("a path and a secret"));
  const { app, logged } = await aServer(fake);

  const answer = await app.inject({ url: "/v1/pools", headers: AUTHORIZED });

  expect([answer.statusCode, answer.json()]).toEqual([
    500,
    { error: { code: "internal", message: "The controller failed to answer.", todo: "see the controller's log" } },
  ]);
  expect(logged().filter(({ level }) => level === "error")).toMatchObject([{ code: "internal", err: { message: "a path and a secret" } }]);
});

test("metrics show states as they are when they are asked for, and a scrape outlives what cannot be read", async () => {
  const counts = { accepted: 9, completed: 6, inFlight: 1, queued: 1, rejected: 1, cut: 0, retried: 2 };
  const fake = new FakeControlPlane({
    cordons: [{ node: "node-a", nodeUid: "u", step: "s", evidence: null, at: null }],
    gateways: [
      {
        replica: "gw-1",
        registeredAt: NOON,
        connected: true,
        lastReportAt: NOON,
        silent: false,
        routes: [{ route: "orders", applied: epoch(0, 7), current: epoch(0, 7), counts }],
      },
    ],
  });
  const { app, metrics } = await aServer(fake);
  metrics.setPool("default/orders", {
    phases: { serving: 3, draining: 1 },
    serving: 3,
    desired: 4,
    floor: 3,
    max: 8,
    frozen: false,
    heldSteps: 0,
    reasons: { drain_in_progress: 2 },
    scale: undefined,
  });
  metrics.countLoss("default/orders", "deadline", 2, true);

  const before = (await app.inject({ url: "/metrics" })).body;
  fake.listCordons = () => Promise.reject(new Error("away"));
  fake.state.gateways = [];
  const after = (await app.inject({ url: "/metrics" })).body;

  const lines = before.split("\n").filter((line) => /^relevo_(own|gateway|route|ready|serving|losses|lost|assumed)/.test(line));
  expect(lines.toSorted()).toEqual([
    'relevo_assumed_seals_total{pool="default/orders"} 1',
    'relevo_gateway_replicas{state="current"} 1',
    'relevo_gateway_replicas{state="silent"} 0',
    'relevo_losses_total{pool="default/orders",loss="deadline"} 1',
    'relevo_losses_total{pool="default/orders",loss="forced"} 0',
    'relevo_losses_total{pool="default/orders",loss="voluntary"} 0',
    'relevo_lost_obligations_total{pool="default/orders",loss="deadline"} 2',
    "relevo_own_cordons 1",
    'relevo_own_cordon{node="node-a"} 1',
    'relevo_ready{part="store"} 1',
    'relevo_route_requests{route="orders",replica="gw-1",state="accepted"} 9',
    'relevo_route_requests{route="orders",replica="gw-1",state="completed"} 6',
    'relevo_route_requests{route="orders",replica="gw-1",state="cut"} 0',
    'relevo_route_requests{route="orders",replica="gw-1",state="in_flight"} 1',
    'relevo_route_requests{route="orders",replica="gw-1",state="queued"} 1',
    'relevo_route_requests{route="orders",replica="gw-1",state="rejected"} 1',
    'relevo_route_requests{route="orders",replica="gw-1",state="retried"} 2',
    'relevo_serving{pool="default/orders"} 3',
  ]);
  expect(after).toContain("relevo_own_cordons 1");
  expect(after).not.toContain('replica="gw-1"');
});

const NOTICE = JSON.stringify({ "detail-type": "EC2 Spot Instance Interruption Warning", detail: { "instance-id": "i-1" } });

function notify(app: FastifyInstance, payload: string, headers: Record<string, string>, source = "eventbridge") {
  return app.inject({ method: "POST", url: `/v1/notices/${source}`, headers: { "content-type": "application/json", ...headers }, payload });
}

test("a notice with a good signature or token is taken, its credentials are not passed on (S1)", async () => {
  const { app, fake } = await aServer(undefined, { webhookSecret: "s3cret" });

  const signed = await notify(app, NOTICE, { "x-relevo-signature": signBody(NOTICE, "s3cret") });
  const bearer = await notify(app, NOTICE, AUTHORIZED);

  expect([signed.statusCode, signed.json()]).toEqual([202, { accepted: ["notice-1"], duplicates: [], ignored: [] }]);
  expect(bearer.statusCode).toBe(202);
  expect(fake.calls[0]).toEqual({
    call: "receiveNotice",
    with: { source: "eventbridge", body: NOTICE, headers: { "content-type": "application/json" } },
  });
});

test("a secret that is exchanged while the server runs: what is signed with the new one is taken, and with the old one no more (S1)", async () => {
  let secret = "the first";
  const { app } = await aServer(undefined, { webhookSecret: () => secret });
  const sign = async (by: string) => (await notify(app, NOTICE, { "x-relevo-signature": signBody(NOTICE, by) })).statusCode;
  const before = [await sign("the first"), await sign("the second")];
  secret = "the second";

  expect([before, [await sign("the first"), await sign("the second")]]).toEqual([
    [202, 401],
    [401, 202],
  ]);
});

test("a notice with a wrong signature, another body or none is refused, logged and counted, and changes nothing (S1)", async () => {
  const { app, fake, metrics, logged } = await aServer(undefined, { webhookSecret: "s3cret" });

  const wrong = await notify(app, NOTICE, { "x-relevo-signature": signBody(NOTICE, "other") });
  const changed = await notify(app, `${NOTICE} `, { "x-relevo-signature": signBody(NOTICE, "s3cret") });
  const unsigned = await notify(app, NOTICE, {});

  expect([wrong.statusCode, changed.statusCode, unsigned.statusCode]).toEqual([401, 401, 401]);
  expect(unsigned.json().error).toEqual({
    code: "notice_unauthorized",
    message: "The notice is not signed.",
    allowed: "x-relevo-signature: sha256=<HMAC of the body>, or authorization: Bearer <token>",
  });
  expect(fake.calls).toEqual([]);
  expect(await metrics.registry.getSingleMetricAsString("relevo_notices_total")).toContain('outcome="notice_unauthorized"} 3');
  expect(logged().filter(({ event }) => event === "notice_refused")).toHaveLength(3);
});

test("an agent's heartbeat is taken with the signature of a notice; who sends and how long it was silent is listed and counted", async () => {
  const { app, fake } = await aServer(undefined, { webhookSecret: "s3cret" });
  const beat = async (body: string, secret = "s3cret", source = "eventbridge") =>
    app.inject({
      method: "POST",
      url: `/v1/sources/${source}/heartbeat`,
      payload: body,
      headers: { "content-type": "application/json", "x-relevo-signature": signBody(body, secret) },
    });
  const answers = [
    await beat('{"from": "node-a", "everyMs": 30000}'),
    await beat('{"from": "node-a", "everyMs": 30000}', "wrong"),
    await beat('{"from": "node-a", "everyMs": 3}'),
    await beat("{"),
    await beat('{"from": "node-a", "everyMs": 30000}', "s3cret", "smoke"),
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([204, 401, 400, 400, 404]);
  expect(fake.calls).toEqual([
    { call: "receiveHeartbeat", with: { source: "eventbridge", from: "node-a", everyMs: 30_000, trouble: null } },
  ]);

  fake.state.senders = [
    { source: "sqs", from: "queue", lastHeardAt: null, everyMs: 20_000, isSilent: true, trouble: "AccessDenied" },
    { source: "gcp", from: "node-a", lastHeardAt: Date.UTC(2030, 0, 1), everyMs: 10_000, isSilent: false, trouble: null },
  ];
  expect((await app.inject({ url: "/v1/sources", headers: AUTHORIZED })).json()).toEqual({
    items: [
      { source: "sqs", from: "queue", state: "never heard", lastHeardAt: null, everyMs: 20_000, trouble: "AccessDenied" },
      { source: "gcp", from: "node-a", state: "heard", lastHeardAt: "2030-01-01T00:00:00.000Z", everyMs: 10_000, trouble: null },
    ],
  });
  const { body: text } = await app.inject({ url: "/metrics" });
  expect(text).toContain('relevo_notice_senders{source="sqs",state="silent"} 1');
  expect(text).toContain('relevo_notice_senders{source="gcp",state="heard"} 1');
  expect(text).toMatch(/relevo_notice_source_seconds_since_heard\{source="gcp"\} -?[\d.e+]+/);
});

test("a notice that cannot be understood is a 400 with its field; one too large a 413; an unknown source a 404", async () => {
  const { app, metrics } = await aServer();

  const noJson = await notify(app, "{", AUTHORIZED);
  const noDetail = await notify(app, "{}", AUTHORIZED);
  const large = await notify(app, "x".repeat(65 * 1024), AUTHORIZED);
  const unknown = await notify(app, NOTICE, AUTHORIZED, "elsewhere");

  expect([noJson.statusCode, noJson.json().error.field]).toEqual([400, "body"]);
  expect([noDetail.statusCode, noDetail.json().error]).toEqual([
    400,
    { code: "notice_malformed", message: "detail is missing.", field: "detail", allowed: "a mapping" },
  ]);
  expect([large.statusCode, large.json().error.code]).toEqual([413, "body_too_large"]);
  expect([unknown.statusCode, unknown.json().error.code]).toEqual([404, "notice_source_unknown"]);
  const counted = await metrics.registry.getSingleMetricAsString("relevo_notices_total");
  expect(counted).toContain('{source="eventbridge",outcome="notice_malformed"} 2');
  expect(counted).toContain('{source="eventbridge",outcome="body_too_large"} 1');
  expect(counted).toContain('{source="unknown",outcome="notice_source_unknown"} 1');
});

test("while the store is away a notice is answered 503, so that the sender tries again", async () => {
  const fake = new FakeControlPlane({ failure: storeUnavailable("disk full", new Error("ENOSPC")) });
  const { app } = await aServer(fake);

  const answer = await notify(app, NOTICE, AUTHORIZED);

  expect([answer.statusCode, answer.headers["retry-after"], answer.json().error.code]).toEqual([503, "1", "store_unavailable"]);
});

test("a body over 1 MiB is refused, a body of another type too", async () => {
  const { app } = await aServer();

  const large = await app.inject({ method: "POST", url: "/v1/apply", headers: AUTHORIZED, payload: { text: "x".repeat(1024 * 1024) } });
  const text = await app.inject({
    method: "POST",
    url: "/v1/freeze",
    headers: { ...AUTHORIZED, "content-type": "text/xml" },
    payload: "<a/>",
  });

  expect([large.statusCode, large.json().error.code]).toEqual([413, "body_too_large"]);
  expect([text.statusCode, text.json().error.code]).toEqual([415, "media_type_unsupported"]);
});

test("the OpenAPI document names every route, its answers and the form of an error", async () => {
  const { app } = await aServer();

  const document = (await app.inject({ url: "/openapi.json" })).json();

  expect(Object.keys(document.paths).toSorted()).toEqual([
    "/gateway/v1/reports",
    "/gateway/v1/stream",
    "/healthz",
    "/metrics",
    "/readyz",
    "/v1/apply",
    "/v1/capacity",
    "/v1/check",
    "/v1/controllers",
    "/v1/cordons",
    "/v1/events",
    "/v1/evidence",
    "/v1/examination",
    "/v1/exceptions",
    "/v1/exceptions/{exception}/follow-ups/{index}/done",
    "/v1/explain",
    "/v1/forced-seals",
    "/v1/freeze",
    "/v1/gateways",
    "/v1/instances",
    "/v1/instances/{instance}/drain",
    "/v1/instances/{instance}/force-seal",
    "/v1/leases/renew",
    "/v1/nodes",
    "/v1/nodes/{node}/uncordon",
    "/v1/notices",
    "/v1/notices/{source}",
    "/v1/pools",
    "/v1/pools/{namespace}/{name}",
    "/v1/pools/{namespace}/{name}/adopt",
    "/v1/pools/{namespace}/{name}/check",
    "/v1/pools/{namespace}/{name}/effect",
    "/v1/pools/{namespace}/{name}/exceptions",
    "/v1/pools/{namespace}/{name}/followed",
    "/v1/pools/{namespace}/{name}/plan",
    "/v1/pools/{namespace}/{name}/protection",
    "/v1/pools/{namespace}/{name}/proven",
    "/v1/pools/{namespace}/{name}/resume",
    "/v1/pools/{namespace}/{name}/suspend",
    "/v1/pools/{namespace}/{name}/suspension",
    "/v1/release",
    "/v1/scale",
    "/v1/sources",
    "/v1/sources/{source}/heartbeat",
    "/v1/steps",
    "/v1/store",
    "/v1/store/recover",
    "/v1/unfreeze",
    "/v1/watch",
    "/v1/whoami",
    "/v1/workloads",
  ]);
  const { responses } = document.paths["/v1/pools"].get;
  expect(Object.keys(responses)).toEqual(["200", "default"]);
  expect(responses.default.content["application/json"].schema.properties.error.required).toEqual(["code", "message"]);
});

test("secrets never reach the log", async () => {
  const lines: string[] = [];
  const log = createLogger({
    level: "info",
    name: "test",
    clock: new VirtualClock(NOON),
    destination: { write: (line) => void lines.push(line) },
  });

  log.info({ token: "hush", options: { secret: "hush", token: "hush" }, req: { headers: { authorization: "hush", cookie: "hush" } } }, "x");

  expect(lines.join("")).not.toContain("hush");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "info", name: "test", time: "2030-01-01T12:00:00.000Z", token: "[redacted]" });
});

test("a refusal of our own keeps its class's status when its code has none", async () => {
  const fake = new FakeControlPlane({ failure: new RelevoError("something_new", "Not now.", { class: "conflict" }) });
  const { app } = await aServer(fake);

  const answer = await app.inject({ method: "POST", url: "/v1/unfreeze", headers: AUTHORIZED, payload: { pool: null, by: "ann" } });

  expect([answer.statusCode, answer.json()]).toEqual([409, { error: { code: "something_new", message: "Not now." } }]);
});

const OWN = { pool: "default/orders", instance: "orders-1", bootId: "boot-1", epoch: "0.1" };

function renewing(app: FastifyInstance, body: object, token: string | undefined) {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return app.inject({ method: "POST", url: "/v1/leases/renew", headers, payload: body });
}

test("an instance renews its lease with the token of its own process, and with no other, whatever the API itself demands", async () => {
  for (const token of [TOKEN, null]) {
    const { app, fake } = await aServer(undefined, { token });

    const answer = await renewing(app, OWN, LEASES.issue(OWN));
    expect([answer.statusCode, answer.json()]).toEqual([200, { pool: OWN.pool, ordinal: 0, writerEpoch: "0.1", ttlMs: 10_000 }]);
    expect(fake.calls).toEqual([{ call: "renewLease", with: OWN }]);

    for (const other of [TOKEN, undefined, "x", LEASES.issue({ ...OWN, bootId: "boot-2" }), new LeaseTokens("another key").issue(OWN)]) {
      const refused = await renewing(app, OWN, other);
      expect([refused.statusCode, refused.json().error.code]).toEqual([401, "lease_token_invalid"]);
    }
    expect(fake.calls.length, "the controller was not asked").toBe(1);
  }
});

test.each([
  ["lease_not_held", "conflict", 409],
  ["lease_fenced", "terminal", 410],
  ["lease_too_often", "retryable", 429],
  ["lease_epoch_unproven", "retryable", 503],
] as const)("a renewal that is refused as %s says so", async (code, errorClass, status) => {
  const { app } = await aServer(new FakeControlPlane({ failure: new RelevoError(code, "it is refused", { class: errorClass }) }));
  const answer = await renewing(app, OWN, LEASES.issue(OWN));
  expect([answer.statusCode, answer.json().error.code]).toEqual([status, code]);
});

test("a renewal of a wrong form, or one that is too long, is refused before anything else", async () => {
  const { app, fake } = await aServer();
  for (const wrong of [{}, { ...OWN, epoch: "1" }, { ...OWN, bootId: "" }, { ...OWN, bootId: "b".repeat(300) }])
    expect((await renewing(app, wrong, LEASES.issue(OWN))).statusCode).toBe(400);
  expect((await renewing(app, { ...OWN, pool: "p".repeat(5_000) }, LEASES.issue(OWN))).statusCode).toBe(413);
  expect(fake.calls).toEqual([]);
});
