/**
 * A stand-in for SQS on loopback that speaks the SDK's JSON protocol: visibility, receive counts, long polls, dead letters. Faithful where moto was compared
 * (sqs.long.test.ts runs the same cases against moto).
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock, systemIds } from "../../kernel/system.ts";

interface Stored {
  readonly id: string;
  readonly body: string;
  readonly sentAt: number;
  receiveCount: number;
  visibleAt: number;
  receipt: string;
}

export interface StandInQueue {
  readonly url: string;
  send(...bodies: readonly string[]): void;
  /** What is there, visible or not. */
  messages(): readonly { readonly id: string; readonly body: string; readonly receiveCount: number }[];
  /** What was made a dead letter. */
  dead(): readonly string[];
}

export interface SqsStandIn {
  readonly endpoint: string;
  queue(name: string, options?: { readonly maxReceiveCount?: number }): StandInQueue;
  /** By action: how often it was called. */
  calls(): Readonly<Record<string, number>>;
  /** What the next calls of an action answer. */
  failNext(action: string, times: number): void;
  close(): Promise<void>;
}

class Queue implements StandInQueue {
  readonly url: string;
  readonly #maxReceiveCount: number;
  #stored: Stored[] = [];
  readonly #dead: string[] = [];
  readonly waiting = new Set<() => void>();

  constructor(url: string, maxReceiveCount: number) {
    this.url = url;
    this.#maxReceiveCount = maxReceiveCount;
  }

  send(...bodies: readonly string[]): void {
    const now = systemClock.now();
    this.#stored.push(
      ...bodies.map((body) => ({ id: systemIds.next("message"), body, sentAt: now, receiveCount: 0, visibleAt: 0, receipt: "" })),
    );
    for (const wake of this.waiting) wake();
  }

  messages = () => this.#stored.map(({ id, body, receiveCount }) => ({ id, body, receiveCount }));
  dead = () => [...this.#dead];

  receive(max: number, visibilitySeconds: number): readonly Stored[] {
    const now = systemClock.now();
    const received: Stored[] = [];
    for (const message of [...this.#stored]) {
      if (received.length >= max) break;
      if (message.visibleAt > now) continue;
      if (message.receiveCount >= this.#maxReceiveCount) {
        this.#stored = this.#stored.filter((each) => each !== message);
        this.#dead.push(message.body);
        continue;
      }
      message.receiveCount++;
      message.visibleAt = now + visibilitySeconds * 1_000;
      message.receipt = systemIds.next("receipt");
      received.push(message);
    }
    return received;
  }

  /** Of those that can be asked for, the one that is known here. */
  attributes(): Readonly<Record<string, string>> {
    const maxReceiveCount = this.#maxReceiveCount;
    return Number.isFinite(maxReceiveCount) ? { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: "arn:dead", maxReceiveCount }) } : {};
  }

  delete(receipt: string): void {
    this.#stored = this.#stored.filter((each) => each.receipt !== receipt);
  }

  /** False when the delivery is an old one. */
  setVisibility(receipt: string, seconds: number): boolean {
    const message = this.#stored.find((each) => each.receipt === receipt);
    if (!message) return false;
    message.visibleAt = systemClock.now() + seconds * 1_000;
    return true;
  }
}

interface Entry {
  readonly Id: string;
  readonly ReceiptHandle: string;
  readonly VisibilityTimeout?: number;
}

interface Call {
  readonly QueueUrl: string;
  readonly MaxNumberOfMessages?: number;
  readonly WaitTimeSeconds?: number;
  readonly VisibilityTimeout?: number;
  readonly Entries?: readonly Entry[];
  readonly MessageBody?: string;
}

export async function startSqsStandIn(): Promise<SqsStandIn> {
  const queues = new Map<string, Queue>();
  const calls: Record<string, number> = {};
  const failures = new Map<string, number>();
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const action = String(request.headers["x-amz-target"] ?? "").replace("AmazonSQS.", "");
    calls[action] = (calls[action] ?? 0) + 1;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const call = JSON.parse(Buffer.concat(chunks).toString("utf8") || "{}") as Call;
    const left = failures.get(action) ?? 0;
    if (left > 0) {
      failures.set(action, left - 1);
      return send(response, 500, { __type: "com.amazonaws.sqs#InternalError", message: "as ordered" });
    }
    const queue = queues.get(call.QueueUrl);
    if (!queue) return send(response, 400, { __type: "com.amazonaws.sqs#QueueDoesNotExist", message: "no such queue" });
    return send(response, 200, await run(action, queue, call, request));
  }

  async function run(action: string, queue: Queue, call: Call, request: IncomingMessage): Promise<unknown> {
    const entries = call.Entries ?? [];
    switch (action) {
      case "GetQueueAttributes":
        return { Attributes: queue.attributes() };
      case "ReceiveMessage":
        return { Messages: (await receive(queue, call, request)).map(toMessage) };
      case "DeleteMessageBatch":
        for (const { ReceiptHandle } of entries) queue.delete(ReceiptHandle);
        return { Successful: entries.map(({ Id }) => ({ Id })), Failed: [] };
      case "ChangeMessageVisibilityBatch": {
        const isOurs = entries.map(({ ReceiptHandle, VisibilityTimeout = 0 }) => queue.setVisibility(ReceiptHandle, VisibilityTimeout));
        return {
          Successful: entries.filter((_, index) => isOurs[index]).map(({ Id }) => ({ Id })),
          Failed: entries
            .filter((_, index) => !isOurs[index])
            .map(({ Id }) => ({ Id, Code: "ReceiptHandleIsInvalid", SenderFault: true, Message: "an old delivery" })),
        };
      }
      default:
        return {};
    }
  }

  async function receive(queue: Queue, call: Call, request: IncomingMessage): Promise<readonly Stored[]> {
    const { MaxNumberOfMessages = 1, WaitTimeSeconds = 0, VisibilityTimeout = 30 } = call;
    const until = systemClock.now() + WaitTimeSeconds * 1_000;
    for (;;) {
      const received = request.socket.destroyed ? [] : queue.receive(MaxNumberOfMessages, VisibilityTimeout);
      if (received.length > 0 || systemClock.now() >= until || request.socket.destroyed) return received;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          queue.waiting.delete(wake);
          timer.cancel();
          resolve();
        };
        // What was invisible becomes visible without anybody saying so.
        const timer = systemClock.after(50, wake);
        queue.waiting.add(wake);
      });
    }
  }

  return {
    endpoint,
    queue: (name, { maxReceiveCount = Number.POSITIVE_INFINITY } = {}) => {
      const queue = new Queue(`${endpoint}/123456789012/${name}`, maxReceiveCount);
      queues.set(queue.url, queue);
      return queue;
    },
    calls: () => calls,
    failNext: (action, times) => void failures.set(action, times),
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function toMessage({ id, body, receipt, receiveCount, sentAt }: Stored): unknown {
  return {
    MessageId: id,
    ReceiptHandle: receipt,
    Body: body,
    MD5OfBody: createHash("md5").update(body).digest("hex"),
    Attributes: { ApproximateReceiveCount: String(receiveCount), SentTimestamp: String(sentAt) },
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/x-amz-json-1.0" });
  response.end(JSON.stringify(body));
}
