/** moto as a child of the test: SQS and EventBridge as close to AWS as loopback gets. Fails, and names the command, when it is not fetched. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { systemClock } from "../../src/kernel/system.ts";
import { freePort } from "../ports.ts";

const TOOL = new URL("../../tools/peers/moto.sh", import.meta.url).pathname;

export interface Moto {
  readonly endpoint: string;
  /** `AmazonSQS.CreateQueue`, `AWSEvents.PutRule`, …: throws what the service answers beside 200. */
  call(target: string, body: object): Promise<Readonly<Record<string, unknown>>>;
  /** Its URL and its ARN. */
  createQueue(name: string, attributes?: Readonly<Record<string, string>>): Promise<{ readonly url: string; readonly arn: string }>;
  send(url: string, ...bodies: readonly string[]): Promise<void>;
  /** Visible, and in somebody's hands. */
  depth(url: string): Promise<{ readonly visible: number; readonly inHand: number }>;
  stop(): Promise<void>;
}

export async function startMoto(): Promise<Moto> {
  const server = execFileSync(TOOL, ["path"], { encoding: "utf8" }).trim();
  if (!existsSync(server)) throw new Error(`moto is not there: run ${TOOL} fetch (about 90 s, once)`);
  const port = await freePort();
  const child = spawn(server, ["-H", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
  const endpoint = `http://127.0.0.1:${port}`;
  const moto = motoAt(endpoint, child);
  await untilItAnswers(endpoint, child);
  return moto;
}

function motoAt(endpoint: string, child: ChildProcess): Moto {
  const call: Moto["call"] = async (target, body) => {
    const service = target.startsWith("AWSEvents") ? "events" : "sqs";
    const response = await fetch(endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": target,
        authorization: `AWS4-HMAC-SHA256 Credential=x/20260101/eu-west-1/${service}/aws4_request, SignedHeaders=host, Signature=0`,
      },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${target}: ${response.status} ${text.slice(0, 200)}`);
    return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  };
  const attributesOf = async (url: string): Promise<Readonly<Record<string, string>>> =>
    (await call("AmazonSQS.GetQueueAttributes", { QueueUrl: url, AttributeNames: ["All"] }))["Attributes"] as Record<string, string>;
  return {
    endpoint,
    call,
    createQueue: async (name, attributes = {}) => {
      const url = String((await call("AmazonSQS.CreateQueue", { QueueName: name, Attributes: attributes }))["QueueUrl"]);
      return { url, arn: (await attributesOf(url))["QueueArn"] ?? "" };
    },
    send: async (url, ...bodies) => {
      for (let at = 0; at < bodies.length; at += 10)
        await call("AmazonSQS.SendMessageBatch", {
          QueueUrl: url,
          Entries: bodies.slice(at, at + 10).map((MessageBody, index) => ({ Id: String(index), MessageBody })),
        });
    },
    depth: async (url) => {
      const { ApproximateNumberOfMessages, ApproximateNumberOfMessagesNotVisible } = await attributesOf(url);
      return { visible: Number(ApproximateNumberOfMessages), inHand: Number(ApproximateNumberOfMessagesNotVisible) };
    },
    stop: async () => {
      const ended = once(child, "exit");
      if (child.exitCode !== null || !child.kill("SIGTERM")) return;
      await ended;
    },
  };
}

async function untilItAnswers(endpoint: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`moto ended with ${child.exitCode}`);
    const isUp = await fetch(`${endpoint}/moto-api/data.json`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return;
    await systemClock.sleep(100);
  }
  throw new Error("moto did not answer within a minute");
}
