/** The AWS SDK's own client against a stand-in that speaks its protocol. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type SqsStandIn, startSqsStandIn } from "../testing/sqs-server.ts";
import type { QueueMessage } from "./queue.ts";
import { assertQueueUrl, regionOf } from "./queue-url.ts";
import { SdkQueue } from "./sdk-queue.ts";

let sqs: SqsStandIn;
const open: SdkQueue[] = [];

beforeEach(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "stand-in");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "stand-in");
  vi.stubEnv("AWS_REGION", "eu-west-1");
  sqs = await startSqsStandIn();
});
afterEach(async () => {
  for (const queue of open.splice(0)) queue.close();
  await sqs.close();
  vi.unstubAllEnvs();
});

function clientOf(url: string): SdkQueue {
  const queue = new SdkQueue({ url });
  open.push(queue);
  return queue;
}

const now = { max: 10, waitSeconds: 0, visibilitySeconds: 30 };
const receive = (queue: SdkQueue, over: Partial<typeof now> = {}): Promise<readonly QueueMessage[]> =>
  queue.receive({ ...now, ...over }, AbortSignal.timeout(10_000));

test("what is received is invisible to others, comes again when it is given back, and is counted", async () => {
  const server = sqs.queue("notices");
  const queue = clientOf(server.url);
  server.send("one", "two");
  const first = await receive(queue);
  expect(first.map(({ body, receiveCount }) => ({ body, receiveCount }))).toEqual([
    { body: "one", receiveCount: 1 },
    { body: "two", receiveCount: 1 },
  ]);
  expect(await receive(queue)).toEqual([]);
  await queue.setVisibility(first.slice(1), 0);
  expect((await receive(queue)).map(({ id, receiveCount }) => ({ id, receiveCount }))).toEqual([{ id: first[1]?.id, receiveCount: 2 }]);
});

test("whether a queue has a redrive policy is asked of it; where that is refused, it is not known", async () => {
  const [with20, without] = [sqs.queue("with", { maxReceiveCount: 20 }), sqs.queue("without")];
  expect(await clientOf(with20.url).hasRedrivePolicy()).toBe(true);
  expect(await clientOf(without.url).hasRedrivePolicy()).toBe(false);
  await expect(clientOf(`${without.url}-gone`).hasRedrivePolicy()).rejects.toThrow();
});

test("what is deleted is gone; a delivery that is no longer ours is left alone without an error", async () => {
  const server = sqs.queue("notices");
  const queue = clientOf(server.url);
  server.send("one");
  const first = await receive(queue, { visibilitySeconds: 0 });
  const second = await receive(queue);
  await queue.setVisibility(first, 0);
  expect(await receive(queue)).toEqual([]);
  expect(await queue.delete(second)).toEqual([]);
  expect(server.messages()).toEqual([]);
});

test("a long poll ends with the message that comes, and at once when it is told to", async () => {
  const server = sqs.queue("notices");
  const queue = clientOf(server.url);
  const waiting = receive(queue, { waitSeconds: 20 });
  await vi.waitFor(() => expect(sqs.calls()["ReceiveMessage"]).toBe(1));
  server.send("late");
  expect((await waiting).map(({ body }) => body)).toEqual(["late"]);

  const abort = new AbortController();
  const given = queue.receive({ ...now, waitSeconds: 20 }, abort.signal);
  await vi.waitFor(() => expect(sqs.calls()["ReceiveMessage"]).toBe(2));
  abort.abort();
  await expect(given).rejects.toMatchObject({ name: "AbortError" });
});

test("a fault of the service is tried again by the SDK; a queue that does not exist is an error with its name", async () => {
  const server = sqs.queue("notices");
  server.send("one");
  sqs.failNext("ReceiveMessage", 1);
  expect((await receive(clientOf(server.url))).map(({ body }) => body)).toEqual(["one"]);
  await expect(receive(clientOf(`${sqs.endpoint}/123456789012/none`))).rejects.toMatchObject({ name: "QueueDoesNotExist" });
});

test("the region is in the queue's URL; what is no URL of a queue is refused", () => {
  expect(
    ["https://sqs.eu-west-1.amazonaws.com/1/q", "https://sqs.cn-north-1.amazonaws.com.cn/1/q", "http://127.0.0.1:5/1/q"].map(regionOf),
  ).toEqual(["eu-west-1", "cn-north-1", undefined]);
  expect(() => assertQueueUrl("my-queue")).toThrow(expect.objectContaining({ code: "queue_url_invalid" }));
  expect(() => assertQueueUrl("https://sqs.eu-west-1.amazonaws.com/")).toThrow(expect.objectContaining({ code: "queue_url_invalid" }));
});
