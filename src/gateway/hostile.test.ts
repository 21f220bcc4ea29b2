/** Malformed, huge and slow: explicit errors, bounded memory, and the others are served meanwhile. */
import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createNetServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../kernel/system.ts";
import { H1Front } from "./relay-h1.ts";
import { checkCounts, memberOf, membershipLine, send, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";

async function oneEchoing() {
  const one = await startInstance("orders-1", (_, response, body) => response.end(`echo ${body.length}`));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);
  return { one, gateway };
}

function raw(url: string, text: string | Buffer, endsAfterMs = 1_000): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    const timer = systemClock.after(endsAfterMs, () => socket.destroy());
    socket.on("error", () => undefined);
    socket.on("close", () => {
      timer.cancel();
      resolve(answer);
    });
  });
}

test.each([
  ["no HTTP", "hello\r\n\r\n", /^HTTP\/1.1 400 /],
  ["no Host", "GET / HTTP/1.1\r\n\r\n", /^HTTP\/1.1 400 /],
  [
    "both a length and chunks (request smuggling)",
    "POST / HTTP/1.1\r\nHost: orders\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    /^HTTP\/1.1 400 /,
  ],
  ["two lengths", "POST / HTTP/1.1\r\nHost: orders\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", /^HTTP\/1.1 400 /],
  ["a bare line feed in a header", "GET / HTTP/1.1\nHost: orders\n\n", /^HTTP\/1.1 400 /],
  ["a control character in a header", "GET / HTTP/1.1\r\nHost: orders\r\nX: a\u0001b\r\n\r\n", /^HTTP\/1.1 400 /],
  ["a huge header", `GET / HTTP/1.1\r\nHost: orders\r\nX: ${"x".repeat(100_000)}\r\n\r\n`, /^HTTP\/1.1 431 /],
  [
    "a transfer coding that cannot be passed on",
    "POST / HTTP/1.1\r\nHost: orders\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    /^HTTP\/1.1 400 /,
  ],
  ["a target that is no path", "GET orders HTTP/1.1\r\nHost: orders\r\nConnection: close\r\n\r\n", /^HTTP\/1.1 400 /],
  ["a chunk without a size", "POST / HTTP/1.1\r\nHost: orders\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", /^HTTP\/1.1 400 |^$/],
])("%s is answered with an explicit error, and others are served", async (_, text, answer) => {
  const { gateway, one } = await oneEchoing();

  expect(await raw(gateway.url, text)).toMatch(answer);

  expect((await send(gateway, { method: "POST", body: "ok" })).body).toBe("echo 2");
  expect(one.seen.length).toBe(1);
  checkCounts(gateway);
  expect(gateway.core.ledger.of("orders").counts.inFlight).toBe(0);
});

test("a host without a route gets 404 no_route", async () => {
  const { gateway, one } = await oneEchoing();
  gateway.apply(membershipLine([{ route: "bills", policy: { hosts: ["bills.example.com"] }, members: [] }]));

  const answers = await Promise.all(
    ["nobody", "orders.example.com:8080", "BILLS.example.com"].map((host) => send(gateway, { headers: { host } })),
  );

  expect(answers.map((answer) => answer.headers["relevo-rejected"] ?? answer.body)).toEqual(["no_route", "echo 0", "queue_timeout"]);
  expect(one.seen.length).toBe(1);
});

test("pipelined requests are answered in their order", async () => {
  const one = await startInstance("orders-1", (request, response) => {
    if (request.url === "/1") setTimeout(() => response.end("[one]"), 30);
    else response.end("[two]");
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);

  const answer = await raw(
    gateway.url,
    "GET /1 HTTP/1.1\r\nHost: orders\r\n\r\nGET /2 HTTP/1.1\r\nHost: orders\r\nConnection: close\r\n\r\n",
  );

  expect(answer.match(/\[\w+\]/g)).toEqual(["[one]", "[two]"]);
});

test("a client that leaves is gone for the instance too, whether it waits, streams or queues", async () => {
  let left = 0;
  const one = await startInstance("orders-1", (request, response) => {
    response.on("close", () => {
      left += 1;
    });
    if (request.url === "/stream") response.write("begin");
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy: { concurrency: 2, queueWaitMs: 10_000 }, members: [one.member()] }]));
  await untilReady(gateway);
  const counts = () => gateway.core.ledger.of("orders").counts;

  const leaving = ["/wait", "/stream"].map((path) => raw(gateway.url, `GET ${path} HTTP/1.1\r\nHost: orders\r\n\r\n`, 300));
  await until("both are taken", () => one.seen.length === 2);
  const queued = raw(gateway.url, "GET /queued HTTP/1.1\r\nHost: orders\r\n\r\n", 100);
  await until("the third waits", () => counts().queued === 1);
  await queued;
  await until("it left the queue", () => counts().queued === 0);
  await Promise.all(leaving);
  await until("the instance saw both go", () => left === 2);

  expect(counts()).toEqual({ accepted: 3, completed: 3, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 });
});

