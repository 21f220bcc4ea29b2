import { afterAll, afterEach, expect, test } from "vitest";
import { type Exchange, finished, type Instead, type Replay, recorded, replay } from "../../../test/trino/replay.ts";
import { systemClock } from "../../kernel/system.ts";
import type { InstanceTarget } from "../port.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { ACTIVE_WORKERS } from "../../model/trino.ts";
import { PATIENCE_MS } from "./obligations.ts";
import { TrinoDriver } from "./trino-driver.ts";

const driver = new TrinoDriver({ clock: systemClock });
afterAll(() => driver.destroy());

const servers: Replay[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

/** As the coordinator of the recorded cluster, with its two workers. */
const CLUSTER: readonly Exchange[] = [
  ...recorded("info"),
  ...recorded("gauges").filter(({ status }) => status === 200),
  ...recorded("nodes"),
  ...recorded("probe"),
];
const BOOT_ID = "c/54gri";
const CALL = { step: "s1", bootId: BOOT_ID, deadline: null };

interface Setup {
  readonly exchanges?: readonly Exchange[];
  readonly node?: string;
  readonly instead?: Instead;
  readonly workers?: number;
}

async function targetOf({ exchanges = CLUSTER, node = "coordinator", instead, workers = 2 }: Setup = {}): Promise<InstanceTarget> {
  const server = await replay(exchanges, { node, ...(instead === undefined ? {} : { instead }) });
  servers.push(server);
  const { host, port } = server;
  return { host, port, bootId: BOOT_ID, protocol: "trino/v1", healthPath: "/v1/info/coordinator", trino: { user: "relevo", workers } };
}

function requests(): string[] {
  return (servers[0]?.received ?? []).map(({ method, path }) => `${method} ${path}`);
}

const answering =
  (path: string, text: string, status = 200): Instead =>
  (request, response) => {
    if (!request.path.startsWith(path)) return false;
    response.writeHead(status).end(text);
    return true;
  };

const statement =
  (begins: string, text: string): Instead =>
  (request, response) => {
    if (request.method !== "POST" || !request.body.startsWith(begins)) return false;
    response.end(text);
    return true;
  };

const info = (more: object): string =>
  JSON.stringify({
    nodeId: "c",
    state: "ACTIVE",
    nodeVersion: { version: "483" },
    environment: "test",
    coordinator: true,
    coordinatorId: "54gri",
    starting: false,
    ...more,
  });

test("a cluster is the process of its coordinator: its node and the id that it gave itself at its start (D13)", async () => {
  const target = await targetOf();

  expect(await driver.identity(target)).toEqual({
    protocol: "trino/v1",
    instance: "c",
    bootId: BOOT_ID,
    state: "ready",
    admittedBy: null,
  });
});

test("a coordinator started anew at the same address is another process (D13)", async () => {
  const target = await targetOf({ exchanges: recorded("restarted-coordinator") });
  const mismatch = { code: "boot_id_mismatch", class: "conflict", found: "c/yfvbg", allowed: BOOT_ID };

  expect(await driver.identity(target)).toMatchObject({ bootId: "c/yfvbg" });
  await expect(driver.prepare(target, CALL)).rejects.toMatchObject(mismatch);
  await expect(driver.admit(target, CALL)).rejects.toMatchObject(mismatch);
  await expect(driver.drain(target, CALL)).rejects.toMatchObject(mismatch);
  await expect(driver.obligations(target)).rejects.toMatchObject(mismatch);
});

test("a check costs two small reads and no statement", async () => {
  const target = await targetOf();

  expect(await driver.health(target)).toEqual({ ok: true, bootId: BOOT_ID, reason: null });
  expect(requests().toSorted()).toEqual(["GET /metrics?name[]=trino_node_name_CoordinatorNodeManager_ActiveWorkerCount", "GET /v1/info"]);
});

const unwell: [string, Instead, object][] = [
  ["starting", answering("/v1/info", info({ starting: true })), { ok: false, bootId: BOOT_ID, reason: "starting" }],
  ["not_a_coordinator", answering("/v1/info", info({ coordinator: false })), { ok: false, bootId: null, reason: "not_a_coordinator" }],
  ["no_active_worker", answering("/metrics", `${ACTIVE_WORKERS} 0.0\n# EOF\n`), { ok: false, bootId: BOOT_ID, reason: "no_active_worker" }],
];
test.each(unwell)("a cluster is not well: %s", async (_reason, instead, health) => {
  expect(await driver.health(await targetOf({ instead }))).toEqual(health);
});

test("a cluster whose blueprint declares no worker is well without one", async () => {
  expect(await driver.health(await targetOf({ workers: 0 }))).toEqual({ ok: true, bootId: BOOT_ID, reason: null });
  expect(requests()).toEqual(["GET /v1/info"]);
});

test.each([
  ["does not have it", "# EOF\n", 200],
  ["does not let our user read it", "Error 403", 403],
  ["answers 404", "", 404],
  ["sends all of its 870 KB", `${"some_gauge 1.0\n".repeat(60_000)}`, 200],
])("a server that does not show how many workers are active (it %s) is not unwell, and not asked each time", async (_why, text, status) => {
  const target = await targetOf({ instead: answering("/metrics", text, status) });
  for (let check = 0; check < 3; check++) expect(await driver.health(target)).toMatchObject({ ok: true });

  expect(requests().filter((request) => request.includes("/metrics"))).toHaveLength(1);
});

test("one number that does not come is no reason against a coordinator that answers", async () => {
  const target = await targetOf({ instead: answering("/metrics", "", 500) });
  for (let check = 0; check < 2; check++) expect(await driver.health(target)).toMatchObject({ ok: true });

  expect(requests().filter((request) => request.includes("/metrics"))).toHaveLength(2);
});

test("where nothing listens the error says so", async () => {
  const target = await targetOf();
  await servers[0]?.stop();

  await expect(driver.health(target)).rejects.toMatchObject({ code: "instance_unreachable", class: "retryable" });
});

test("a cluster is prepared once its workers are active and a task has run on each (D7, T12)", async () => {
  const target = await targetOf();

  expect(await driver.prepare(target, CALL)).toEqual({ kind: "answered", answer: { bootId: BOOT_ID, step: "s1", state: "ready" } });
  expect(servers[0]?.received.filter(({ method }) => method === "POST").map(({ headers }) => headers["x-trino-source"])).toEqual([
    "relevo",
    "relevo",
  ]);
});

test("a worker that is declared and not announced keeps it from being prepared (D7, T12)", async () => {
  const target = await targetOf({ workers: 3 });

  await expect(driver.prepare(target, CALL)).rejects.toMatchObject({
    code: "trino_workers_missing",
    class: "retryable",
    found: "2 active: w1 active, w2 active",
    allowed: "3 active workers",
  });
});

test("a cluster without any worker is not sent a statement, which would wait for one (D7)", async () => {
  const target = await targetOf({ instead: answering("/metrics", `${ACTIVE_WORKERS} 0.0\n# EOF\n`) });

  await expect(driver.prepare(target, CALL)).rejects.toMatchObject({ code: "trino_workers_missing", found: "0 active: none announced" });
  expect(requests().some((request) => request.startsWith("POST"))).toBe(false);
});

test("a worker on which no task ran keeps it from being prepared, however active it is (T12)", async () => {
  const oneOnly = finished([
    ["w1", "20261201_000000_00000_xxxxx"],
    ["w2", "20261201_000000_00001_xxxxx"],
  ]);
  const target = await targetOf({ instead: statement("SELECT DISTINCT node_id", oneOnly) });

  await expect(driver.prepare(target, CALL)).rejects.toMatchObject({ code: "trino_workers_idle", class: "retryable", found: "w2" });
});

test("a worker of another environment is named where the coordinator only leaves it out (D7)", async () => {
  const stranger = await targetOf({
    node: "worker-1",
    instead: answering("/v1/info", info({ nodeId: "w3", coordinator: false, coordinatorId: undefined, environment: "prod" })),
  });
  const target = await targetOf({ workers: 3 });
  const trino = { user: "relevo", workers: 3, members: [{ host: stranger.host, port: stranger.port }] };

  await expect(driver.prepare({ ...target, trino }, CALL)).rejects.toMatchObject({
    code: "trino_wrong_environment",
    class: "retryable",
    found: `w3 at 127.0.0.1:${stranger.port}: environment prod, version 483`,
    allowed: "environment test, version 483",
  });
});

test("a coordinator that is still starting can be prepared later", async () => {
  const target = await targetOf({ instead: answering("/v1/info", info({ starting: true })) });

  await expect(driver.prepare(target, CALL)).rejects.toMatchObject({ code: "trino_starting", class: "retryable" });
});

test("the probe is tried again when a worker that dies fails it", async () => {
  const died = finished([], {
    stats: { state: "FAILED" },
    error: { errorName: "PAGE_TRANSPORT_TIMEOUT", errorCode: 65_540, errorType: "INTERNAL_ERROR", message: "Encountered too many errors" },
  });
  const fails = statement("SELECT DISTINCT node_id", died);
  let failures = 0;
  const target = await targetOf({ instead: (request, response) => failures < 1 && fails(request, response) && ++failures > 0 });

  expect(await driver.prepare(target, CALL)).toMatchObject({ kind: "answered" });
  expect(failures).toBe(1);
});

test("a read that our user may not make is told at once, with what to allow", async () => {
  const denied = finished([], {
    stats: { state: "FAILED" },
    error: { errorName: "PERMISSION_DENIED", errorCode: 4, errorType: "USER_ERROR", message: "Access Denied" },
  });
  const target = await targetOf({ instead: statement("SELECT", denied) });

  await expect(driver.prepare(target, CALL)).rejects.toMatchObject({
    code: "trino_read_failed",
    class: "terminal",
    todo: "Allow the user of spec.trino.user to read the schema system.runtime.",
  });
});

test("an admission that is told again is answered as before: the engine holds nothing of it (D13)", async () => {
  const target = await targetOf();
  const answer = { kind: "answered", answer: { bootId: BOOT_ID, step: "s1", state: "admitted" } };

  expect([await driver.admit(target, CALL), await driver.admit(target, CALL)]).toEqual([answer, answer]);
});

test("a coordinator has nothing to be told at a drain, and no door", async () => {
  const target = await targetOf();

  expect(await driver.drain(target, CALL)).toEqual({ kind: "answered", answer: { bootId: BOOT_ID, step: "s1", state: "draining" } });
  expect(await driver.close()).toEqual({ kind: "not_spoken" });
  expect(await driver.slots()).toBeNull();
});

const LISTED =
  "/v1/query?state=QUEUED&state=WAITING_FOR_RESOURCES&state=DISPATCHING&state=PLANNING&state=STARTING&state=RUNNING&state=FINISHING";
const query = (queryId: string, user: string, source: string, state = "RUNNING") => ({
  queryId,
  state,
  query: "SELECT 1",
  session: { user, source },
});
const gauges = (queued: number, running: number): string =>
  `trino_execution_name_QueryManager_QueuedQueries ${queued}.0\ntrino_execution_name_QueryManager_RunningQueries ${running}.0\n`;

interface Engine {
  readonly queued?: number;
  readonly running?: number;
  readonly listed?: readonly object[];
  readonly transactions?: readonly unknown[][];
}

function engineWith({ queued = 0, running = 0, listed = [], transactions = [] }: Engine): Instead {
  const all = [
    answering("/metrics?name[]=trino_execution", gauges(queued, running)),
    answering(LISTED, JSON.stringify(listed)),
    statement("SELECT transaction_id", finished(transactions)),
  ];
  return (request, response) => all.some((each) => each(request, response));
}

test("unfinished are the queries that have not ended, of everybody but ourselves", async () => {
  const listed = [
    query("q1", "ann", "a-client"),
    query("q2", "bob", "relevo"),
    query("q3", "relevo", "relevo"),
    query("q4", "relevo", "relevo-gate", "QUEUED"),
  ];
  const target = await targetOf({ instead: engineWith({ queued: 1, running: 3, listed }) });

  expect(await driver.obligations(target)).toEqual({ bootId: BOOT_ID, requests: 3, upgraded: 0, transactions: 0 });
  expect(requests().some((request) => request.startsWith("POST"))).toBe(false);
});

test("a query in a state that no gauge counts is unfinished too", async () => {
  const target = await targetOf({ instead: engineWith({ listed: [query("q1", "ann", "a-client", "FINISHING")] }) });

  expect(await driver.obligations(target)).toMatchObject({ requests: 1 });
});

test("queries that our user may not see are somebody's work: what is counted beyond the list is unfinished", async () => {
  const target = await targetOf({ instead: engineWith({ running: 2, listed: [query("q3", "relevo", "relevo")] }) });

  expect(await driver.obligations(target)).toMatchObject({ requests: 1 });
});

test("ten thousand queued queries are counted, not listed", async () => {
  const target = await targetOf({ instead: engineWith({ queued: 10_000 }) });

  expect(await driver.obligations(target)).toMatchObject({ requests: 10_000 });
  expect(requests().some((request) => request.includes("/v1/query"))).toBe(false);
});

test("an older server is asked for all of its queries, since it would take one state alone", async () => {
  const older: Instead = answering("/v1/info", info({ nodeVersion: { version: "470" } }));
  const all: Instead = answering("/v1/query", JSON.stringify([query("q1", "ann", "a", "FINISHED"), query("q2", "ann", "a", "PLANNING")]));
  const rest = engineWith({});
  const target = await targetOf({ instead: (...both) => older(...both) || all(...both) || rest(...both) });

  expect(await driver.obligations(target)).toMatchObject({ requests: 1 });
  expect(requests()).toContain("GET /v1/query");
});

test("a transaction that is open is unfinished, though no query runs", async () => {
  const target = await targetOf({ exchanges: [...CLUSTER, ...recorded("transaction")], instead: answering(LISTED, "[]") });

  expect(await driver.obligations(target)).toEqual({ bootId: BOOT_ID, requests: 0, upgraded: 0, transactions: 1 });
});

test("what a draining cluster says is remembered for a second, and one look is made for all who ask", async () => {
  const target = await targetOf({ instead: engineWith({}) });
  const looks = [driver.obligations(target), driver.obligations(target)];
  await Promise.all(looks);
  await driver.obligations(target);

  expect(requests().filter((request) => request === "GET /v1/info")).toHaveLength(1);
});

test("a look that lasts is no answer for whoever asks now, and is one for the next who asks", async () => {
  const clock = new VirtualClock();
  const patient = new TrinoDriver({ clock });
  const held = Promise.withResolvers<() => void>();
  const rest = engineWith({});
  const target = await targetOf({
    instead: (request, response) => {
      if (request.method !== "POST") return rest(request, response);
      held.resolve(() => response.end(finished([])));
      return true;
    },
  });
  const first = patient.obligations(target);
  first.catch(() => undefined); // judged below
  const answer = await held.promise;
  await clock.advance(PATIENCE_MS);
  await expect(first).rejects.toMatchObject({ code: "instance_timeout", class: "retryable" });
  const second = patient.obligations(target);
  answer();

  expect(await second).toEqual({ bootId: BOOT_ID, requests: 0, upgraded: 0, transactions: 0 });
  expect(requests().filter((request) => request === "GET /v1/info")).toHaveLength(1);
  await patient.destroy();
});

test("a look that failed is no answer, and is not remembered", async () => {
  let fails = true;
  const rest = engineWith({});
  const broken = answering("/v1/query", "broken", 500);
  const target = await targetOf({ instead: (...both) => (fails && broken(...both)) || rest(...both) });

  await expect(driver.obligations(target)).rejects.toMatchObject({ code: "instance_failed", class: "retryable" });
  fails = false;
  expect(await driver.obligations(target)).toMatchObject({ requests: 0 });
});

/** The worker's own answers while it is drained, taken back and shut down. */
const worker = (): Promise<InstanceTarget> =>
  targetOf({ node: "worker-1", exchanges: recorded("worker-states").filter(({ status, method }) => method === "GET" || status === 200) });

test("a worker is drained, taken back and shut down at its own door, and its state is read there", async () => {
  let state = "ACTIVE";
  const target = await targetOf({
    node: "worker-1",
    exchanges: [],
    instead: ({ method, body }, response) => {
      if (method === "PUT") state = JSON.parse(body) as string;
      response.end(method === "GET" ? JSON.stringify(state) : "");
      return true;
    },
  });
  const seen = [await driver.memberState(target)];
  await driver.drainMember(target, "reversible");
  seen.push(await driver.memberState(target));
  await driver.resumeMember(target);
  seen.push(await driver.memberState(target));
  await driver.drainMember(target, "final");
  await driver.drainMember(target, "final");
  seen.push(await driver.memberState(target));

  expect(seen).toEqual(["active", "draining", "active", "shutting_down"]);
  expect(servers[0]?.received.filter(({ method }) => method === "PUT").map(({ body }) => body)).toEqual([
    '"DRAINING"',
    '"ACTIVE"',
    '"SHUTTING_DOWN"',
  ]);
});

test("the recorded worker says DRAINING, then ACTIVE, then SHUTTING_DOWN", async () => {
  const target = await worker();

  expect([await driver.memberState(target), await driver.memberState(target), await driver.memberState(target)]).toEqual([
    "draining",
    "active",
    "shutting_down",
  ]);
});

test("a worker that lets nobody change its state is told with what must be configured on the worker itself", async () => {
  const active: Instead = ({ method }, response) => method === "GET" && response.end('"ACTIVE"') !== undefined;
  const refused = recorded("worker-states").filter(({ status }) => status === 403);
  const target = await targetOf({ node: "worker-1", exchanges: refused, instead: active });

  await expect(driver.drainMember(target, "reversible")).rejects.toMatchObject({
    code: "trino_shutdown_forbidden",
    class: "terminal",
    found: "status 403: Error 403 Forbidden: Management only resource",
    allowed: "PUT /v1/info/state by the user relevo",
    todo: expect.stringContaining("on the worker itself: etc/access-control.properties with access-control.name=file"),
  });
});

test("what shuts down is not taken back: a conflict", async () => {
  const [, ...later] = recorded("worker-states").filter(({ body }) => body === '"ACTIVE"');
  const shutting: Instead = ({ method }, response) => method === "GET" && response.end('"SHUTTING_DOWN"') !== undefined;
  const target = await targetOf({ node: "worker-1", exchanges: later.filter(({ status }) => status === 400), instead: shutting });

  await expect(driver.resumeMember(target)).rejects.toMatchObject({ code: "wrong_state", class: "conflict" });
});

test("a worker whose process has ended is gone; one that does not answer is not called so", async () => {
  const target = await worker();
  await servers[0]?.stop();

  expect(await driver.memberState(target)).toBe("gone");
});
