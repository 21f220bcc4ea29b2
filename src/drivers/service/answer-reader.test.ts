import fc from "fast-check";
import { expect, test } from "vitest";
import { AnswerReader, type HttpAnswer } from "./answer-reader.ts";

const LENGTH = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKS = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n06\r\n world\r\n0\r\n\r\n";
const INTERIM = `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${LENGTH}`;
const EMPTY = "HTTP/1.1 204 No Content\r\n\r\n";
const UNTIL_END = "HTTP/1.0 200\r\nserver: old\r\n\r\nall of it";

function readIn(pieces: readonly string[], bytesMax = 100): HttpAnswer | undefined {
  const reader = new AnswerReader(bytesMax);
  for (const piece of pieces) {
    const answer = reader.push(Buffer.from(piece));
    if (answer !== undefined) return answer;
  }
  return reader.end();
}

const codeOf = (pieces: readonly string[], bytesMax?: number): unknown => {
  try {
    return readIn(pieces, bytesMax);
  } catch (error) {
    return (error as { readonly code?: unknown }).code;
  }
};

test.each([
  ["a length", LENGTH, { status: 503, text: "hello" }],
  ["chunks", CHUNKS, { status: 200, text: "hello world" }],
  ["an interim answer before it", INTERIM, { status: 503, text: "hello" }],
  ["no body", EMPTY, { status: 204, text: "" }],
  ["a body until the end", UNTIL_END, { status: 200, text: "all of it" }],
])("an answer with %s is read whole, however it is cut", (_what, sent, answer) => {
  fc.assert(
    fc.property(fc.array(fc.nat(sent.length)), (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), sent.length];
      const pieces = at.slice(1).map((to, index) => sent.slice(at[index], to));
      expect(readIn(pieces)).toEqual(answer);
    }),
  );
});

test.each([LENGTH.slice(0, -1), CHUNKS.slice(0, -8), LENGTH.slice(0, 30), ""])("what ends early is no answer: %j", (sent) => {
  expect(readIn([sent])).toBeUndefined();
});

test.each([
  ["SSH-2.0-OpenSSH_9.6\r\n", "NOT_HTTP"],
  ["HTTP/2.0 200\r\n\r\n", "NOT_HTTP"],
  ["HTTP/1.1 abc\r\n\r\n", "NOT_HTTP"],
  [`HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(4_000)}`, "NOT_HTTP"],
  ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello", "NOT_HTTP"],
  ["HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "NOT_HTTP"],
  ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "NOT_HTTP"],
  ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello\r\n", "NOT_HTTP"],
  ["HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n", "TOO_LONG"],
  ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n", "TOO_LONG"],
  [`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(101)}`, "TOO_LONG"],
])("what is no HTTP, or too long, is refused as soon as it is sure: %j", (sent, code) => {
  expect(codeOf([sent])).toBe(code);
});
