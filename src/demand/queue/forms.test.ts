/** What the queue refuses, and that it says so with a code. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { QueueUnderTest, TOKEN } from "./testing/queue-under-test.ts";

let queue: QueueUnderTest;

beforeAll(async () => {
  queue = await new QueueUnderTest().start();
  await queue.client().put("q");
});
afterAll(() => queue.remove());

const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const post = (path: string, body: string) => fetch(`${queue.url}${path}`, { method: "POST", headers, body });

test.each([
  ["a name that is none", "/v1/queues/-x/jobs", '{"jobs":[{"payload":1}]}', 400],
  ["no jobs", "/v1/queues/q/jobs", '{"jobs":[]}', 400],
  ["too many jobs", "/v1/queues/q/jobs", JSON.stringify({ jobs: Array.from({ length: 1_001 }, () => ({ payload: 1 })) }), 400],
  ["a payload that is too large", "/v1/queues/q/jobs", JSON.stringify({ jobs: [{ payload: "x".repeat(300_000) }] }), 400],
  ["a payload that is nested too deeply", "/v1/queues/q/jobs", `{"jobs":[{"payload":${"[".repeat(50_000)}${"]".repeat(50_000)}}]}`, 400],
  ["a body that is too large", "/v1/queues/q/jobs", JSON.stringify({ jobs: [{ payload: "x".repeat(9_000_000) }] }), 413],
  ["no JSON", "/v1/queues/q/jobs", "{", 400],
  ["an id of another type", "/v1/queues/q/jobs", '{"jobs":[{"id":5,"payload":1}]}', 400],
  ["a prototype", "/v1/queues/q/jobs", '{"__proto__":{"jobs":[]}}', 400],
  ["a lease without an end", "/v1/queues/q/take", '{"worker":"w","max":1,"leaseMs":1e12}', 400],
  ["a wait without an end", "/v1/queues/q/take", '{"worker":"w","max":1,"leaseMs":1000,"waitMs":1e9}', 400],
  ["an epoch of another form", "/v1/queues/q/take", '{"worker":"w","max":1,"leaseMs":1000,"stamp":{"workload":"a","epoch":"1"}}', 400],
  ["an outcome that is none", "/v1/queues/q/jobs/a/complete", '{"lease":"x","outcome":"perhaps"}', 400],
  ["a route that is none", "/v1/queues/q/jobs/a/steal", "{}", 404],
])("%s is refused with a code", async (_what, path, body, status) => {
  const response = await post(path, body);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } });
  expect(queue.errors).toEqual([]);
});
