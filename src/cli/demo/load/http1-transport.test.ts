import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../../kernel/system.ts";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { Http1Transport } from "./http1-transport.ts";
import { type Exchange, MAX_ANSWER_BYTES } from "./transport.ts";

let server: Server;
afterEach(() => {
  server.close();
  server.closeAllConnections();
});

async function serve(handler: RequestListener): Promise<string> {
  server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const POST: Exchange = { method: "POST", path: "/orders", headers: {}, body: '{"id":"é"}', limitMs: 10_000 };

test("an answer comes back whole, under the host that was asked for, over a kept connection", async () => {
  const ports = new Set<number | undefined>();
  const origin = await serve((request, response) => {
    ports.add(request.socket.remotePort);
    response.writeHead(201, { "relevo-retried": "1", "x-host": request.headers.host ?? "" });
    request.pipe(response);
  });
  const transport = new Http1Transport({ origin, host: "orders", clock: systemClock });

  expect(await transport.send(POST)).toMatchObject({
    kind: "answer",
    status: 201,
    headers: { "relevo-retried": "1", "x-host": "orders" },
    text: '{"id":"é"}',
  });
  await transport.send(POST);
  expect(ports.size).toBe(1);
  transport.close();
});

test("a connection that ends early is broken: with the status when the head had come, without it when not", async () => {
  const origin = await serve((request, response) => {
    if (request.url === "/orders") return void request.socket.destroy();
    response.writeHead(200).write("half", () => request.socket.destroy());
  });
  const transport = new Http1Transport({ origin, clock: systemClock });

  expect(await transport.send(POST)).toMatchObject({ kind: "broken", status: null, code: "ECONNRESET" });
  expect(await transport.send({ ...POST, path: "/export" })).toMatchObject({ kind: "broken", status: 200 });
  transport.close();
});

test("an answer without end is broken off", async () => {
  const origin = await serve((_request, response) => response.end("x".repeat(MAX_ANSWER_BYTES + 1)));
  const transport = new Http1Transport({ origin, clock: systemClock });

  expect(await transport.send(POST)).toMatchObject({ kind: "broken", code: "answer_too_large" });
  transport.close();
});

test("what never answers ends at its limit", async () => {
  const arrived = Promise.withResolvers<void>();
  const origin = await serve(() => arrived.resolve());
  const clock = new VirtualClock();
  const transport = new Http1Transport({ origin, clock });
  const reply = transport.send(POST);
  await arrived.promise;
  await clock.advance(10_000);

  expect(await reply).toEqual({ kind: "timeout", status: null, headers: {} });
  transport.close();
});
