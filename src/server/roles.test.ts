/** Each route has its role, and nobody gets past it. */
import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { signBody } from "./access.ts";
import { createServer } from "./app.ts";
import type { Caller } from "./callers.ts";
import { createLogger } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { isRole, mayActAs, type Need, ROLES, ROUTE_NEEDS, roleFor } from "./roles.ts";
import { FakeControlPlane, NOON } from "./testing/fake-control-plane.ts";

const CALLERS: Readonly<Record<string, Caller>> = {
  viewer: { kind: "person", name: "vera", role: "viewer" },
  operator: { kind: "person", name: "olaf", role: "operator" },
  admin: { kind: "person", name: "ada", role: "admin" },
  none: { kind: "person", name: "nora", role: null },
  gateway: { kind: "gateway", name: "gw-1", replica: "gw-1" },
  agent: { kind: "agent", name: "node-a", node: "node-a" },
};

const SECRET = "the-secret-of-a-webhook";

async function aServer(webhookSecret: string | null = null) {
  const clock = new VirtualClock(NOON);
  const fake = new FakeControlPlane();
  const log = createLogger({ level: "silent", name: "test", clock });
  const app = await createServer({
    options: { host: "127.0.0.1", token: null, webhookSecret, version: "0.0.0" },
    controlPlane: fake,
    metrics: createMetrics(),
    log,
    clock,
    authenticators: [{ identify: async (token) => CALLERS[token] }],
  });
  const call = async (route: string, token: string | null, payload?: object) => {
    const [method = "", url = ""] = route.split(" ");
    return app.inject({
      method: method as "GET" | "POST",
      url: url.replaceAll(/:\w+/g, "x"),
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      ...(payload === undefined ? {} : { payload }),
    });
  };
  return { app, fake, call };
}

/** Who is let past the door; what they then get for a body that is none is another matter. */
function mayPass(caller: Caller, need: Need): boolean {
  if (need === "public" || need === "instance") return true;
  if (caller.kind === "person") return caller.role !== null && mayActAs(caller.role, roleFor(need));
  return need === (caller.kind === "gateway" ? "gateway" : "sender");
}

