/** The writer's side of a landing: each result goes out with the epoch under which it was made, and none without one. */
import { RelevoError } from "../kernel/errors.ts";
import type { Stamp } from "./landing.ts";
import type { WriterLease } from "./lease.ts";

export type SinkWriter = Pick<WriterLease, "state" | "epoch" | "workload" | "reason" | "declareLost">;

export interface SinkOptions<Result, Answer> {
  readonly writer: SinkWriter;
  /**
   * Brings one result to where it lands, which compares the stamp; rejects with an error of the code `stale_writer` when the landing refused it. The stamp is
   * null only with `whenUnleased: "allow"`.
   */
  readonly land: (result: Result, stamp: Stamp | null) => Promise<Answer>;
  /** What a workload does whose pool has no writer lease: refuse (the default), or write without a stamp. */
  readonly whenUnleased?: "refuse" | "allow";
}

export interface Sink<Result, Answer> {
  /**
   * The stamp of this moment. Take it when work on a result begins, so that what was read before a pause is not written under what is true after it. Error:
   * `writer_lease_missing`.
   */
  stamp(): Stamp | null;
  /** Errors: `writer_lease_missing`; whatever `land` rejects with, `stale_writer` among them: then the instance has stopped itself. */
  write(result: Result, stamp?: Stamp | null): Promise<Answer>;
}

export function createSink<Result, Answer = void>(options: SinkOptions<Result, Answer>): Sink<Result, Answer> {
  const { writer, land } = options;

  const current = (): Stamp | null => {
    const epoch = writer.epoch();
    if (epoch !== null && writer.workload !== null) return { workload: writer.workload, epoch };
    if (writer.state === "none" && options.whenUnleased === "allow") return null;
    throw new RelevoError("writer_lease_missing", "This instance may not write now: it holds no writer lease.", {
      class: writer.state === "lost" ? "terminal" : "retryable",
      found: writer.reason ?? writer.state,
      ...(writer.state === "none" ? { todo: 'Set spec.state.lease in the Pool, or create the sink with `whenUnleased: "allow"`.' } : {}),
    });
  };

  return {
    stamp: current,
    async write(result, stamp) {
      // Also one that was taken earlier is used only while the lease is held.
      const now = current();
      if (stamp === null && now !== null)
        throw new RelevoError("writer_lease_missing", "This result was begun without a writer lease: it is not written under one.", {
          class: "conflict",
          allowed: "a stamp that was taken while the lease is held",
          todo: "Begin the work anew: another instance may have written since.",
        });
      try {
        return await land(result, stamp === undefined ? now : stamp);
      } catch (error) {
        if (isStale(error)) writer.declareLost("stale_writer");
        throw error;
      }
    },
  };
}

function isStale(error: unknown): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === "stale_writer";
}
