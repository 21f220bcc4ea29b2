/** The SQS adapter against moto's SQS. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../src/kernel/system.ts";
import { type ConnectionOf, connectionSchema } from "../../src/demand/connections.ts";
import type { DemandSource } from "../../src/demand/port.ts";
import { sqsAdapter } from "../../src/demand/sqs/adapter.ts";
import { look, within } from "../../src/demand/testing/look.ts";
import { type SignalOf, signalSchema } from "../../src/model/demand.ts";
import { type Moto, startMoto } from "../notices/moto.ts";

let moto: Moto;
const open: DemandSource[] = [];

beforeAll(async () => {
  moto = await startMoto();
});
afterAll(() => moto?.stop());
afterEach(async () => {
  await Promise.all(open.splice(0).map((source) => source.close()));
});

const never = (): never => {
  throw new Error("nobody asks the API server");
};

function sourceOf(queue: string, connection: Partial<ConnectionOf<"sqs">> = {}): DemandSource {
  const source = sqsAdapter.open(
    signalSchema.parse({ kind: "sqs", connection: "aws", queue }) as SignalOf<"sqs">,
    connectionSchema.parse({
      kind: "sqs",
      name: "aws",
      region: "eu-west-1",
      endpoint: moto.endpoint,
      credentials: { accessKeyId: "x", secretAccessKey: "y" },
      ...connection,
    }),
    { clock: systemClock, kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

const counts = async (source: DemandSource): Promise<readonly (number | null)[]> => {
  const { backlog, inFlight } = await source.read(within(10_000));
  return [backlog, inFlight];
};

test("backlog and what is in flight follow the queue: sent, taken, deleted; a delayed message is none yet (K1)", async () => {
  const { url } = await moto.createQueue("orders");
  const source = sourceOf("orders");
  expect(await look(source, { flow: "sqs/orders" })).toEqual({
    backlog: 0,
    inFlight: 0,
    oldestAgeMs: null,
    flow: "sqs/orders",
    valueAt: null,
    sourceNow: null,
  });
  await moto.send(url, ...Array.from({ length: 42 }, (_, index) => `job ${index}`));
  await moto.call("AmazonSQS.SendMessage", { QueueUrl: url, MessageBody: "later", DelaySeconds: 900 });
  expect(await counts(source)).toEqual([42, 0]);
  const taken = await moto.call("AmazonSQS.ReceiveMessage", { QueueUrl: url, MaxNumberOfMessages: 1, VisibilityTimeout: 600 });
  expect(await counts(source)).toEqual([41, 1]);
  const [message] = taken["Messages"] as readonly { readonly ReceiptHandle: string }[];
  await moto.call("AmazonSQS.DeleteMessage", { QueueUrl: url, ReceiptHandle: message?.ReceiptHandle });
  expect(await counts(source)).toEqual([41, 0]);
});

test("a queue that is deleted is missing, not empty; made again, it is read again", async () => {
  const { url } = await moto.createQueue("short-lived");
  const source = sourceOf("short-lived");
  await moto.send(url, "job");
  expect(await counts(source)).toEqual([1, 0]);
  await moto.call("AmazonSQS.DeleteQueue", { QueueUrl: url });
  expect(await look(source)).toMatch(/^missing: SQS \(connection aws\) has no queue short-lived/);
  await moto.createQueue("short-lived");
  expect(await counts(source)).toEqual([0, 0]);
});

test("the sibling's queue is another flow, and is refused (K1)", async () => {
  await moto.createQueue("sibling");
  expect(await look(sourceOf("sibling"), { flow: "sqs/orders" })).toBe(
    "other_flow: it is the backlog of sqs/sibling, and the workers take sqs/orders",
  );
});

test("a queue of another region is not here", async () => {
  await moto.createQueue("regional");
  expect(await look(sourceOf("regional", { region: "us-east-1" }))).toMatch(/^missing: /);
});
