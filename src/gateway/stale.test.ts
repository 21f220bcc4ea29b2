/** Answers of those that may no longer write are rejected as stale (S10, I1, I2). */
import { connect } from "node:http2";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type Epoch, epoch } from "../kernel/epoch.ts";
import { WRITER_EPOCH_HEADER } from "../model/writer.ts";
import { isStale, isStaleEpoch, newerWriter } from "./stale.ts";
import {
  checkCounts,
  membershipLine,
  type RouteGiven,
  send,
  startInstance,
  startTestGateway,
  type TestInstance,
  until,
  untilReady,
} from "./testing/gateway.ts";

const writer = (counter: number) => ({ ordinal: 0, minAccepted: epoch(1, counter) });

test("a tombstone never falls; that of another place, which a recovery may bring, says nothing about this one (I2)", () => {
  const of = (ordinal: number, counter: number) => ({ ordinal, minAccepted: epoch(1, counter) });
  expect(newerWriter(of(3, 9), of(3, 2))).toEqual(of(3, 9));
  expect(newerWriter(of(3, 2), of(3, 9))).toEqual(of(3, 9));
  expect(newerWriter(of(3, 9), of(1, 2))).toEqual(of(1, 2));
  expect([newerWriter(of(3, 9), null), newerWriter(null, of(3, 9))]).toEqual([of(3, 9), of(3, 9)]);
});

describe("an epoch is stale when it", () => {
  test.each([
    ["1.4", "1.5", true],
    ["1.5", "1.5", false],
    ["1.6", "1.5", false],
    ["1.10", "1.9", false],
    ["2.0", "1.9", false],
    ["1.9", "2.0", true],
    ["", "1.1", true],
    ["1", "1.1", true],
    ["1.05", "1.1", true],
    ["-1.2", "1.1", true],
  ])("is %j and %j is the least that is accepted: %s", (said, minAccepted, stale) => {
    expect(isStaleEpoch(said, minAccepted as Epoch)).toBe(stale);
  });

  test("is said twice, whatever is said", () => {
    expect(isStale(writer(1), { [WRITER_EPOCH_HEADER]: ["1.1", "1.1"] })).toBe(true);
    expect(isStale(writer(1), { [WRITER_EPOCH_HEADER]: "1.1, 1.1" })).toBe(true);
  });

  test("an answer that says nothing is not compared", () => {
    expect(isStale(writer(5), {})).toBe(false);
  });
});

/** Says the epoch that it was given with each answer; `/held` answers when it is told to. */
async function startWriter(name: string, says: () => string | null) {
  const held: (() => void)[] = [];
  const instance = await startInstance(name, (request, response) => {
    const said = says();
    if (said !== null) response.setHeader(WRITER_EPOCH_HEADER, said);
    if (request.url?.startsWith("/stream") === true) {
      response.write("begin ");
      held.push(() => response.end("end"));
    } else if (request.url === "/held") held.push(() => response.end(name));
    else response.end(name);
  });
  return { instance, held };
}

async function startRoute(...members: RouteGiven["members"]) {
  const gateway = await startTestGateway();
  let generation = 0;
  const apply = (given: RouteGiven["members"]) => {
    generation += 1;
    gateway.apply(membershipLine([{ generation: epoch(1, generation), members: given }]));
  };
  apply(members);
  await untilReady(gateway);
  const counts = () => {
    checkCounts(gateway);
    return { ...gateway.core.ledger.of("orders").counts };
  };
  const outcomes = () => Object.fromEntries(gateway.core.ledger.of("orders").outcomes);
  return { gateway, apply, counts, outcomes };
}

describe("an answer under", () => {
  test("the accepted epoch passes, and the header does not (HTTP/1.1)", async () => {
    const { instance } = await startWriter("orders-1", () => "1.5");
    const { gateway } = await startRoute(instance.member({ writer: writer(5) }));
    const answer = await send(gateway);
    expect(answer).toMatchObject({ status: 200, body: "orders-1" });
    expect(answer.headers).not.toHaveProperty(WRITER_EPOCH_HEADER);
  });

  test("an epoch of a route without a writer is nobody's business, and is not passed on", async () => {
    const { instance } = await startWriter("orders-1", () => "0.0");
    const { gateway } = await startRoute(instance.member());
    const answer = await send(gateway, { method: "POST", body: "x", headers: { [WRITER_EPOCH_HEADER]: "9.9" } });
    expect(answer.status).toBe(200);
    expect(answer.headers).not.toHaveProperty(WRITER_EPOCH_HEADER);
    expect(instance.seen[0]?.headers).not.toHaveProperty(WRITER_EPOCH_HEADER);
  });

  test("an older one is rejected, and counted as rejected, also when its member is not fenced", async () => {
    const { instance } = await startWriter("orders-1", () => "1.4");
    const { gateway, counts } = await startRoute(instance.member({ writer: writer(5) }));
    const answer = await send(gateway, { method: "POST", body: "x" });
    expect(answer).toMatchObject({ status: 502, headers: { "relevo-rejected": "stale_writer" } });
    expect(answer.headers).not.toHaveProperty(WRITER_EPOCH_HEADER);
    expect(counts()).toMatchObject({ accepted: 1, rejected: 1, completed: 0, inFlight: 0 });
  });

  test("an older one is tried elsewhere when the request is idempotent", async () => {
    const stale = await startWriter("orders-1", () => "1.4");
    const current = await startWriter("orders-2", () => "1.5");
    const { gateway, counts } = await startRoute(
      stale.instance.member({ writer: writer(5) }),
      current.instance.member({ writer: writer(5) }),
    );
    const answers = await Promise.all([send(gateway), send(gateway), send(gateway)]);
    expect(answers.map(({ status, body }) => [status, body])).toEqual(Array(3).fill([200, "orders-2"]));
    expect(stale.instance.seen.length).toBeGreaterThan(0);
    expect(counts()).toMatchObject({ accepted: 3, completed: 3, rejected: 0 });
  });

  test("an older one is rejected for HTTP/2 clients too", async () => {
    const { instance } = await startWriter("orders-1", () => "1.4");
    const { gateway } = await startRoute(instance.member({ writer: writer(5) }));
    const answer = await askH2(gateway.url, { ":method": "POST", ":path": "/" }).ended;
    expect(answer.headers).toMatchObject({ ":status": 502, "relevo-rejected": "stale_writer" });
  });
});

