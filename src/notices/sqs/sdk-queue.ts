/** SQS by the AWS SDK. Credentials come by the SDK's own chain: environment, web identity, instance role. */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { NoticeQueue, QueueMessage, ReceiveOptions } from "./queue.ts";
import { regionOf } from "./queue-url.ts";

export interface SdkQueueOptions {
  /** As SQS gives it: `https://sqs.REGION.amazonaws.com/ACCOUNT/NAME`. */
  readonly url: string;
  /** Absent: of the URL, else the SDK's own. */
  readonly region?: string | undefined;
  /** In the place of the URL's host. */
  readonly endpoint?: string | undefined;
}

/** Of one call, beyond what a long poll waits. */
const TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 3_000;
const MAX_SOCKETS = 50;

export class SdkQueue implements NoticeQueue {
  readonly name: string;
  readonly #client: SQSClient;

  constructor({ url, region, endpoint }: SdkQueueOptions) {
    this.name = url;
    const place = region ?? regionOf(url);
    this.#client = new SQSClient({
      ...(place === undefined ? {} : { region: place }),
      // The queue's own host: else the SDK would warn, on each call, where it differs from what it guessed.
      endpoint: endpoint ?? new URL(url).origin,
      useQueueUrlAsEndpoint: false,
      maxAttempts: 3,
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        httpsAgent: { maxSockets: MAX_SOCKETS },
        httpAgent: { maxSockets: MAX_SOCKETS },
      },
    });
  }

  async receive({ max, waitSeconds, visibilitySeconds }: ReceiveOptions, signal: AbortSignal): Promise<readonly QueueMessage[]> {
    const { Messages = [] } = await this.#client.send(
      new ReceiveMessageCommand({
        QueueUrl: this.name,
        MaxNumberOfMessages: max,
        WaitTimeSeconds: waitSeconds,
        VisibilityTimeout: visibilitySeconds,
        MessageSystemAttributeNames: ["ApproximateReceiveCount"],
      }),
      { abortSignal: signal, requestTimeout: waitSeconds * 1_000 + TIMEOUT_MS },
    );
    return Messages.flatMap(({ MessageId: id, ReceiptHandle: receipt, Body: body = "", Attributes }) =>
      id === undefined || receipt === undefined
        ? []
        : [{ id, receipt, body, receiveCount: Number(Attributes?.ApproximateReceiveCount ?? 1) || 1 }],
    );
  }

  async delete(messages: readonly QueueMessage[]): Promise<readonly string[]> {
    const { Failed = [] } = await this.#client.send(new DeleteMessageBatchCommand({ QueueUrl: this.name, Entries: entriesOf(messages) }), {
      requestTimeout: TIMEOUT_MS,
    });
    return Failed.flatMap(({ Id }) => messages[Number(Id)]?.id ?? []);
  }

  async setVisibility(messages: readonly QueueMessage[], seconds: number): Promise<void> {
    // Single entries fail when their delivery is not ours any more, which is what was wanted.
    await this.#client.send(
      new ChangeMessageVisibilityBatchCommand({
        QueueUrl: this.name,
        Entries: entriesOf(messages).map((entry) => ({ ...entry, VisibilityTimeout: seconds })),
      }),
      { requestTimeout: TIMEOUT_MS },
    );
  }

  /** Needs `sqs:GetQueueAttributes`; rejects without. */
  async hasRedrivePolicy(): Promise<boolean> {
    const { Attributes } = await this.#client.send(
      new GetQueueAttributesCommand({ QueueUrl: this.name, AttributeNames: ["RedrivePolicy"] }),
      {
        requestTimeout: TIMEOUT_MS,
      },
    );
    return (Attributes?.RedrivePolicy ?? "") !== "";
  }

  close(): void {
    this.#client.destroy();
  }
}

/** A batch names its entries by their place. */
function entriesOf(messages: readonly QueueMessage[]): { Id: string; ReceiptHandle: string }[] {
  return messages.map(({ receipt }, index) => ({ Id: String(index), ReceiptHandle: receipt }));
}