test("an answer that breaks off in its middle breaks off for the client, and counts as cut", async () => {
  const one = await startInstance("orders-1", (_, response) => {
    response.writeHead(200, { "content-length": "100000" });
    response.write("x".repeat(50_000), () => response.socket?.resetAndDestroy());
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);

  await expect(send(gateway)).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(gateway.core.ledger.of("orders").counts).toMatchObject({ accepted: 1, cut: 1, inFlight: 0 });
});

test("a slow reader holds back the instance instead of filling the gateway's memory", async () => {
  let written = 0;
  const server = createServer((request, response) => {
    if (request.url === "/healthz") return void response.end();
    const chunk = Buffer.alloc(64 * 1024);
    const more = () => {
      do written += chunk.length;
      while (response.write(chunk) && written < 100_000_000);
      if (written < 100_000_000) response.once("drain", more);
    };
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [memberOf("big", { port: (server.address() as AddressInfo).port })] }]));
  await untilReady(gateway);

  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: orders\r\n\r\n"));
  socket.pause();
  onTestFinished(() => void socket.destroy());
  let last = -1;
  await until("the instance is held back", async () => {
    const same = written > 0 && written === last;
    last = written;
    await systemClock.sleep(100);
    return same;
  });

  // What the kernels of both sides hold is a few MB on loopback; the gateway itself adds less than one.
  expect(written).toBeLessThan(30_000_000);
});

