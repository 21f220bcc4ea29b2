import { expect, test } from "vitest";
import { endingOfFollowUp, endingOfShort, endingOfStream, type Reply, wasQueued, wasRetried } from "./outcome.ts";

function answer(status: number, text = "", headers: Readonly<Record<string, string>> = {}): Reply {
  return { kind: "answer", status, headers, text };
}
const reset: Reply = { kind: "broken", status: null, headers: {}, code: "ECONNRESET" };
const resetAfterHead: Reply = { kind: "broken", status: 200, headers: {}, code: "ECONNRESET" };
const timeout: Reply = { kind: "timeout", status: null, headers: {} };

test("a short request completes, is rejected explicitly, or is lost: it is never cut", () => {
  expect(
    [answer(201), answer(502, "", { "relevo-rejected": "answer_lost" }), answer(500), reset, resetAfterHead, timeout].map(endingOfShort),
  ).toEqual([
    { outcome: "completed", detail: null },
    { outcome: "rejected", detail: "502 answer_lost" },
    { outcome: "rejected", detail: "500 by the instance" },
    { outcome: "lost", detail: "broken_ECONNRESET" },
    { outcome: "lost", detail: "broken_ECONNRESET" },
    { outcome: "lost", detail: "timeout" },
  ]);
});

test("a stream is whole only when its last line says so for its own id", () => {
  const whole = '{"line":0}\n{"end":true,"id":"e1","lines":1}\n';

  expect(
    [answer(200, whole), answer(200, '{"line":0}\n'), answer(200, whole.replace("e1", "e2")), answer(200)].map((reply) =>
      endingOfStream(reply, "e1"),
    ),
  ).toEqual([
    { outcome: "completed", detail: null },
    { outcome: "cut", detail: "truncated" },
    { outcome: "cut", detail: "truncated" },
    { outcome: "cut", detail: "truncated" },
  ]);
});

test("a stream that was under way is cut by a reset; one that never began, or that stalls, is lost", () => {
  expect(
    [resetAfterHead, reset, timeout, answer(503, "", { "relevo-rejected": "queue_full" })].map((reply) => endingOfStream(reply, "e1")),
  ).toEqual([
    { outcome: "cut", detail: "broken_ECONNRESET" },
    { outcome: "lost", detail: "broken_ECONNRESET" },
    { outcome: "lost", detail: "timeout" },
    { outcome: "rejected", detail: "503 queue_full" },
  ]);
});

test("an open transaction is cut when its instance is gone, and rejected by any other error, a wrong instance's 404 among them", () => {
  const follow = [
    answer(200),
    answer(410, "", { "relevo-rejected": "session_lost" }),
    answer(404),
    answer(503, "", { "relevo-rejected": "queue_full" }),
    reset,
    timeout,
  ];

  expect(follow.map(endingOfFollowUp)).toEqual([
    null,
    { outcome: "cut", detail: "session_lost" },
    { outcome: "rejected", detail: "404 by the instance" },
    { outcome: "rejected", detail: "503 queue_full" },
    { outcome: "cut", detail: "broken_ECONNRESET" },
    { outcome: "lost", detail: "timeout" },
  ]);
});

test("queued and retried are read from the gateway's headers, where 0 means no", () => {
  expect([{}, { "relevo-queued-ms": "0" }, { "relevo-queued-ms": "12" }].map(wasQueued)).toEqual([false, false, true]);
  expect([{}, { "relevo-retried": "0" }, { "relevo-retried": "1" }].map(wasRetried)).toEqual([false, false, true]);
});
