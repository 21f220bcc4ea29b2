/**
 * What a size is decided from when real servers tell nonsense, nothing, or somebody else's backlog: Prometheus behind HAProxy, Redis, and the built-in queue, read by a
 * whole controller in real time (K1, K2, K8, K11).
 */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { QueueUnderTest, TOKEN } from "../../src/demand/queue/testing/queue-under-test.ts";
import { RedisServer } from "../redis/server.ts";
import { DecidingController } from "./deciding-controller.ts";
import { MetricSite } from "./metric-site.ts";

const PATIENT = { timeout: 60_000, interval: 100 };
/** Of polls each second: so many that what is not held would have moved. */
const SOME_POLLS_MS = 2_500;

let east: MetricSite;
let west: MetricSite;
let redis: RedisServer;
let queue: QueueUnderTest;
let controller: DecidingController | undefined;

beforeAll(async () => {
  [east, west, redis, queue] = await Promise.all([
    MetricSite.start("token-of-east"),
    MetricSite.start("token-of-west"),
    RedisServer.start(),
    new QueueUnderTest().start(),
  ]);
});
afterAll(async () => {
  await Promise.all([east?.stop(), west?.stop(), redis?.stop(), queue?.remove()]);
});
afterEach(() => controller?.stop());

async function start({ westToken = "token-of-west", aheadMs = 0 } = {}): Promise<DecidingController> {
  controller = await DecidingController.start({
    aheadMs,
    connections: [
      { name: "metrics", kind: "prometheus", url: east.url, bearerToken: east.token, sites: ["local", "east"] },
      { name: "metrics", kind: "prometheus", url: west.url, bearerToken: westToken, sites: ["west"] },
      { name: "cache", kind: "redis", url: redis.url() },
      { name: "main", kind: "queue", url: queue.url, token: TOKEN },
    ],
  });
  return controller;
}

const FLOW = "queue/captures";
const metric = (query = `jobs_waiting{queue="${FLOW}"}`) => ({ kind: "prometheus", connection: "metrics", query, flowLabel: "queue" });
const tells = (value: string, flow = FLOW): string => `jobs_waiting{queue="${flow}"} ${value}\n`;
const until = (pool: string, size: number, trouble: string | null = null) =>
  expect.poll(() => controller?.decided(pool), PATIENT).toEqual({ size, trouble });
/** Also some polls later. */
async function stays(pool: string, size: number, trouble: string | null = null): Promise<void> {
  await until(pool, size, trouble);
  await controller?.pass(SOME_POLLS_MS);
  expect(await controller?.decided(pool)).toEqual({ size, trouble });
}

test("a metric that turns NaN, −1, nothing and 503, and then returns: the size stays at each, and follows again (K11)", async () => {
  const deciding = await start();
  east.metrics = tells("6");
  await deciding.follow("capture", metric(), FLOW);
  await until("capture", 6);
  for (const [value, trouble] of [
    ["NaN", "not_a_number"],
    ["-1", "negative"],
    ["+Inf", "infinite"],
  ] as const) {
    east.metrics = tells(value);
    await stays("capture", 6, trouble);
  }
  east.metrics = "";
  await stays("capture", 6, "missing");
  await east.kill();
  expect(await east.status()).toBe(503);
  await stays("capture", 6, "unreachable");
  expect(deciding.demand("capture")?.trouble?.detail).toMatch(/503/);
  east.metrics = tells("9");
  await east.launch();
  await until("capture", 9);
});

test("from zero too what cannot be read brings nobody, until the declared fallback does (K11)", async () => {
  const deciding = await start();
  east.metrics = tells("NaN", "queue/nobody");
  const zero = { size: { desired: 0, floor: 0, max: 12 } };
  await deciding.follow("held", metric('jobs_waiting{queue="queue/nobody"}'), "queue/nobody", {}, zero);
  const fallback = { fallback: { after: "8s", instances: 2 } };
  await deciding.follow("lifted", metric('jobs_waiting{queue="queue/nobody"}'), "queue/nobody", fallback, zero);
  await expect.poll(() => deciding.phases("lifted"), PATIENT).toEqual(["serving", "serving"]);
  expect([await deciding.phases("held"), deciding.demand("held")?.trouble?.code]).toEqual([[], "not_a_number"]);
});

test("84 may be made for 42 messages, and 42 are; those that are still coming are counted, so that nobody asks for them twice (K1)", async () => {
  const deciding = await start();
  deciding.readyAfterMs = 12_000;
  await redis.command("RPUSH", "messages", ...Array.from({ length: 42 }, (_, index) => `message ${index}`));
  const signal = { kind: "redis-list", connection: "cache", list: "messages" };
  const size = { size: { desired: 1, floor: 1, max: 84 } };
  await deciding.follow("capture", signal, "redis/messages", { target: 0.5, tolerance: 0 }, size);
  await until("capture", 42);
  await expect.poll(async () => (await deciding.phases("capture")).length, PATIENT).toBe(42);
  await controller?.pass(SOME_POLLS_MS);
  expect((await deciding.phases("capture")).filter((phase) => phase === "serving")).toEqual([]);
  expect([await deciding.decided("capture"), (await deciding.phases("capture")).length]).toEqual([{ size: 42, trouble: null }, 42]);
  const serving = async (): Promise<number> => (await deciding.phases("capture")).filter((phase) => phase === "serving").length;
  await expect.poll(serving, PATIENT).toBe(42);
  await stays("capture", 42);
});

