/** Against a server that answers as a real coordinator did, and as none should. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { recorded, replay } from "../../../test/trino/replay.ts";
import { connectionSchema } from "../connections.ts";
import { type HttpPeer, startHttpPeer } from "../testing/http-peer.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { openSource } from "../testing/open-source.ts";
import { trinoAdapter } from "./adapter.ts";

let peer: HttpPeer;
beforeEach(async () => {
  peer = await startHttpPeer();
});
afterEach(() => peer.close());

const openAt = (url: string) =>
  openSource(trinoAdapter, { kind: "trino", connection: "lab" }, { name: "lab", kind: "trino", url, user: "ops" });
const info = { environment: "lab", coordinator: true, starting: false };
const gauges = (queued: string, running = "3.0") =>
  `# TYPE trino_execution_name_QueryManager_QueuedQueries gauge\ntrino_execution_name_QueryManager_QueuedQueries ${queued}\ntrino_execution_name_QueryManager_RunningQueries ${running}\n# EOF\n`;

function serve(metrics: object, said: object = info): void {
  peer.answer((path) => (path.startsWith("/v1/info") ? { body: said } : metrics));
}

async function seen(): Promise<string> {
  const source = openAt(peer.url);
  try {
    return await troubleOf(source, {}, within(1_000));
  } finally {
    await source.close();
  }
}

test("what a real coordinator answers is read: its queue, what runs, and whose it is (T23, K1)", async () => {
  const server = await replay([...recorded("info"), ...recorded("gauges").filter(({ status }) => status === 200)]);
  const source = openAt(server.base);
  try {
    const reading = await source.read(within(5_000));
    expect({ ...reading, sourceNow: null }).toEqual({
      backlog: 0,
      inFlight: 0,
      oldestAgeMs: null,
      flow: "trino/test",
      valueAt: null,
      sourceNow: null,
    });
    expect(server.received.map(({ path, headers }) => [path, headers["x-trino-user"]])).toEqual([
      ["/v1/info", "ops"],
      ["/metrics?name[]=trino_execution_name_QueryManager_QueuedQueries&name[]=trino_execution_name_QueryManager_RunningQueries", "ops"],
    ]);
  } finally {
    await source.close();
    await server.stop();
  }
});

test("ten thousand queued queries are one number (T23)", async () => {
  serve({ body: gauges("10000.0") });
  const source = openAt(peer.url);
  expect(await look(source)).toMatchObject({ backlog: 10_000, inFlight: 3 });
  await source.close();
});

test("another environment at the same address is another flow's (K1)", async () => {
  serve({ body: gauges("7.0") });
  const source = openAt(peer.url);
  expect(await troubleOf(source, { flow: "trino/prod" })).toBe("other_flow");
  expect(await troubleOf(source, { flow: "trino/lab" })).toBe("valid");
  await source.close();
});

test("an answer that holds all metrics is not read to its end (T23)", async () => {
  serve({ body: `${"x".repeat(870_000)}\n${gauges("1.0")}` });
  expect(await seen()).toBe("unreachable");
});

test.each([
  ["no user is taken", { status: 401, body: "no" }, info, "credentials_refused"],
  ["this user may not", { status: 403, body: "no" }, info, "credentials_refused"],
  ["no gauge of this name", { body: "# EOF\n" }, info, "missing"],
  ["not a number", { body: gauges("NaN") }, info, "not_a_number"],
  ["below zero", { body: gauges("-1.0") }, info, "negative"],
  ["without end", { body: gauges("+Inf") }, info, "infinite"],
  ["no metrics at all", { status: 404 }, info, "missing"],
  ["broken", { status: 503 }, info, "unreachable"],
  ["cut", { body: gauges("1.0"), how: "half" }, info, "unreachable"],
  ["silent", { how: "silent" }, info, "unreachable"],
  ["a worker", { body: gauges("0.0") }, { ...info, coordinator: false }, "missing"],
  ["a coordinator that starts", { body: gauges("0.0") }, { ...info, starting: true }, "missing"],
  ["no Trino", { body: gauges("0.0") }, { hello: "world" }, "type_changed"],
] as const)("what cannot be believed is trouble and never a zero: %s (K11)", async (_, metrics, said, code) => {
  serve(metrics, said);
  expect(await seen()).toBe(code);
});

test("a password goes over https alone", () => {
  const connection = { name: "lab", kind: "trino", password: "secret" };
  expect(connectionSchema.safeParse({ ...connection, url: "http://trino:8080" }).success).toBe(false);
  expect(connectionSchema.safeParse({ ...connection, url: "https://trino:8443" }).success).toBe(true);
});
