/** The queue's numbers as a demand, and how changes reach who listens. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { QueueClient } from "../../sdk/queue-client.ts";
import type { DemandSource } from "../port.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { openSource } from "../testing/open-source.ts";
import { queueAdapter } from "./adapter.ts";
import { QueueUnderTest, TOKEN } from "./testing/queue-under-test.ts";

let queue: QueueUnderTest;
let client: QueueClient;
const open: (DemandSource | Server)[] = [];

beforeAll(async () => {
  queue = await new QueueUnderTest().start();
  client = queue.client();
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
  await client.delete("q").catch(() => undefined); // most have none
});
afterAll(() => queue.remove());

function sourceOf(url = queue.url, token = TOKEN, name = "q"): DemandSource {
  const spec = { kind: "queue", connection: "own", queue: name } as const;
  const source = openSource(queueAdapter, spec, { name: "own", kind: "queue", url, token });
  open.push(source);
  return source;
}

test("what waits is the backlog, what is taken is in flight, and the age is by the queue's clock (K1)", async () => {
  const source = sourceOf();
  expect(await look(source)).toBe("missing: there is no queue q");
  await client.add("q", [{ payload: 1 }, { payload: 2 }]);
  await client.take("q", { worker: "w", max: 1, leaseMs: 60_000 });
  const reading = await look(source, { flow: "queue/q" });
  expect(reading).toEqual({
    backlog: 1,
    inFlight: 1,
    oldestAgeMs: expect.any(Number),
    flow: "queue/q",
    valueAt: null,
    sourceNow: expect.any(Number),
  });
  // The controller's clock is five minutes off in this test.
  expect((reading as { oldestAgeMs: number }).oldestAgeMs).toBeLessThan(60_000);
  expect(await troubleOf(source, { flow: "queue/other" })).toBe("other_flow");
});

test("a token that it does not know is refused, and a queue that is not there is unreachable (K8)", async () => {
  expect(await look(sourceOf(queue.url, "another-token-of-tests"))).toMatch(/^credentials_refused: /);
  expect(await troubleOf(sourceOf("http://127.0.0.1:9"))).toBe("unreachable");
  expect(await troubleOf(sourceOf(queue.url, TOKEN, "a/b"))).toBe("missing");
});

test("a queue that was deleted is missing, and one that was made anew counts from zero", async () => {
  const source = sourceOf();
  await client.add("q", [{ payload: 1 }]);
  await client.delete("q");
  expect(await troubleOf(source)).toBe("missing");
  await client.put("q");
  expect(await look(source)).toMatchObject({ backlog: 0, inFlight: 0, oldestAgeMs: null });
});

test("who listens hears of each change, of the loss of the queue, and again when it is back", async () => {
  await client.put("q");
  const source = sourceOf();
  let heard = 0;
  const stop = source.onChange?.(() => heard++);
  const hearsMore = async (act: () => Promise<unknown>) => {
    const before = heard;
    await act();
    await expect.poll(() => heard, { timeout: 10_000, interval: 10 }).toBeGreaterThan(before);
  };
  await expect.poll(() => heard).toBe(1); // as it is now
  await hearsMore(() => client.add("q", [{ payload: 1 }]));
  await hearsMore(() => client.delete("q"));
  await hearsMore(() => client.put("q"));
  await hearsMore(() => queue.stop());
  stop?.();
  await queue.start();
  client = queue.client();
});

const hostile: readonly (readonly [string, number, string, string])[] = [
  ["an error", 503, '{"error":{"code":"queue_unavailable","message":"no disk"}}', "unreachable"],
  ["a page of a proxy", 502, "<html>bad gateway</html>", "unreachable"],
  ["a page that is no JSON", 200, "<html>hello</html>", "type_changed"],
  ["JSON of another program", 200, "[1,2]", "type_changed"],
  ["nothing", 200, "", "type_changed"],
  ["null", 200, '{"waiting":null,"taken":0,"oldestAgeMs":null,"now":1,"createdAt":1}', "not_a_number"],
  ["text", 200, '{"waiting":"12","taken":0,"oldestAgeMs":null,"now":1,"createdAt":1}', "not_a_number"],
  ["less than nothing", 200, '{"waiting":-1,"taken":0,"oldestAgeMs":null,"now":1,"createdAt":1}', "negative"],
  ["too much", 200, '{"waiting":1e300,"taken":0,"oldestAgeMs":null,"now":1,"createdAt":1}', "infinite"],
  ["an age that is none", 200, '{"waiting":1,"taken":0,"oldestAgeMs":"old","now":1,"createdAt":1}', "not_a_number"],
  ["no numbers of what is taken", 200, '{"waiting":1,"now":1}', "not_a_number"],
  ["a redirect", 307, "", "unreachable"],
];

test.each(hostile)("%s in the place of an answer is no demand (K11)", async (_what, status, body, code) => {
  const server = createServer((_request, response) => {
    response.writeHead(status, { location: "http://127.0.0.1:9/", "content-type": "application/json" });
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(server);
  expect(await troubleOf(sourceOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))).toBe(code);
});

test("a queue that does not answer is given up", async () => {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const source = sourceOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await troubleOf(source, {}, within(50))).toBe("unreachable");
  server.closeAllConnections();
  server.close();
});
