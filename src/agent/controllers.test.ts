import { expect, test } from "vitest";
import type { AgentReport } from "../notices/agent-report.ts";
import { Controllers } from "./controllers.ts";

const signal = new AbortController().signal;
const REPORT: AgentReport = {
  providerID: "aws:///z/i-1",
  kind: "k",
  state: "present",
  document: {},
  seenAt: "2026-11-30T10:00:00Z",
  ageMs: 0,
  bootId: null,
};

/** `answers` by host; a missing one is nobody. */
function someControllers(answers: Readonly<Record<string, number>>) {
  const asked: string[] = [];
  const controllers = new Controllers({
    urls: ["http://a", "http://b"],
    token: () => "secret",
    http: async ({ url, headers }) => {
      const { host, pathname } = new URL(url);
      asked.push(`${host}${pathname} ${headers?.["authorization"]}`);
      const status = answers[host];
      if (status === undefined) throw new Error(`nobody at ${host}`);
      return { status, headers: {}, text: "" };
    },
  });
  return { controllers, asked };
}

test("one controller that hears is enough, and it is asked first the next time", async () => {
  const { controllers, asked } = someControllers({ b: 202 });
  expect([await controllers.deliver("gcp", REPORT, signal), await controllers.deliver("gcp", REPORT, signal)]).toEqual(["kept", "kept"]);
  expect(asked).toEqual(["a/v1/notices/gcp Bearer secret", "b/v1/notices/gcp Bearer secret", "b/v1/notices/gcp Bearer secret"]);
});

test.each([
  ["a store that is away", { a: 503, b: 202 }, "kept"],
  ["a body that is wrong", { a: 400, b: 202 }, { refused: "status 400: " }],
  ["a token that one does not know yet", { a: 401, b: 202 }, "kept"],
  ["a controller that is older than the source", { a: 404, b: 202 }, "kept"],
])("%s", async (_what, answers, expected) => {
  expect(await someControllers(answers).controllers.deliver("gcp", REPORT, signal)).toEqual(expected);
});

test("nobody keeps it: it is for the sender to try again", async () => {
  await expect(someControllers({ a: 503 }).controllers.deliver("gcp", REPORT, signal)).rejects.toThrow("nobody at b");
  await expect(someControllers({ a: 503, b: 429 }).controllers.deliver("gcp", REPORT, signal)).rejects.toThrow("answered 429");
});

test("a heartbeat says who, how often and what is wrong", async () => {
  const { controllers, asked } = someControllers({ a: 204 });
  await controllers.heartbeat("gcp", { from: "node-1", everyMs: 30_000, trouble: null }, signal);
  expect(asked).toEqual(["a/v1/sources/gcp/heartbeat Bearer secret"]);
});