describe("when a member is fenced", () => {
  const fenced = (instance: TestInstance) => instance.member({ state: "fenced", writer: writer(6) });

  test("what waits for its answer is tried elsewhere if it is idempotent, and rejected if not", async () => {
    const old = await startWriter("orders-1", () => "1.5");
    const next = await startWriter("orders-2", () => "1.6");
    const { gateway, apply, counts, outcomes } = await startRoute(old.instance.member({ writer: writer(5) }));
    const get = send(gateway, { path: "/held" });
    const post = send(gateway, { path: "/held", method: "POST", body: "x" });
    await until("both are taken", () => old.held.length === 2);

    apply([fenced(old.instance), next.instance.member({ writer: writer(6) })]);
    await until("one is tried elsewhere", () => next.held.length === 1);
    for (const answer of [...old.held, ...next.held]) answer();

    expect(await get).toMatchObject({ status: 200, body: "orders-2" });
    expect(await post).toMatchObject({ status: 502, headers: { "relevo-rejected": "stale_writer" } });
    expect(counts()).toMatchObject({ accepted: 2, completed: 1, rejected: 1, cut: 0, inFlight: 0 });
    expect(outcomes()).toEqual({ completed: 1, stale_writer: 1 });
  });

  test("a streaming answer is cut, for HTTP/1.1 and HTTP/2 clients", async () => {
    const old = await startWriter("orders-1", () => "1.5");
    const { gateway, apply, counts, outcomes } = await startRoute(old.instance.member({ writer: writer(5) }));
    const h1 = send(gateway, { path: "/stream" });
    const h2 = askH2(gateway.url, { ":path": "/stream" });
    await until("both stream", () => old.held.length === 2 && h2.text() === "begin ");

    apply([fenced(old.instance)]);

    await expect(h1).rejects.toThrow();
    expect((await h2.ended).rstCode).not.toBe(0);
    expect(counts()).toMatchObject({ accepted: 2, completed: 0, cut: 2, inFlight: 0 });
    expect(outcomes()).toEqual({ stale_writer: 2 });
  });

  test("its WebSockets are cut", async () => {
    const one = await startInstance("orders-1", (_, response) => response.end());
    const sockets = new WebSocketServer({ server: one.server });
    sockets.on("headers", (headers) => headers.push(`${WRITER_EPOCH_HEADER}: 1.5`));
    const { gateway, apply, counts, outcomes } = await startRoute(one.member({ writer: writer(5) }));
    const client = openWebSocket(gateway.url);
    await until("it is open", () => client.socket.readyState === WebSocket.OPEN);
    expect(client.headers()).not.toHaveProperty(WRITER_EPOCH_HEADER);

    apply([fenced(one)]);

    await until("it is closed", () => client.socket.readyState === WebSocket.CLOSED);
    expect(counts()).toMatchObject({ accepted: 1, completed: 0, cut: 1, inFlight: 0 });
    expect(outcomes()).toEqual({ stale_writer: 1 });
  });

  test("it gets nothing new, also not what belongs to a transaction of its own", async () => {
    const one = await startInstance("orders-1", (_, response) => {
      response.setHeader("relevo-session", "begin; ttl=30");
      response.end("one");
    });
    const { gateway, apply, counts } = await startRoute(one.member({ writer: writer(5) }));
    const token = String((await send(gateway)).headers["relevo-token"]);

    apply([fenced(one)]);
    const follow = await send(gateway, { headers: { "relevo-token": token } });

    expect(follow).toMatchObject({ status: 410, headers: { "relevo-rejected": "session_lost" } });
    expect(one.seen).toHaveLength(1);
    expect(counts()).toMatchObject({ accepted: 2, completed: 1, rejected: 1 });
  });
});

