/** What a path says, and nothing of what only looks like it. */
import { expect, test } from "vitest";
import { beginOfQuery } from "./coordinators.ts";
import { targetOf } from "./paths.ts";
import { withoutToken } from "./segments.ts";

const ID = "20261201_044100_00001_ab12c";
const about = (does: string) => ({ kind: "query", queryId: ID, coordinator: "ab12c", does });

test.each([
  ["POST", "/v1/statement", { kind: "statement" }],
  ["POST", "/v1/statement?x=1", { kind: "statement" }],
  ["POST", "/v1/statement/", { kind: "statement" }],
  ["GET", `/v1/statement/queued/${ID}/y1/1`, about("page")],
  ["GET", `/v1/statement/executing/${ID}/y1/1?maxWait=1s`, about("page")],
  ["HEAD", `/v1/statement/executing/${ID}/y1/1`, about("beat")],
  ["DELETE", `/v1/statement/executing/${ID}/y1/1`, about("end")],
  ["DELETE", `/v1/statement/executing/partialCancel/${ID}/0/y1/1`, about("other")],
  ["GET", `/v1/query/${ID}`, about("other")],
  ["GET", `/v1/stage/${ID}.0`, about("other")],
  ["GET", `/ui/query.html?${ID}`, about("other")],
  ["PUT", `/ui/api/query/${ID}/killed`, about("other")],
  ["GET", "/v1/spooled/download/x", { kind: "segment", acks: false }],
  ["GET", "/v1/spooled/ack/x", { kind: "segment", acks: true }],
  ["GET", "/v1/info", { kind: "other" }],
  ["POST", "/v1/statements", { kind: "other" }],
  ["GET", `/v1/query/x${ID}`, { kind: "other" }],
  ["GET", `/v1/query/${ID}x`, { kind: "other" }],
  ["GET", `/${"x".repeat(2_000)}/${ID}`, { kind: "other" }],
])("%s %s", (method, path, target) => {
  expect(targetOf(method, path)).toEqual(target);
});

test("a query's id says when it began", () => {
  expect(new Date(beginOfQuery(ID)).toISOString()).toBe("2026-12-01T04:41:00.000Z");
  expect(beginOfQuery("no id")).toBeNaN();
});

test("the token of a segment is taken out of its address, and nothing else", () => {
  expect(withoutToken("/v1/spooled/ack/x")).toEqual({ path: "/v1/spooled/ack/x", token: undefined });
  expect(withoutToken("/v1/spooled/ack/x?relevo=t")).toEqual({ path: "/v1/spooled/ack/x", token: "t" });
  expect(withoutToken("/v1/spooled/ack/x?a=1&relevo=t&b=%20&c")).toEqual({ path: "/v1/spooled/ack/x?a=1&b=%20&c", token: "t" });
  expect(withoutToken("/v1/spooled/ack/x?norelevo=t")).toEqual({ path: "/v1/spooled/ack/x?norelevo=t", token: undefined });
});
