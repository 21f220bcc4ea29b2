import { expect, test } from "vitest";
import { answerHeaders, flatToObject, hostName, isIdempotent, readRequestHead } from "./headers.ts";
import { pathOf } from "./relay-h1.ts";

test("a request head keeps what concerns the instance, in its order and spelling", () => {
  const head = readRequestHead(
    [
      "Host",
      "orders:80",
      "Accept",
      "a",
      "accept",
      "b",
      "X-Forwarded-For",
      "10.0.0.1",
      "Cookie",
      "a=1",
      "cookie",
      "b=2",
      "Content-Length",
      "5",
    ],
    "192.0.2.7",
  );
  expect(head.headers).toEqual(
    ["Accept", "a", "accept", "b", "cookie", "a=1; b=2", "host", "orders:80", "content-length", "5"].concat([
      "x-forwarded-for",
      "10.0.0.1, 192.0.2.7",
      "x-forwarded-proto",
      "http",
      "x-forwarded-host",
      "orders:80",
    ]),
  );
  expect(head).toMatchObject({ host: "orders:80", contentLength: 5, chunked: false, hasKey: false, cookie: "a=1; b=2", token: undefined });
});

test("what concerns this hop only is dropped, also what Connection names", () => {
  const head = readRequestHead(
    [
      "Connection",
      "close, X-Mine",
      "X-Mine",
      "1",
      "Keep-Alive",
      "5",
      "TE",
      "trailers",
      "Proxy-Authorization",
      "x",
      "Transfer-Encoding",
      "chunked",
      "Upgrade",
      "websocket",
    ],
    "::1",
  );
  expect(head.headers).toEqual(["x-forwarded-for", "::1", "x-forwarded-proto", "http"]);
  expect(head).toMatchObject({ chunked: true, transfersOtherwise: false, upgrade: "websocket", contentLength: -1 });
});

test("HTTP/2's pseudo headers are not passed on, and its authority is the host", () => {
  const head = readRequestHead([":method", "GET", ":path", "/", ":authority", "orders", "accept", "*/*"], "::1", "orders");
  expect(head.headers).toEqual([
    "accept",
    "*/*",
    "host",
    "orders",
    "x-forwarded-for",
    "::1",
    "x-forwarded-proto",
    "http",
    "x-forwarded-host",
    "orders",
  ]);
});

test("an answer keeps repeated headers, and loses what only the gateway may say", () => {
  const given = {
    connection: "keep-alive, x-hop",
    "x-hop": "1",
    "set-cookie": ["a=1", "b=2"],
    "relevo-token": "forged",
    etag: '"1"',
    "transfer-encoding": "chunked",
  };
  expect(answerHeaders(given)).toEqual(["set-cookie", "a=1", "set-cookie", "b=2", "etag", '"1"']);
});

test.each([
  ["GET", [], true],
  ["PUT", [], true],
  ["POST", [], false],
  ["PATCH", [], false],
  ["POST", ["Idempotency-Key", "k"], true],
] as const)("%s with %j is repeatable: %s", (method, raw, repeatable) => {
  expect(isIdempotent(method, readRequestHead([...raw], "::1"))).toBe(repeatable);
});

test.each([
  ["Orders.Example.com:8080", "orders.example.com"],
  ["[::1]:80", "[::1]"],
  ["", ""],
])("the name in %j is %j", (host, name) => {
  expect(hostName(host)).toBe(name);
});

test.each([
  ["/a?b", "/a?b"],
  ["http://orders/a?b", "/a?b"],
  ["http://orders", "/"],
  ["http://orders?b", "/?b"],
  ["*", undefined],
  ["orders", undefined],
])("the path of %j is %j", (target, path) => {
  expect(pathOf(target)).toBe(path);
});

test("a second Host is seen, whatever it says; HTTP/2's authority is the only one that counts", () => {
  const twice = ["Host", "orders", "host", "orders"];

  expect([readRequestHead(twice, "::1").namesTwoHosts, readRequestHead(["Host", "orders"], "::1").namesTwoHosts]).toEqual([true, false]);
  expect(readRequestHead(["host", "other"], "::1", "orders")).toMatchObject({ host: "orders", namesTwoHosts: false });
});

test("a header may have any name that a token may be", () => {
  expect(Object.entries(flatToObject(["constructor", "a", "constructor", "b", "__proto__", "c"]))).toEqual([
    ["constructor", ["a", "b"]],
    ["__proto__", "c"],
  ]);
});
