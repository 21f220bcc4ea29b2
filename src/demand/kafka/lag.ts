/**
 * The lag of a consumer group on a topic: what was written and not yet committed, over all partitions (pure).
 *
 * 1. A group that has never committed has no lag: neither nothing nor everything waits for it, as nobody knows from where it will read.
 * 2. Offsets count places in the log, not messages: a compacted topic and the markers of transactions count too.
 * 3. What retention took is not waiting any more: a committed offset before the log's start counts from the start.
 * 4. An offset beyond the log's end is of another log: the topic was made anew, or lost its end.
 */
import { demandError } from "../errors.ts";

export interface PartitionOffsets {
  readonly partition: number;
  /** Of the first message that is there, and of the next that will be; undefined: not answered. */
  readonly start: bigint | undefined;
  readonly end: bigint | undefined;
  /** -1: never; undefined: not answered. */
  readonly committed: bigint | undefined;
}

export interface GroupOnTopic {
  readonly topic: string;
  readonly group: string;
}

/** Throws `demand_missing`, `demand_partial`, `demand_type_changed`. */
export function lagOf(partitions: readonly PartitionOffsets[], { topic, group }: GroupOnTopic): number {
  const who = `group ${group} on topic ${topic}`;
  if (partitions.length === 0) throw demandError("missing", `topic ${topic} has no partition`);
  const silent = partitions.filter(({ start, end, committed }) => start === undefined || end === undefined || committed === undefined);
  if (silent.length > 0)
    throw demandError("partial", `${silent.length} of ${partitions.length} partitions of topic ${topic} did not answer`, {
      found: `partition ${numbers(silent)}`,
    });
  if (partitions.every(({ committed = -1n }) => committed < 0n))
    throw demandError("missing", `${who} has never committed an offset: nobody knows from where it will read`, {
      todo: "let one worker start, or set the group's offsets (kafka-consumer-groups --reset-offsets)",
    });
  const unknown = partitions.filter(({ committed = -1n, start = 0n, end = 0n }) => committed < 0n && end > start);
  if (unknown.length > 0)
    throw demandError("partial", `${who} has never committed an offset on some partitions that hold messages`, {
      found: `partition ${numbers(unknown)}`,
    });
  const beyond = partitions.find(({ committed = -1n, end = 0n }) => committed > end);
  if (beyond !== undefined)
    throw demandError(
      "type_changed",
      `the committed offset of ${who} is beyond the end of the log: the topic was made anew, or lost its end`,
      {
        found: `partition ${beyond.partition}: committed ${beyond.committed}, end ${beyond.end}`,
        todo: "reset the group's offsets, or let its workers do so",
      },
    );
  return Number(partitions.reduce((sum, each) => sum + lagOfPartition(each), 0n));
}

function lagOfPartition({ start = 0n, end = 0n, committed = -1n }: PartitionOffsets): bigint {
  if (committed < 0n) return 0n; // it is empty
  return end - (committed < start ? start : committed);
}

function numbers(partitions: readonly PartitionOffsets[]): string {
  const shown = partitions.slice(0, 10).map(({ partition }) => partition);
  return `${shown.join(", ")}${partitions.length > shown.length ? ", …" : ""}`;
}
