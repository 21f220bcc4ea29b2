import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../../kernel/system.ts";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { Http2Transport } from "./http2-transport.ts";
import type { Exchange } from "./transport.ts";

let server: Http2Server;
const sessions: ServerHttp2Session[] = [];
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy();
  server.close();
});

async function serve(handler: (stream: ServerHttp2Stream, nth: number) => void): Promise<string> {
  let nth = 0;
  server = createServer();
  server.on("session", (session) => sessions.push(session));
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    handler(stream, nth++);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const POST: Exchange = { method: "POST", path: "/orders", headers: { "x-a": "1" }, body: '{"id":"a"}', limitMs: 10_000 };

test("an answer comes back whole, with its headers", async () => {
  const origin = await serve((stream) => {
    stream.respond({ ":status": 201, "relevo-retried": "1" });
    stream.pipe(stream);
  });
  const transport = new Http2Transport({ origin, clock: systemClock });

  expect(await transport.send(POST)).toMatchObject({ kind: "answer", status: 201, headers: { "relevo-retried": "1" }, text: '{"id":"a"}' });
  transport.close();
});

test("a refused stream is repeated by the client and is no event", async () => {
  let taken = 0;
  const origin = await serve((stream, nth) => {
    taken = nth + 1;
    if (nth < 3) return stream.close(constants.NGHTTP2_REFUSED_STREAM);
    stream.respond({ ":status": 200 });
    stream.end("at last");
  });
  const transport = new Http2Transport({ origin, clock: systemClock });

  expect(await transport.send(POST)).toMatchObject({ kind: "answer", text: "at last" });
  expect(taken).toBe(4);
  transport.close();
});

test("after a GOAWAY the open stream ends whole and the next request goes over a new connection", async () => {
  const held = Promise.withResolvers<ServerHttp2Stream>();
  const origin = await serve((stream, nth) => {
    stream.respond({ ":status": 200 });
    if (nth === 0) held.resolve(stream);
    else stream.end("second");
  });
  const transport = new Http2Transport({ origin, clock: systemClock });
  const first = transport.send(POST);
  const stream = await held.promise;
  stream.session?.close();
  const second = await transport.send(POST);
  stream.end("first");

  expect(second).toMatchObject({ kind: "answer", text: "second" });
  expect(await first).toMatchObject({ kind: "answer", text: "first" });
  expect(sessions.length).toBe(2);
  transport.close();
});

test("a stream that breaks after its head is broken with its status, a connection that is refused without one", async () => {
  const origin = await serve((stream) => {
    stream.respond({ ":status": 200 });
    stream.write("half", () => stream.destroy(new Error("the instance died")));
  });
  const transport = new Http2Transport({ origin, clock: systemClock });
  expect(await transport.send(POST)).toMatchObject({ kind: "broken", status: 200 });
  transport.close();

  await new Promise((resolve) => {
    server.close(resolve);
    for (const session of sessions) session.destroy();
  });
  const late = new Http2Transport({ origin, clock: systemClock });
  expect(await late.send(POST)).toMatchObject({ kind: "broken", status: null });
  late.close();
});

test("what never answers ends at its limit", async () => {
  const arrived = Promise.withResolvers<void>();
  const origin = await serve(() => arrived.resolve());
  const clock = new VirtualClock();
  const transport = new Http2Transport({ origin, clock });
  const reply = transport.send(POST);
  await arrived.promise;
  await clock.advance(10_000);

  expect(await reply).toEqual({ kind: "timeout", status: null, headers: {} });
  transport.close();
});
