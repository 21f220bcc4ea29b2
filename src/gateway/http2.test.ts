/** HTTP/2 clients on the same port. */
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { expect, onTestFinished, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { checkCounts, membershipLine, send, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";

function connectTo(url: string): ClientHttp2Session {
  const session = connect(url);
  session.on("error", () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

interface H2Answer {
  readonly headers: Record<string, unknown>;
  readonly body: string;
  readonly rstCode: number;
}

function ask(session: ClientHttp2Session, headers: Record<string, string>, body?: Buffer | string): Promise<H2Answer> {
  return new Promise((resolve) => {
    const stream = session.request({ ":authority": "orders", ...headers }, { endStream: body === undefined });
    let answered: Record<string, unknown> = {};
    let text = "";
    stream.on("response", (given) => {
      answered = given;
    });
    stream.on("data", (chunk) => {
      text += chunk;
    });
    stream.on("error", () => undefined);
    stream.on("close", () => resolve({ headers: answered, body: text, rstCode: stream.rstCode ?? 0 }));
    if (body !== undefined) stream.end(body);
  });
}

async function oneOf(answer: Parameters<typeof startInstance>[1]) {
  const one = await startInstance("orders-1", answer);
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ members: [one.member()] }]));
  await untilReady(gateway);
  return { one, gateway };
}

test("requests of one connection go side by side to instances in HTTP/1.1", async () => {
  const { one, gateway } = await oneOf((request, response, body) => {
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.end(`${request.method} ${request.url} ${body.length}`);
  });
  const session = connectTo(gateway.url);

  const [get, post, big] = await Promise.all([
    ask(session, { ":path": "/a?b" }),
    ask(session, { ":method": "POST", ":path": "/p" }, "hello"),
    ask(session, { ":method": "POST", ":path": "/big" }, Buffer.alloc(1_000_000)),
  ]);

  expect(get).toMatchObject({
    headers: { ":status": 200, "relevo-instance": "orders-1", "set-cookie": ["a=1", "b=2"] },
    body: "GET /a?b 0",
  });
  expect([post?.body, big?.body]).toEqual(["POST /p 5", "POST /big 1000000"]);
  expect(one.seen[0]?.headers).toMatchObject({ host: "orders", "x-forwarded-for": "127.0.0.1" });
  expect(gateway.core.ledger.of("orders").counts).toMatchObject({ accepted: 3, completed: 3, inFlight: 0 });
  expect((await send(gateway)).status).toBe(200);
});

test("an unknown host, a waiting request and an instance that dies get what HTTP/1.1 clients get", async () => {
  const { one, gateway } = await oneOf((request, response) => {
    if (request.url !== "/dies") return void response.end("ok");
    response.writeHead(200);
    response.write("begin", () => setTimeout(() => response.socket?.resetAndDestroy(), 20));
  });
  const session = connectTo(gateway.url);

  const dies = await ask(session, { ":path": "/dies" });
  expect(dies).toMatchObject({ headers: { ":status": 200 }, body: "begin", rstCode: constants.NGHTTP2_INTERNAL_ERROR });
  gateway.apply(
    membershipLine([
      { generation: epoch(1, 2), members: [one.member({ state: "sealed" })], policy: { queueWaitMs: 50 } },
      { route: "bills", members: [] },
    ]),
  );
  expect((await ask(session, { ":path": "/" })).headers).toMatchObject({
    ":status": 503,
    "relevo-rejected": "queue_timeout",
    "retry-after": "1",
  });
  expect((await ask(session, { ":path": "/", ":authority": "nobody" })).headers).toMatchObject({
    ":status": 404,
    "relevo-rejected": "no_route",
  });
  checkCounts(gateway);
});

test("a client that resets its stream is gone for the instance too", async () => {
  let left = false;
  const { one, gateway } = await oneOf((_, response) => {
    response.on("close", () => {
      left = true;
    });
  });
  const session = connectTo(gateway.url);
  const stream = session.request({ ":path": "/", ":authority": "orders" });
  stream.on("error", () => undefined);
  await until("it is taken", () => one.seen.length === 1);

  stream.close(constants.NGHTTP2_CANCEL);

  await until("the instance saw it go", () => left);
  expect(gateway.core.ledger.of("orders").counts).toMatchObject({ accepted: 1, completed: 1, inFlight: 0 });
});

test("a member's drain sends no GOAWAY; the gateway's own stop does, and what is in flight ends normally (S4)", async () => {
  let finish = () => {};
  const { one, gateway } = await oneOf((_, response) => {
    response.writeHead(200);
    response.write("begin ");
    finish = () => response.end("end");
  });
  const two = await startInstance("orders-2", (_, response) => response.end("two"));
  const session = connectTo(gateway.url);
  let goaways = 0;
  session.on("goaway", () => {
    goaways += 1;
  });
  const first = ask(session, { ":path": "/" });
  await until("it is taken", () => one.seen.length === 1);

  gateway.apply(membershipLine([{ generation: epoch(1, 2), members: [one.member({ state: "draining" }), two.member()] }]));
  await untilReady(gateway);
  expect((await ask(session, { ":path": "/" })).body).toBe("two");
  expect(goaways).toBe(0);

  const closed = gateway.close({ graceMs: 5_000 });
  await until("GOAWAY came", () => goaways > 0);
  await until("the session takes no more", () => session.closed || goaways > 1);
  finish();

  expect(await first).toMatchObject({ body: "begin end", rstCode: constants.NGHTTP2_NO_ERROR });
  await closed;
});
