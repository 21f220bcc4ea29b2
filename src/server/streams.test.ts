import { afterEach, expect, test } from "vitest";
import type { FastifyInstance } from "fastify";
import { epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { reason } from "../model/reasons.ts";
import { storeUnavailable } from "../store/port.ts";
import { createServer } from "./app.ts";
import type { Authenticator, Caller } from "./callers.ts";
import type { JournalEntry } from "./control-plane.ts";
import { createLogger } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { FakeControlPlane, NOON } from "./testing/fake-control-plane.ts";

const running: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of running.splice(0)) await app.close();
});

async function listening(
  fake: FakeControlPlane,
  authenticators: readonly Authenticator[] = [],
): Promise<{ readonly url: string; readonly clock: VirtualClock; readonly app: FastifyInstance }> {
  const clock = new VirtualClock(NOON);
  const log = createLogger({ level: "silent", name: "test", clock });
  const options = { host: "127.0.0.1", token: null, webhookSecret: null, version: "0.0.0" };
  const app = await createServer({ controlPlane: fake, metrics: createMetrics(), log, clock, options, authenticators });
  running.push(app);
  return { url: await app.listen({ host: "127.0.0.1", port: 0 }), clock, app };
}

/** The lines of a stream, one at a time. */
async function reading(url: string, token = "none"): Promise<{ next(): Promise<unknown>; stop(): Promise<void> }> {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(200);
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let buffered = "";
  return {
    async next() {
      for (;;) {
        const end = buffered.indexOf("\n");
        if (end >= 0) {
          const line = buffered.slice(0, end);
          buffered = buffered.slice(end + 1);
          return JSON.parse(line) as unknown;
        }
        const chunk = await reader?.read();
        if (chunk === undefined || chunk.done) return "ended";
        buffered += chunk.value;
      }
    },
    async stop() {
      await reader?.cancel();
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { timeout: 5_000, interval: 5 }).toBe(true);
}

const REPORT = {
  replica: "gw-1",
  sequence: 1,
  routes: [
    {
      route: "orders",
      applied: epoch(0, 7),
      members: [{ instance: "orders-a", incarnation: 1, requests: 2, upgraded: 0, sessions: 1, health: "passing", healthReason: null }],
      counts: { accepted: 9, completed: 7, inFlight: 2, queued: 0, rejected: 0, cut: 0, retried: 0 },
    },
  ],
};

test("a gateway replica gets all routes first, then what changes, and a ping each second of silence", async () => {
  const fake = new FakeControlPlane();
  const { url, clock } = await listening(fake);
  const stream = await reading(`${url}/gateway/v1/stream?replica=gw-1`);

  const first = await stream.next();
  await clock.advance(1_000);
  const second = await stream.next();
  fake.gateways.get("gw-1")?.({ type: "membership", complete: false, routes: [], ttlMs: 10_000 });
  const third = await stream.next();

  expect([first, second, third]).toEqual([
    { type: "membership", complete: true, routes: [], ttlMs: 10_000 },
    { type: "ping" },
    { type: "membership", complete: false, routes: [], ttlMs: 10_000 },
  ]);
  await stream.stop();
  await until(() => !fake.gateways.has("gw-1"));
  expect(clock.pendingTimers).toBe(0);
});

test("a second stream of a replica ends its first", async () => {
  const fake = new FakeControlPlane();
  const { url } = await listening(fake);
  const former = await reading(`${url}/gateway/v1/stream?replica=gw-1`);
  await former.next();

  const later = await reading(`${url}/gateway/v1/stream?replica=gw-1`);

  expect(await former.next()).toBe("ended");
  expect(await later.next()).toMatchObject({ type: "membership", complete: true });
  expect([...fake.gateways.keys()]).toEqual(["gw-1"]);
});

test("a replica that does not read is cut off at the bound, and the control plane is told", async () => {
  const fake = new FakeControlPlane();
  const { url } = await listening(fake);
  await fetch(`${url}/gateway/v1/stream?replica=gw-1`);
  await until(() => fake.gateways.has("gw-1"));
  const send = fake.gateways.get("gw-1");
  const line = { type: "membership" as const, complete: false, routes: [], ttlMs: 1, padding: "x".repeat(1024 * 1024) };

  let sent = 0;
  while (sent < 64 && send?.(line)) sent++;

  expect(sent).toBeGreaterThan(4);
  expect(sent).toBeLessThan(32);
  expect(fake.gateways.has("gw-1")).toBe(false);
  expect(send?.({ type: "ping" })).toBe(false);
});

test("a replica is refused with 503 while it cannot be registered, and may come again", async () => {
  const fake = new FakeControlPlane({ failure: storeUnavailable("disk full", new Error("ENOSPC")) });
  const { url } = await listening(fake);

  const refused = await fetch(`${url}/gateway/v1/stream?replica=gw-1`);
  fake.state.failure = undefined;
  const again = await reading(`${url}/gateway/v1/stream?replica=gw-1`);

  expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([503, "store_unavailable"]);
  expect(await again.next()).toMatchObject({ type: "membership" });
});

test("a report is passed on; one with a wrong field names it", async () => {
  const fake = new FakeControlPlane();
  const { url } = await listening(fake);
  const post = (body: unknown) =>
    fetch(`${url}/gateway/v1/reports`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

  const good = await post(REPORT);
  const bad = await post({ ...REPORT, routes: [{ ...REPORT.routes[0], applied: "seven" }] });

  expect([good.status, await good.text()]).toEqual([204, ""]);
  expect(fake.reports).toEqual([REPORT]);
  expect([bad.status, await bad.json()]).toMatchObject([
    400,
    { error: { code: "body_invalid", field: "routes[0].applied", found: "seven" } },
  ]);
});

test("a watcher sees the transitions of its pool from its first line on", async () => {
  const fake = new FakeControlPlane();
  const { url } = await listening(fake);
  const entry: JournalEntry = {
    at: NOON,
    kind: "phase",
    pool: "default/orders",
    subject: "orders-a",
    code: "serving",
    from: "admitted",
    reason: reason("validated"),
  };
  const stream = await reading(`${url}/v1/watch?pool=default/orders`);
  const first = await stream.next();

  for (const listener of fake.listeners) {
    listener({ ...entry, pool: "default/other" });
    listener(entry);
  }

  expect([first, await stream.next()]).toEqual([
    { type: "ping" },
    {
      type: "transition",
      at: "2030-01-01T12:00:00.000Z",
      kind: "phase",
      pool: "default/orders",
      subject: "orders-a",
      code: "serving",
      from: "admitted",
      reason: { code: "validated", sentence: "its own health check passed" },
    },
  ]);
  await stream.stop();
  await until(() => fake.listeners.size === 0);
});

test("a watch ends within a minute after its token has ended; while nobody can tell it goes on", async () => {
  let known: "yes" | "away" | "no" = "yes";
  const identify = async (): Promise<Caller | undefined> => {
    if (known === "away") throw new RelevoError("auth_unavailable", "Nobody can tell.", { class: "retryable" });
    return known === "yes" ? { kind: "person", name: "vera", role: "viewer" } : undefined;
  };
  const fake = new FakeControlPlane();
  const { url, clock } = await listening(fake, [{ identify }]);
  const stream = await reading(`${url}/v1/watch`, "t");
  expect(await stream.next()).toEqual({ type: "ping" });
  for (const state of ["yes", "away"] as const) {
    known = state;
    await clock.advance(60_000);
    expect(fake.listeners.size).toBe(1);
  }
  known = "no";
  await clock.advance(60_000);
  await until(() => fake.listeners.size === 0);
});

test("closing the server ends the streams", async () => {
  const fake = new FakeControlPlane();
  const { url, app } = await listening(fake);
  const gateway = await reading(`${url}/gateway/v1/stream?replica=gw-1`);
  await gateway.next();
  const watcher = await reading(`${url}/v1/watch`);
  await watcher.next();

  await app.close();

  expect([await gateway.next(), await watcher.next()]).toEqual(["ended", "ended"]);
  expect([fake.gateways.size, fake.listeners.size]).toEqual([0, 0]);
});