test("a big upload is streamed, with its length, and an early refusal reaches the client", async () => {
  const one = await startInstance("orders-1", () => undefined, {
    raw: (request, response) => {
      if (request.url === "/refuse") return void response.writeHead(413).end("too big");
      let size = 0;
      request.on("data", (chunk: Buffer) => {
        size += chunk.length;
      });
      request.on("end", () => response.end(`${size} of ${request.headers["content-length"]}`));
    },
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);
  const body = Buffer.alloc(5_000_000, "x");

  expect(await send(gateway, { method: "POST", body })).toMatchObject({ status: 200, body: "5000000 of 5000000" });
  expect(await send(gateway, { method: "POST", path: "/refuse", body })).toMatchObject({ status: 413, body: "too big" });
  const chunked = await send(gateway, { method: "POST", body, headers: { "transfer-encoding": "chunked" } });
  expect(chunked).toMatchObject({ status: 200, body: "5000000 of undefined" });
});

test("100-continue, early hints, HEAD, 204 and trailers pass as they are", async () => {
  const one = await startInstance("orders-1", (request, response, body) => {
    if (request.url === "/hints") response.writeEarlyHints({ link: "</a.css>; rel=preload" });
    if (request.url === "/empty") return void response.writeHead(204).end();
    if (request.url === "/trailers") {
      response.writeHead(200, { trailer: "x-sum" });
      response.write("a");
      response.addTrailers({ "x-sum": "1" });
    }
    response.end(`${request.method} ${body}`);
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);
  const ask = (text: string) => raw(gateway.url, text, 300);

  expect(await ask("POST / HTTP/1.1\r\nHost: orders\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab")).toMatch(
    /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n[^]*POST ab$/,
  );
  expect(await ask("GET /hints HTTP/1.1\r\nHost: orders\r\nConnection: close\r\n\r\n")).toMatch(
    /^HTTP\/1.1 103 Early Hints\r\nLink: <\/a.css>[^]*HTTP\/1.1 200 OK/i,
  );
  expect(await ask("HEAD / HTTP/1.1\r\nHost: orders\r\nConnection: close\r\n\r\n")).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n$/);
  expect(await ask("GET /empty HTTP/1.1\r\nHost: orders\r\nConnection: close\r\n\r\n")).toMatch(
    /^HTTP\/1.1 204 No Content\r\n[^]*\r\n\r\n$/,
  );
  expect(await ask("GET /trailers HTTP/1.1\r\nHost: orders\r\nTE: trailers\r\nConnection: close\r\n\r\n")).toMatch(
    /0\r\nx-sum: 1\r\n\r\n$/,
  );
});

test("bytes above ASCII in an answer's header and body pass unchanged", async () => {
  const one = await startInstance("orders-1", (_, response) => {
    response.writeHead(200, ["x-name", "caf\u00e9", "content-length", "3"]);
    response.end(Buffer.from([0xff, 0x00, 0xe9]));
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);

  const answer = await raw(gateway.url, "GET / HTTP/1.1\r\nHost: orders\r\nConnection: close\r\n\r\n");

  expect(answer).toContain("x-name: caf\u00e9\r\n");
  expect(answer.endsWith("\r\n\r\n\u00ff\u0000\u00e9")).toBe(true);
});

test("what concerns one hop only, and what only the gateway may say, is not passed on", async () => {
  const one = await startInstance("orders-1", (_, response) => {
    response.writeHead(200, { connection: "keep-alive, x-hop", "x-hop": "1", "relevo-rejected": "spoofed", "x-own": "1" });
    response.end("ok");
  });
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);

  const answer = await raw(
    gateway.url,
    "GET / HTTP/1.1\r\nHost: orders\r\nConnection: close, x-mine\r\nX-Mine: 1\r\nTE: gzip\r\nRelevo-Session: begin\r\nX-Kept: 1\r\n\r\n",
  );

  expect(answer).toMatch(/x-own: 1/);
  expect(answer).not.toMatch(/x-hop|spoofed/);
  const seen = one.seen[0]?.headers ?? {};
  expect(Object.keys(seen).toSorted()).toEqual([
    "connection",
    "host",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-kept",
  ]);
});

test("a head that takes too long is answered 408, and its connection ends", async () => {
  const gateway = await startTestGateway();
  const front = new H1Front(gateway.core, { requestHeadMs: 150, requestHeadSweepMs: 20 });
  const server = createNetServer((socket) => front.accept(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    front.destroyAll();
    server.close();
  });
  const { port } = server.address() as AddressInfo;

  expect(await raw(`http://127.0.0.1:${port}`, "GET / HTTP/1.1\r\nHost: ord", 3_000)).toMatch(/^HTTP\/1.1 408 /);
});

test("a client that breaks off its upload is no fault of the instance", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("ok"));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy: { healthEveryMs: 60_000 }, members: [one.member()] }]));
  await untilReady(gateway);

  await raw(gateway.url, "POST / HTTP/1.1\r\nHost: orders\r\nContent-Length: 1000000\r\n\r\nabc", 50);
  await until("it is over", () => gateway.core.ledger.of("orders").counts.inFlight === 0);

  expect(gateway.core.membership.find("orders", "orders-1", 1)?.health).toBe("passing");
  expect(gateway.core.ledger.of("orders").counts).toMatchObject({ accepted: 1, completed: 1 });
});

test.each([
  ["a broken chunk", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcdeXX\r\n"],
  ["a chunk of impossible length", "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nabc"],
])("a body that cannot be read is answered, whatever was read of it: %s", async (_name, rest) => {
  const { gateway } = await oneEchoing();

  expect(await raw(gateway.url, `POST / HTTP/1.1\r\nHost: orders\r\n${rest}`)).toMatch(/^HTTP\/1.1 400 [^]*relevo-rejected: malformed/);
  checkCounts(gateway);
});

test("what cannot be read after a whole request is no answer to that request", async () => {
  const slow = await startInstance("orders-1", (_, response) => systemClock.after(200, () => response.end("late")));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [slow.member()] }]));
  await untilReady(gateway);

  expect(await raw(gateway.url, "POST / HTTP/1.1\r\nHost: orders\r\nContent-Length: 1\r\n\r\na\u0001\r\n\r\n", 400)).not.toMatch(
    /malformed/,
  );
});