test("a backlog that its server calls another flow's, the sibling's, changes nothing, however large it is (K1)", async () => {
  const deciding = await start();
  east.metrics = tells("2") + tells("900", "queue/sibling");
  await deciding.follow("capture", metric('jobs_waiting{queue="queue/sibling"}'), FLOW);
  await stays("capture", 1, "other_flow");
  await deciding.follow("well", metric(), FLOW);
  await until("well", 2);
});

test("a consumer group that was never made is no empty one; a stream that is deleted and made again neither (K11)", async () => {
  const deciding = await start();
  for (let each = 0; each < 5; each += 1) await redis.command("XADD", "stream", "*", "url", "x");
  await deciding.follow(
    "capture",
    { kind: "redis-stream", connection: "cache", stream: "stream", group: "workers" },
    "redis/stream/workers",
  );
  await stays("capture", 1, "missing");
  await redis.command("XGROUP", "CREATE", "stream", "workers", "0");
  await until("capture", 5);
  await redis.command("DEL", "stream");
  await stays("capture", 5, "missing");
  await redis.command("XGROUP", "CREATE", "stream", "workers", "0", "MKSTREAM");
  for (let each = 0; each < 8; each += 1) await redis.command("XADD", "stream", "*", "url", "x");
  await until("capture", 8);
});

test("a queue that is deleted holds the size; made again it is followed from where it was (K11)", async () => {
  const deciding = await start();
  const add = (count: number, run: string) =>
    queue.client().add(
      "captures",
      Array.from({ length: count }, (_, index) => ({ id: `${run}-${index}`, payload: {} })),
    );
  await add(4, "one");
  await deciding.follow("capture", { kind: "queue", connection: "main", queue: "captures" }, FLOW);
  await until("capture", 4);
  await queue.client().delete("captures");
  await stays("capture", 4, "missing");
  await add(7, "two");
  await until("capture", 7);
});

test.each([300_000, -300_000])("a metric source whose clock is %i ms off ours is followed by its own clock (K11)", async (aheadMs) => {
  const deciding = await start({ aheadMs });
  const flow = `queue/clocks-${aheadMs}`;
  east.metrics = tells("3", flow);
  await deciding.follow("capture", metric(`jobs_waiting{queue="${flow}"}`), flow, { maxAge: "10s" });
  await until("capture", 3);
  east.metrics = tells("5", flow);
  await until("capture", 5);
  await deciding.pass(12_000);
  expect(await deciding.decided("capture")).toEqual({ size: 5, trouble: null });
});

/** Two have a Prometheus, one of them with a route and a credential of its own. */
const SITES = ["east", "west", "north", "south"];

async function checked(sites: readonly string[], pool: string): Promise<readonly string[]> {
  const deciding = await start(pool === "broken" ? { westToken: "expired" } : {});
  east.metrics = tells("2");
  west.metrics = tells("3");
  await deciding.createDeployment("web", 2);
  const target = { blueprint: undefined, target: { kind: "Deployment", name: "web" }, sites };
  await deciding.follow(pool, metric(), FLOW, {}, target);
  await expect.poll(() => deciding.controlPlane.findPool(`default/${pool}`), PATIENT).toBeDefined();
  const rows = async (): Promise<readonly string[]> =>
    (await deciding.controlPlane.preflight(`default/${pool}`)).map(({ site, check, state }) => `${site}: ${check} ${state}`);
  // Both have been scraped.
  await expect.poll(rows, PATIENT).toContain("east: value ok");
  if (pool !== "broken") await expect.poll(rows, PATIENT).toContain("west: value ok");
  return rows();
}

const adopted = (pool: string): Promise<unknown> =>
  (controller as DecidingController).controlPlane
    .adopt({ pool: `default/${pool}`, by: "alice", removeOwner: null, acceptManagers: [], dryRun: false })
    .then(
      ({ outcome }) => outcome,
      ({ code, found }: { readonly code: string; readonly found: unknown }) => `${code}: ${String(found)}`,
    );

test("four sites, two without Prometheus, one with a credential route of its own: one preflight reports each, and nothing is taken over (K2, K8)", async () => {
  expect(await checked(SITES, "capture")).toEqual([
    "east: signal ok",
    "east: credentials ok",
    "east: flow ok",
    "east: value ok",
    "west: signal ok",
    "west: credentials ok",
    "west: flow ok",
    "west: value ok",
    "north: signal refused",
    "south: signal refused",
    "east, west, north, south: owner ok",
  ]);
  expect(await adopted("capture")).toMatch(
    /^adopt_signal_invalid: not_available: connection metrics .* does not exist at site north, south$/,
  );
  expect([await controller?.replicasOf("web"), (await controller?.decided("capture"))?.size]).toEqual([2, 1]);
});

test("a credential that is broken at one site is caught there by a real call, before anything is taken over (K8)", async () => {
  expect(await checked(["east", "west"], "broken")).toEqual([
    "east: signal ok",
    "east: credentials ok",
    "east: flow ok",
    "east: value ok",
    "west: signal ok",
    "west: credentials refused",
    "east, west: owner ok",
  ]);
  expect(await adopted("broken")).toMatch(/^preflight_refused: west, credentials: /);
  expect(await controller?.replicasOf("web")).toBe(2);
});
