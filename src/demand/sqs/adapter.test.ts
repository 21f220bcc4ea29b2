/** The AWS SDK against a server that speaks its protocol, well and badly; moto is asked in test/demand/sqs.long.test.ts. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { type SignalOf, signalSchema } from "../../model/demand.ts";
import { type ConnectionOf, connectionSchema } from "../connections.ts";
import type { DemandSource } from "../port.ts";
import { type Answer, type HttpPeer, startHttpPeer } from "../testing/http-peer.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { sqsAdapter } from "./adapter.ts";

const open: DemandSource[] = [];
let server: HttpPeer;

beforeEach(async () => {
  server = await startHttpPeer();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(open.splice(0).map((source) => source.close()));
  await server.close();
});

const never = (): never => {
  throw new Error("nobody asks the API server");
};

function sourceOf(queue = "orders", connection: Partial<ConnectionOf<"sqs">> = {}): DemandSource {
  const source = sqsAdapter.open(
    signalSchema.parse({ kind: "sqs", connection: "aws", queue }) as SignalOf<"sqs">,
    connectionSchema.parse({
      kind: "sqs",
      name: "aws",
      region: "eu-west-1",
      endpoint: server.url,
      credentials: { accessKeyId: "x", secretAccessKey: "y" },
      ...connection,
    }),
    { clock: systemClock, kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

const bodies: unknown[] = [];
/** The queue is found; its attributes are answered so. */
const attributes =
  (answer: Answer) =>
  (_path: string, body: string): Answer => {
    bodies.push(JSON.parse(body));
    return body.includes("AttributeNames") ? answer : { body: { QueueUrl: `${server.url}/123456789012/orders` } };
  };
const some = (given: unknown): Answer => ({ body: { Attributes: given } });
const refusal = (status: number, type: string): Answer => ({ status, body: { __type: `com.amazonaws.sqs#${type}`, message: "no" } });

test("visible messages are the backlog, those in somebody's hands are in flight; no attribute tells an age (K1)", async () => {
  bodies.length = 0;
  server.answer(attributes(some({ ApproximateNumberOfMessages: "42", ApproximateNumberOfMessagesNotVisible: "3" })));
  expect(await sourceOf("210987654321/orders.fifo").read(within(10_000))).toEqual({
    backlog: 42,
    inFlight: 3,
    oldestAgeMs: null,
    flow: "sqs/210987654321/orders.fifo",
    valueAt: null,
    sourceNow: null,
  });
  expect(bodies).toEqual([
    { QueueName: "orders.fifo", QueueOwnerAWSAccountId: "210987654321" },
    {
      QueueUrl: `${server.url}/123456789012/orders`,
      AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    },
  ]);
});

const both = (backlog: unknown): Answer => some({ ApproximateNumberOfMessages: backlog, ApproximateNumberOfMessagesNotVisible: "0" });

test.each<[name: string, answer: Answer, trouble: string]>([
  ["0", both("0"), "valid"],
  ["-1", both("-1"), "negative"],
  ["NaN", both("NaN"), "not_a_number"],
  ["empty text", both(""), "not_a_number"],
  ["more than can be", both("9".repeat(400)), "infinite"],
  ["one of two attributes", some({ ApproximateNumberOfMessages: "5" }), "partial"],
  ["no attributes", { body: {} }, "partial"],
  ["a queue that is gone", refusal(400, "QueueDoesNotExist"), "missing"],
  ["a wrong key", refusal(403, "InvalidClientTokenId"), "credentials_refused"],
  ["a wrong secret", refusal(403, "SignatureDoesNotMatch"), "credentials_refused"],
  ["a session that ended", refusal(400, "ExpiredToken"), "credentials_refused"],
  ["no permission", refusal(400, "AccessDeniedException"), "credentials_refused"],
  ["throttling", refusal(400, "ThrottlingException"), "unreachable"],
  ["500", { status: 500, body: "<html>" }, "unreachable"],
  ["503", { status: 503, body: "" }, "unreachable"],
  ["half an answer", { how: "half", body: { Attributes: { ApproximateNumberOfMessages: "5" } } }, "unreachable"],
  ["an answer without an end", { how: "endless" }, "unreachable"],
  ["HTML with status 200", { body: "<html>log in</html>" }, "type_changed"],
])("%s is judged for what it is, and is no zero (K11)", async (_, answer, trouble) => {
  server.answer(attributes(answer));
  expect(await troubleOf(sourceOf())).toBe(trouble);
});

test("a server that does not answer is given up with the signal, and one that is not there is said to be so", async () => {
  for (const how of ["silent", "stuck"] as const) {
    server.answer({ how, body: { status: "success" } });
    expect(await look(sourceOf(), {}, within(50))).toBe("unreachable: SQS (connection aws) did not answer in time");
  }
  expect(await look(sourceOf("orders", { endpoint: "http://127.0.0.1:1" }))).toBe(
    "unreachable: SQS (connection aws) cannot be reached: connect ECONNREFUSED 127.0.0.1:1",
  );
});

test("a clock of SQS's that is five minutes off changes nothing: its numbers are as of the answer (K11)", async () => {
  const headers = { date: new Date(systemClock.now() + 300_000).toUTCString() };
  server.answer(attributes({ ...both("4"), headers }));
  expect(await look(sourceOf())).toMatchObject({ backlog: 4, valueAt: null });
});

test("a URL is no queue: a Pool does not choose whom the controller calls", async () => {
  expect(await look(sourceOf("http://169.254.169.254/123456789012/orders"))).toBe(
    "missing: this is no name of a queue: http://169.254.169.254/123456789012/orders",
  );
  expect(server.asked).toEqual([]);
});

test("without credentials anywhere it is said that they are refused (K8)", async () => {
  for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"])
    vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials");
  vi.stubEnv("AWS_CONFIG_FILE", "/nowhere/config");
  expect(await troubleOf(sourceOf("orders", { credentials: undefined }))).toBe("credentials_refused");
});
