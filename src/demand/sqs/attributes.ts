/** A queue's attributes by the AWS SDK. */
import { GetQueueAttributesCommand, GetQueueUrlCommand, SQSClient } from "@aws-sdk/client-sqs";
import type { ConnectionOf } from "../connections.ts";
import { boundAnswers } from "./bound-answers.ts";

export interface SqsAttributes {
  /** Throws what the SDK throws. */
  read(
    queue: { readonly name: string; readonly account: string | undefined },
    signal: AbortSignal,
  ): Promise<Readonly<Partial<Record<string, unknown>>>>;
  close(): void;
}

const CONNECT_LIMIT_MS = 3_000;
const SOCKETS_MAX = 20;

export function openAttributes({ region, endpoint, credentials }: ConnectionOf<"sqs">): SqsAttributes {
  const client = new SQSClient({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    // The next look comes by itself; the second attempt is for a clock that is off, which the SDK learns from the first one's answer.
    maxAttempts: 2,
    // Where the endpoint is said, it is meant, whatever host a queue's URL names.
    useQueueUrlAsEndpoint: false,
    requestHandler: {
      connectionTimeout: CONNECT_LIMIT_MS,
      httpsAgent: { maxSockets: SOCKETS_MAX },
      httpAgent: { maxSockets: SOCKETS_MAX },
    },
  });
  boundAnswers(client);
  return {
    read: async ({ name, account }, abortSignal) => {
      const of = { QueueName: name, ...(account === undefined ? {} : { QueueOwnerAWSAccountId: account }) };
      const { QueueUrl } = await client.send(new GetQueueUrlCommand(of), { abortSignal });
      const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"] as const;
      const { Attributes } = await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: [...AttributeNames] }), {
        abortSignal,
      });
      return Attributes ?? {};
    },
    close: () => client.destroy(),
  };
}
