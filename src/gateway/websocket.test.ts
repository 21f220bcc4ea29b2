/** WebSockets through the gateway, with the `ws` package at both ends. */
import { connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { epoch } from "../kernel/epoch.ts";
import { systemClock } from "../kernel/system.ts";
import { checkCounts, membershipLine, send, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";

const clients: WebSocket[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.terminate();
});

async function echoing() {
  const one = await startInstance("orders-1", (_, response) => response.end("plain"));
  const sockets = new WebSocketServer({ server: one.server });
  sockets.on("connection", (socket) => socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary })));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);
  return { one, sockets, gateway };
}

function open(url: string) {
  const socket = new WebSocket(url.replace("http", "ws"), { headers: { host: "orders" }, perMessageDeflate: false });
  clients.push(socket);
  const messages: string[] = [];
  let closed: number | undefined;
  let headers: Record<string, unknown> = {};
  socket.on("upgrade", (response) => {
    headers = response.headers;
  });
  socket.on("message", (data) => messages.push(String(data)));
  socket.on("close", (code) => {
    closed = code;
  });
  socket.on("error", () => undefined);
  return { socket, messages, closed: () => closed, headers: () => headers };
}

const reportOf = (gateway: Awaited<ReturnType<typeof startTestGateway>>) => gateway.report().routes[0];

test("a WebSocket is an obligation of its instance until it is closed, and completes", async () => {
  const { gateway } = await echoing();
  const client = open(gateway.url);
  await until("it is open", () => client.socket.readyState === WebSocket.OPEN);
  client.socket.send("hello");
  client.socket.send("x".repeat(200_000));
  await until("both came back", () => client.messages.length === 2);

  expect(client.headers()).toMatchObject({ "relevo-instance": "orders-1" });
  expect(reportOf(gateway)?.members[0]).toMatchObject({ requests: 1, upgraded: 1 });
  client.socket.close(1000);
  await until("it is closed", () => client.closed() !== undefined && reportOf(gateway)?.members[0]?.requests === 0);

  expect(client.closed()).toBe(1000);
  expect(reportOf(gateway)?.members[0]).toMatchObject({ requests: 0, upgraded: 0 });
  expect(reportOf(gateway)?.counts).toMatchObject({ accepted: 1, completed: 1, cut: 0, inFlight: 0 });
});

test("a client that vanishes ends the obligation, and the instance sees it go", async () => {
  const { gateway, sockets } = await echoing();
  const client = open(gateway.url);
  await until("it is open", () => client.socket.readyState === WebSocket.OPEN);

  client.socket.terminate();

  await until("the instance lost it", () => sockets.clients.size === 0 && reportOf(gateway)?.counts.inFlight === 0);
  expect(reportOf(gateway)?.counts).toMatchObject({ completed: 1, cut: 0, inFlight: 0 });
});

test("when the process is lost the client is told by a close frame, and it counts as cut", async () => {
  const { gateway, one } = await echoing();
  const client = open(gateway.url);
  await until("it is open", () => client.socket.readyState === WebSocket.OPEN);

  await one.kill();

  await until("it is closed", () => client.closed() !== undefined);
  expect(client.closed()).toBe(1011);
  expect(reportOf(gateway)?.counts).toMatchObject({ accepted: 1, completed: 0, cut: 1, inFlight: 0 });
});

test("an instance that closes with 1012 at its deadline completes the session", async () => {
  const { gateway, sockets } = await echoing();
  const client = open(gateway.url);
  await until("it is open", () => client.socket.readyState === WebSocket.OPEN);

  for (const socket of sockets.clients) socket.close(1012, "service restart");

  await until("it is closed", () => client.closed() !== undefined && reportOf(gateway)?.members[0]?.requests === 0);
  expect(client.closed()).toBe(1012);
  expect(reportOf(gateway)?.counts).toMatchObject({ completed: 1, cut: 0 });
});

test("shortly before a deadline that the instance lets pass, the gateway closes with 1012 itself", async () => {
  const { gateway, one } = await echoing();
  const client = open(gateway.url);
  await until("it is open", () => client.socket.readyState === WebSocket.OPEN);

  const deadline = systemClock.now() + 800;
  gateway.apply(membershipLine([{ generation: epoch(1, 2), members: [one.member({ state: "draining", deadline })] }]));

  await until("it is closed", () => client.closed() !== undefined);
  expect(systemClock.now()).toBeLessThan(deadline);
  expect(client.closed()).toBe(1012);
  await until("it is over", () => reportOf(gateway)?.members[0]?.requests === 0);
  expect(reportOf(gateway)?.counts).toMatchObject({ completed: 1, cut: 0 });
});

test("a voluntary drain closes nothing", async () => {
  const { gateway, one } = await echoing();
  const client = open(gateway.url);
  await until("it is open", () => client.socket.readyState === WebSocket.OPEN);

  gateway.apply(membershipLine([{ generation: epoch(1, 2), members: [one.member({ state: "draining" })] }]));
  client.socket.send("still here");

  await until("it came back", () => client.messages.includes("still here"));
  expect(reportOf(gateway)?.members[0]).toMatchObject({ requests: 1, upgraded: 1 });
});

test("a sealed member's WebSockets are closed", async () => {
  const { gateway, one } = await echoing();
  const client = open(gateway.url);
  await until("it is open", () => client.socket.readyState === WebSocket.OPEN);

  gateway.apply(membershipLine([{ generation: epoch(1, 2), members: [one.member({ state: "sealed" })] }]));

  await until("it is closed", () => client.closed() !== undefined);
  expect(client.closed()).toBe(1011);
  expect(reportOf(gateway)?.counts).toMatchObject({ cut: 1, inFlight: 0 });
});

test("an instance that refuses the upgrade is heard, and an offer of h2c is answered in HTTP/1.1", async () => {
  const one = await startInstance("orders-1", (_, response) => response.writeHead(426).end("not here"));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);

  const refused = await rawRequest(gateway.url, "GET / HTTP/1.1\r\nHost: orders\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  expect(refused).toMatch(/^HTTP\/1.1 426 [^]*not here/);
  const offer = await send(gateway, {
    headers: { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABkAAQAoAAAAAIAAAAA" },
  });
  expect(offer).toMatchObject({ status: 426, body: "not here" });
  checkCounts(gateway);
  expect(reportOf(gateway)?.counts).toMatchObject({ accepted: 2, completed: 2 });
});

function rawRequest(url: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(answer));
  });
}