test("every route that is served has a row, and every row a route", async () => {
  const { app } = await aServer();
  const served = Object.entries((await app.inject({ url: "/openapi.json" })).json().paths as Record<string, object>).flatMap(
    ([url, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${url.replaceAll(/\{(\w+)\}/g, ":$1")}`),
  );
  expect(Object.keys(ROUTE_NEEDS).toSorted()).toEqual([...served, "GET /openapi.json"].toSorted());
});

// A stream has no end to wait for once it was let in.
const STREAMS = ["GET /v1/watch", "GET /gateway/v1/stream"];

test.each(Object.entries(ROUTE_NEEDS))(
  "%s is for %s: whoever may not gets 403 with what is needed, without a token 401",
  async (route, need) => {
    const { fake, call } = await aServer();
    for (const [token, caller] of Object.entries(CALLERS)) {
      const passes = mayPass(caller, need);
      if (passes && STREAMS.includes(route)) continue;
      const answer = await call(route, token);
      if (passes) {
        const isRefused = answer.statusCode === 401 || answer.body.includes('"role_missing"');
        expect([token, isRefused]).toEqual([token, false]);
      } else {
        expect([token, answer.statusCode, answer.json().error.code]).toEqual([token, 403, "role_missing"]);
        expect(answer.json().error.allowed).toContain(roleFor(need as never));
      }
    }
    const isOpen = need === "public" || need === "instance"; // the latter looks at the token itself, once the body is one
    const anonymous = await call(route, null);
    const stranger = await call(route, "no-such-token");
    expect([anonymous.statusCode === 401, stranger.statusCode === 401]).toEqual([!isOpen, !isOpen]);
    expect(fake.calls.filter(({ call: name }) => name === "renewLease")).toEqual([]);
  },
);

test("a role may do what those below it may", () => {
  expect(ROLES.map((role) => ROLES.map((wanted) => mayActAs(role, wanted)))).toEqual([
    [true, false, false],
    [true, true, false],
    [true, true, true],
  ]);
  expect(Object.values(ROUTE_NEEDS).filter(isRole).length).toBeGreaterThan(20);
});

test("a route that is not there tells nobody so without a token", async () => {
  const { app } = await aServer();
  expect((await app.inject({ url: "/v1/no-such", headers: { authorization: "Bearer viewer" } })).json().error.code).toBe("route_not_found");
  expect((await app.inject({ url: "/v1/no-such" })).statusCode).toBe(401);
});

test("who did it is who the token says, whatever the body says", async () => {
  const { fake, call } = await aServer();
  const answers = [
    await call("POST /v1/freeze", "olaf", {}),
    await call("POST /v1/freeze", "operator", { pool: null, for: "1h", why: "test", by: "somebody else" }),
    await call("POST /v1/unfreeze", "operator", { pool: null }),
    await call("POST /v1/store/recover", "admin", { why: "a backup" }),
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 200, 200, 200]);
  expect(fake.calls.map(({ call: name, with: given }) => [name, (given as { by?: string }).by])).toEqual([
    ["freeze", "olaf"],
    ["unfreeze", "olaf"],
    ["recoverStore", "ada"],
  ]);
});

test("whoami tells the name and the role", async () => {
  const { call } = await aServer();
  expect((await call("GET /v1/whoami", "viewer")).json()).toEqual({ name: "vera", role: "viewer" });
});

const REPORT = { sequence: 1, at: 1, leaving: false, routes: [] };

test("a gateway speaks for its own replica alone, and for a process that it was before", async () => {
  const { fake, call } = await aServer();
  const report = async (replica: string) => (await call("POST /gateway/v1/reports", "gateway", { ...REPORT, replica })).body;
  const stream = async (query: string) => (await call(`GET /gateway/v1/stream?${query}`, "gateway")).json().error.code;

  expect([await report("gw-1"), await report("gw-1-0123456789")]).toEqual(["", ""]);
  for (const other of ["gw-2", "gw-1-x", "gw-10123456789"]) expect(await report(other)).toContain('"replica_not_yours"');
  expect(await stream("replica=gw-2")).toBe("replica_not_yours");
  // Whoever is named as predecessor is waited for no longer.
  expect(await stream("replica=gw-1&predecessor=gw-2")).toBe("replica_not_yours");
  expect(fake.reports.map(({ replica }) => replica)).toEqual(["gw-1", "gw-1-0123456789"]);
});

test("an agent sends what agents send, for its own node", async () => {
  const { fake, call } = await aServer();
  const beat = { from: "node-a", everyMs: 30_000 };
  expect((await call("POST /v1/notices/eventbridge", "agent", {})).json().error.code).toBe("source_not_yours");
  expect((await call("POST /v1/sources/eventbridge/heartbeat", "agent", beat)).json().error.code).toBe("source_not_yours");
  expect((await call("POST /v1/sources/eventbridge/heartbeat", "operator", beat)).statusCode).toBe(204);
  await call("POST /v1/notices/ec2-metadata", "agent", {});
  // Of which machine it may speak is known where the nodes are.
  expect(fake.calls.map(({ call: name, with: given }) => [name, (given as { node?: string }).node])).toEqual([
    ["receiveHeartbeat", undefined],
    ["receiveNotice", "node-a"],
  ]);
});

test("many wrong tokens from one address are not looked at any more; who was let in lately still is", async () => {
  const { app, call } = await aServer(SECRET);
  expect((await call("GET /v1/pools", "viewer")).statusCode).toBe(200);
  const guesses = [];
  for (let guess = 0; guess < 25; guess++) guesses.push((await call("GET /v1/pools", `guess-${guess}`)).statusCode);
  expect(guesses).toEqual([...Array<number>(20).fill(401), ...Array<number>(5).fill(429)]);
  expect((await call("GET /v1/pools", "operator")).json().error.code).toBe("too_many_failures");
  // A notice that is signed is no guess at a token, whoever else is at that address.
  const payload = "{}";
  const headers = { "content-type": "application/json", "x-relevo-signature": signBody(payload, SECRET) };
  const notice = await app.inject({ method: "POST", url: "/v1/notices/eventbridge", headers, payload });
  expect([notice.statusCode === 429, notice.statusCode === 401]).toEqual([false, false]);
  expect((await call("GET /v1/pools", "viewer")).statusCode).toBe(200);
});