describe("when a workload's tombstone rises under an answer that has begun", () => {
  test("what streams under the older epoch is cut; what says none goes on", async () => {
    let said: string | null = "1.5";
    const one = await startWriter("orders-1", () => said);
    const { gateway, apply, counts } = await startRoute(one.instance.member({ writer: writer(5) }));
    const older = send(gateway, { path: "/stream" });
    await until("it streams", () => one.held.length === 1);
    said = null;
    const silent = askH2(gateway.url, { ":path": "/stream" });
    await until("both stream", () => silent.text() === "begin ");
    await until("both heads have gone out", () => gateway.report().routes[0]?.members[0]?.requests === 2);

    apply([one.instance.member({ writer: writer(6) })]);

    await expect(older).rejects.toThrow();
    one.held[1]?.();
    expect((await silent.ended).body).toBe("begin end");
    expect(counts()).toMatchObject({ accepted: 2, completed: 1, cut: 1 });
  });
});

test("what an answer said that was lost before it was whole is not held against the next one", async () => {
  let lose = (): void => undefined;
  const one = await startInstance("orders-1", (_, response) => {
    response.writeHead(200, { [WRITER_EPOCH_HEADER]: "1.5", "content-length": "10" });
    response.flushHeaders();
    lose = () => void response.socket?.resetAndDestroy();
  });
  const two = await startWriter("orders-2", () => null);
  const { gateway, apply, counts } = await startRoute(one.member({ writer: writer(5) }));
  const answer = askH2(gateway.url, { ":path": "/stream" });
  await until("the first answers", () => one.seen.length === 1);
  apply([one.member({ writer: writer(5) }), two.instance.member({ writer: writer(5) })]);
  await untilReady(gateway);
  lose();
  await until("the second streams", () => answer.text() === "begin ");

  apply([one.member({ writer: writer(5) }), two.instance.member({ writer: writer(6) })]);
  two.held[0]?.();

  expect((await answer.ended).body).toBe("begin end");
  expect(counts()).toMatchObject({ accepted: 1, completed: 1, cut: 0, retried: 1 });
});

test("a WebSocket that is opened under an older epoch is rejected", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end());
  const sockets = new WebSocketServer({ server: one.server });
  sockets.on("headers", (headers) => headers.push(`${WRITER_EPOCH_HEADER}: 1.4`));
  const { gateway, counts } = await startRoute(one.member({ writer: writer(5) }));
  const client = openWebSocket(gateway.url);
  await until("it is refused", () => client.socket.readyState === WebSocket.CLOSED);
  expect(client.status()).toBe(502);
  expect(counts()).toMatchObject({ accepted: 1, rejected: 1, cut: 0, inFlight: 0 });
});

test("a suspect member gets nothing new, finishes what it has, and serves again when it is trusted again (S10)", async () => {
  const one = await startWriter("orders-1", () => "1.5");
  const two = await startWriter("orders-2", () => "1.5");
  const { gateway, apply, counts } = await startRoute(one.instance.member({ writer: writer(5) }));
  const first = send(gateway, { path: "/held", method: "POST", body: "x" });
  await until("it is taken", () => one.held.length === 1);

  apply([one.instance.member({ state: "suspect", writer: writer(5) }), two.instance.member({ writer: writer(5) })]);
  await untilReady(gateway);
  expect((await send(gateway)).body).toBe("orders-2");
  one.held[0]?.();
  expect(await first).toMatchObject({ status: 200, body: "orders-1" });

  apply([one.instance.member({ writer: writer(5) })]);
  expect((await send(gateway)).body).toBe("orders-1");
  expect(counts()).toMatchObject({ accepted: 3, completed: 3, rejected: 0 });
});

function askH2(url: string, headers: Record<string, string>) {
  const session = connect(url);
  session.on("error", () => undefined);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":authority": "orders", ...headers }, { endStream: true });
  let text = "";
  let answered: Record<string, unknown> = {};
  stream.on("response", (given) => {
    answered = given;
  });
  stream.on("data", (chunk) => {
    text += chunk;
  });
  stream.on("error", () => undefined);
  const ended = new Promise<{ headers: Record<string, unknown>; body: string; rstCode: number }>((resolve) =>
    stream.on("close", () => resolve({ headers: answered, body: text, rstCode: stream.rstCode ?? 0 })),
  );
  return { ended, text: () => text };
}

function openWebSocket(url: string) {
  const socket = new WebSocket(url.replace("http", "ws"), { headers: { host: "orders" }, perMessageDeflate: false });
  onTestFinished(() => socket.terminate());
  let status = 0;
  let headers: Record<string, unknown> = {};
  socket.on("upgrade", (response) => {
    headers = response.headers;
  });
  socket.on("unexpected-response", (_, response) => {
    status = response.statusCode ?? 0;
    socket.terminate();
  });
  socket.on("error", () => undefined);
  return { socket, status: () => status, headers: () => headers };
}
