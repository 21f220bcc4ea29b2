/** Where a worker takes its jobs from, and tells how they ended. The built-in queue is one; what another source must promise is written at each call. */
import type { JobOutcome } from "../model/slots.ts";
import type { QueueClient, TakenJob, WriterStamp } from "./queue-client.ts";

export type { TakenJob, WriterStamp } from "./queue-client.ts";

export interface QueueSource {
  /** As the signal of the pool's scale names it: `queue/captures`. Relevo refuses a backlog of another flow than this (K1). */
  readonly flow: string;
  /** Waits for a job up to `waitMs`. What it returns is nobody else's for `leaseMs`, counted from when the call was sent. */
  take(
    options: {
      readonly worker: string;
      readonly max: number;
      readonly leaseMs: number;
      readonly waitMs: number;
      readonly stamp: WriterStamp | null;
    },
    signal: AbortSignal,
  ): Promise<readonly TakenJob[]>;
  /** Throws `lease_lost` when another may have it. */
  extend(job: TakenJob, options: { readonly leaseMs: number; readonly stamp: WriterStamp | null }): Promise<void>;
  /** A job completes once: throws `lease_lost`, or `stale_epoch`, when this attempt may not. The same call twice counts once. */
  complete(
    job: TakenJob,
    options: { readonly outcome: JobOutcome; readonly result?: unknown; readonly stamp: WriterStamp | null },
  ): Promise<void>;
  /** It is tried again, or not any more (`dead`); `untried`: the attempt does not count. */
  return(
    job: TakenJob,
    options: { readonly reason: string; readonly dead: boolean; readonly untried: boolean; readonly stamp: WriterStamp | null },
  ): Promise<"waiting" | "dead">;
}

/** A queue of `relevo queue`. */
export function builtInQueue(client: QueueClient, queue: string): QueueSource {
  return {
    flow: `queue/${queue}`,
    take: ({ stamp, ...options }, signal) => client.take(queue, { ...options, ...stamped(stamp) }, signal),
    async extend({ id, lease }, { leaseMs, stamp }) {
      await client.extend(queue, id, { lease, leaseMs, ...stamped(stamp) });
    },
    complete: ({ id, lease }, { outcome, result, stamp }) =>
      client.complete(queue, id, { lease, outcome, ...(result === undefined ? {} : { result }), ...stamped(stamp) }),
    async return({ id, lease }, { reason, dead, untried, stamp }) {
      const flags = { ...(dead ? { dead: true as const } : {}), ...(untried ? { untried: true as const } : {}) };
      return (await client.return(queue, id, { lease, reason, ...flags, ...stamped(stamp) })).state;
    },
  };
}

function stamped(stamp: WriterStamp | null): { readonly stamp?: WriterStamp } {
  return stamp === null ? {} : { stamp };
}
