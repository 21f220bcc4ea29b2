/** Pub/Sub and Cloud Monitoring's gauges on loopback, as a child of the test's process; built beforehand by `tools/peers/pubsub.sh fetch`. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/kernel/system.ts";
import { freePorts } from "../ports.ts";

const TOOL = join(import.meta.dirname, "..", "..", "tools", "peers", "pubsub.sh");

export interface PubSub {
  /** Of the gauges, in the place of `https://monitoring.googleapis.com`. */
  readonly endpoint: string;
  /** A topic and its subscription, both of this name, in project `shop`. */
  createSubscription(name: string): Promise<void>;
  deleteSubscription(name: string): Promise<void>;
  publish(topic: string, count: number): Promise<void>;
  /** So many, at most; settles with how many there were. */
  takeAndAcknowledge(subscription: string, max: number): Promise<number>;
  stop(): Promise<void>;
}

export async function startPubSub(...args: readonly string[]): Promise<PubSub> {
  const path = execFileSync(TOOL, ["path"], { encoding: "utf8" }).trim();
  if (!existsSync(path)) throw new Error(`Pub/Sub is not there: run ${TOOL} fetch (about 40 s of CPU, once; needs Go)`);
  const [grpc, http] = await freePorts(2);
  const child = spawn(path, ["-grpc", `127.0.0.1:${grpc}`, "-monitoring", `127.0.0.1:${http}`, ...args], { stdio: "ignore" });
  const endpoint = `http://127.0.0.1:${http}`;
  const call = async (method: string, resource: string, body?: object): Promise<Readonly<Record<string, unknown>>> => {
    const response = await fetch(`${endpoint}/v1/projects/shop/${resource}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${resource}: ${response.status} ${text.slice(0, 200)}`);
    return JSON.parse(text) as Record<string, unknown>;
  };
  await untilItAnswers(endpoint, child);
  return {
    endpoint,
    createSubscription: async (name) => {
      await call("PUT", `topics/${name}`).catch(() => undefined); // it may be there already
      await call("PUT", `subscriptions/${name}`, { topic: `projects/shop/topics/${name}` });
    },
    deleteSubscription: async (name) => void (await call("DELETE", `subscriptions/${name}`)),
    publish: async (topic, count) => {
      const messages = Array.from({ length: count }, (_, index) => ({ data: Buffer.from(`job ${index}`).toString("base64") }));
      await call("POST", `topics/${topic}:publish`, { messages });
    },
    takeAndAcknowledge: async (subscription, max) => {
      const { receivedMessages = [] } = (await call("POST", `subscriptions/${subscription}:pull`, { maxMessages: max })) as {
        readonly receivedMessages?: readonly { readonly ackId: string }[];
      };
      const ackIds = receivedMessages.map(({ ackId }) => ackId);
      await call("POST", `subscriptions/${subscription}:acknowledge`, { ackIds });
      return ackIds.length;
    },
    stop: async () => {
      if (child.exitCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

async function untilItAnswers(endpoint: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) throw new Error(`Pub/Sub ended with ${child.exitCode}`);
    const isUp = await fetch(endpoint).then(
      () => true,
      () => false,
    );
    if (isUp) return;
    await systemClock.sleep(100);
  }
  throw new Error("Pub/Sub did not answer within 30 s");
}
