/**
 * Backlog of an SQS queue by GetQueueAttributes. The numbers are SQS's approximations: they settle within about a minute of the last send.
 *
 * Delayed messages are none: nobody could take them yet. The age of the oldest is no attribute of a queue (CloudWatch has it, minutes late): it is not told.
 */
import type { DemandReading } from "../../model/demand.ts";
import type { ConnectionOf } from "../connections.ts";
import { endedBy } from "../ended-by.ts";
import { demandError, unreachable } from "../errors.ts";
import type { DemandAdapter } from "../port.ts";
import { SharedClients } from "../shared-clients.ts";
import type { SqsAttributes } from "./attributes.ts";

type SqsConnection = ConnectionOf<"sqs">;

/** `ACCOUNT/NAME` is a queue of another account. No URL: a Pool does not choose whom the controller calls. */
const QUEUE = /^(?:(\d{12})\/)?([A-Za-z0-9_-]{1,80}(?:\.fifo)?)$/;

/** The SDK is loaded where there is such a connection. */
const clients = new SharedClients<SqsConnection, SqsAttributes>(
  async (connection) => (await import("./attributes.ts")).openAttributes(connection),
  (client) => client.close(),
);

export const sqsAdapter: DemandAdapter<"sqs"> = {
  kind: "sqs",
  needs: {
    infrastructure: "Amazon SQS",
    permissions: ["sqs:GetQueueUrl and sqs:GetQueueAttributes on the queue"],
  },
  flowOf: ({ queue }) => `sqs/${queue}`,
  open({ queue }, connection) {
    if (connection?.kind !== "sqs") throw demandError("not_available", "an sqs signal needs a connection of kind sqs");
    const lease = clients.lease(connection);
    const who = `SQS (connection ${connection.name})`;
    const readNow = async (signal: AbortSignal): Promise<DemandReading> => {
      try {
        return await readDemand(await lease.client(), queue, signal);
      } catch (error) {
        throw troubleOf(error, who, queue, signal);
      }
    };
    return {
      // Credentials are looked for without a signal.
      read: (signal) => endedBy(signal, readNow(signal), who),
      close: () => lease.release(),
    };
  },
};

async function readDemand(client: SqsAttributes, queue: string, signal: AbortSignal): Promise<DemandReading> {
  const [, account, name] = QUEUE.exec(queue) ?? [];
  if (name === undefined)
    throw demandError("missing", "this is no name of a queue", {
      found: queue,
      allowed: "NAME, or ACCOUNT/NAME for a queue of another account",
    });
  const attributes = await client.read({ name, account }, signal);
  return {
    backlog: numberOf(attributes, "ApproximateNumberOfMessages"),
    inFlight: numberOf(attributes, "ApproximateNumberOfMessagesNotVisible"),
    oldestAgeMs: null,
    flow: `sqs/${queue}`,
    valueAt: null,
    sourceNow: null,
  };
}

function numberOf(attributes: Readonly<Partial<Record<string, unknown>>>, attribute: string): number {
  const value = attributes[attribute];
  if (value === undefined) throw demandError("partial", `SQS does not tell ${attribute}`);
  if (typeof value !== "string" || !/^-?\d+$/.test(value)) throw demandError("not_a_number", `${attribute} is no number`, { found: value });
  return Number(value);
}

const REFUSED =
  /AccessDenied|InvalidClientTokenId|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|UnrecognizedClient|Credentials|TokenProvider|OptInRequired|NotAuthorized/;

function troubleOf(error: unknown, who: string, queue: string, signal: AbortSignal): Error {
  const { name = "", $metadata: { httpStatusCode: status } = {} } = error as {
    readonly name?: string;
    readonly $metadata?: { readonly httpStatusCode?: number };
  };
  const found = `${name}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 400);
  if (/QueueDoesNotExist|NonExistentQueue/.test(name)) return demandError("missing", `${who} has no queue ${queue}`, { found });
  if (REFUSED.test(name) || status === 401 || status === 403)
    return demandError("credentials_refused", `${who} refuses our credentials`, { found, cause: error });
  if (status !== undefined && status >= 300)
    return demandError("unreachable", `${who} answered with an error`, { found: `${status} ${found}`, cause: error });
  if (error instanceof SyntaxError) return demandError("type_changed", `the answer of ${who} is none of SQS`, { found, cause: error });
  return unreachable(who, error, signal);
}
