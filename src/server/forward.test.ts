import { request } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../kernel/system.ts";
import { createServer } from "./app.ts";
import type { ControlPlane, Subject } from "./control-plane.ts";
import { createLogger } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { FakeControlPlane } from "./testing/fake-control-plane.ts";

const TOKEN = "the-token-of-the-operators";

interface Replica {
  readonly url: string;
  readonly asked: Subject[];
  /** What was asked of it, by path and query. */
  readonly seen: string[];
  readonly fake: FakeControlPlane;
}

/** `elsewhere`: whose everything is, from where it stands. */
async function replica(elsewhere: () => { readonly id: string; readonly api: string | null } | undefined): Promise<Replica> {
  const fake = new FakeControlPlane();
  const asked: Subject[] = [];
  const seen: string[] = [];
  const controlPlane: ControlPlane = Object.assign(fake, {
    elsewhere: async (subject: Subject) => {
      asked.push(subject);
      return elsewhere();
    },
  });
  const log = createLogger({ level: "silent", name: "test", clock: systemClock });
  const server = await createServer({
    options: { host: "127.0.0.1", token: TOKEN, webhookSecret: null, version: "0.0.0" },
    controlPlane,
    metrics: createMetrics(),
    log,
    clock: systemClock,
  });
  server.server.on("request", ({ url }) => void seen.push(url ?? ""));
  onTestFinished(() => server.close());
  return { url: await server.listen({ host: "127.0.0.1", port: 0 }), asked, seen, fake };
}

const post = (url: string, body: unknown, token = TOKEN) =>
  fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const FREEZE = { pool: "shop/orders", for: "2h", why: "an audit", by: "ann" };

test("a command for a pool that another replica has is answered by that one, with the caller's authorization", async () => {
  const owner = await replica(() => undefined);
  const other = await replica(() => ({ id: "owner", api: owner.url }));

  const answer = await post(`${other.url}/v1/freeze`, FREEZE);

  expect(answer.status).toBe(await post(`${owner.url}/v1/freeze`, FREEZE).then(({ status }) => status));
  expect(other.asked).toEqual([{ pool: "shop/orders" }]);
  // Once by the other replica, unasked, and once by the test itself.
  expect(owner.asked).toEqual([{ pool: "shop/orders" }]);
});

test("it is passed on once, also between two that each hold the other for the owner", async () => {
  const urls: string[] = [];
  const one = await replica(() => ({ id: "two", api: urls[1] ?? null }));
  const two = await replica(() => ({ id: "one", api: urls[0] ?? null }));
  urls.push(one.url, two.url);

  await post(`${one.url}/v1/freeze`, FREEZE);

  expect([one.asked.length, two.asked.length]).toEqual([1, 0]);
});

test("who may not call is refused before anybody else is asked", async () => {
  const other = await replica(() => ({ id: "owner", api: "http://127.0.0.1:1" }));
  expect((await post(`${other.url}/v1/freeze`, FREEZE, "a-guess")).status).toBe(401);
  expect((await post(`${other.url}/v1/freeze`, { ...FREEZE, for: "soon" })).status).toBe(400);
  expect(other.asked).toEqual([]);
});

test("an owner that does not answer is told, with what to do", async () => {
  const other = await replica(() => ({ id: "controller-2", api: "http://127.0.0.1:1" }));
  const answer = await post(`${other.url}/v1/freeze`, FREEZE);
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: { code: "owner_unreachable", found: "controller-2" } });
});

test("what concerns all pools, or none, is answered where it arrives", async () => {
  const other = await replica(() => ({ id: "owner", api: "http://127.0.0.1:1" }));
  expect((await post(`${other.url}/v1/freeze`, { ...FREEZE, pool: null })).status).toBe(200);
  const answer = await fetch(`${other.url}/v1/controllers`, { headers: { authorization: `Bearer ${TOKEN}` } });
  expect(await answer.json()).toEqual({ items: [{ controller: "controller-1", api: null, here: true, live: true, pools: [] }] });
  expect(other.asked).toEqual([]);
});

test("a request line that names another host changes nothing of where a request is passed on", async () => {
  const owner = await replica(() => undefined);
  const stranger = await replica(() => undefined);
  const other = await replica(() => ({ id: "owner", api: owner.url }));
  const headers = { authorization: `Bearer ${TOKEN}` };
  // As to a proxy: `GET http://stranger/v1/explain?… HTTP/1.1`.
  const answer = Promise.withResolvers<number | undefined>();
  request(other.url, { path: `${stranger.url}/v1/explain?subject=orders`, headers }, (response) =>
    answer.resolve(response.resume().statusCode),
  )
    .on("error", answer.reject)
    .end();

  await answer.promise;

  expect([other.asked, owner.asked, stranger.asked]).toEqual([[{ poolOrInstance: "orders" }], [], []]);
  expect([owner.seen, stranger.seen]).toEqual([["/v1/explain?subject=orders"], []]);
});
