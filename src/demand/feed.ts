/**
 * Puts tagged work where a pool takes its own from, tells what became of it, and takes back what nobody has begun: for load tests and for proofs by effect. It is
 * used by commands, with what the operator gives them; the controller itself only ever reads.
 */
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { CONNECTION_OF, type SignalKind, type SignalSpec } from "../model/demand.ts";
import { QueueClient, type TaggedCounts } from "../sdk/queue-client.ts";
import type { Connection } from "./connections.ts";

/** Where work can be fed, told apart from others' and taken back. */
export const FED_KINDS: readonly SignalKind[] = ["queue"];

export interface WorkFeed {
  /** One job for each payload, in their order; each is told apart by its tag. */
  add(payloads: readonly unknown[]): Promise<void>;
  /** Of what was added alone. */
  counts(): Promise<TaggedCounts>;
  /** What waits or is dead goes; what is taken is left to its worker. Returns how many went. */
  clear(): Promise<number>;
}

const JOBS_AT_ONCE = 500;

/** `tag` begins the id of each job. Throws `signal_cannot_be_fed`, `connection_missing`. */
export function openFeed(signal: SignalSpec, connection: Connection | undefined, tag: string, clock: Clock): WorkFeed {
  if (signal.kind !== "queue")
    throw new RelevoError("signal_cannot_be_fed", `Work for a signal of kind ${signal.kind} cannot be put in and taken back by its tag.`, {
      found: signal.kind,
      allowed: FED_KINDS.join(", "),
      todo: "put the load in with what fills it in production, and watch with relevo get pools --watch",
    });
  if (connection?.kind !== "queue")
    throw new RelevoError(
      "connection_missing",
      `The file of connections has no ${signal.connection} of kind ${CONNECTION_OF[signal.kind]}.`,
      {
        found: connection?.kind ?? "none of that name",
        todo: "give --connections the file that the controller has",
      },
    );
  const client = new QueueClient({ url: connection.url, token: connection.token, clock });
  const { queue } = signal;
  let added = 0;
  return {
    async add(payloads) {
      for (let at = 0; at < payloads.length; at += JOBS_AT_ONCE) {
        const part = payloads.slice(at, at + JOBS_AT_ONCE);
        // Numbered here, so that one that is sent again is kept once.
        await client.add(
          queue,
          part.map((payload, index) => ({ id: `${tag}${added + index + 1}`, payload })),
        );
        added += part.length;
      }
    },
    counts: () => client.tagged(queue, tag),
    clear: () => client.removeTagged(queue, tag),
  };
}
