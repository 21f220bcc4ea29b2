/** Streams of a queue's numbers: a line when they changed, at most one every 100 ms, and one every 5 s in any case. */
import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { QueueCounts } from "../../sdk/queue-client.ts";
import { LineStream } from "../../server/line-stream.ts";

const MIN_GAP_MS = 100;
const HEARTBEAT_MS = 5_000;
const MAX_BUFFERED_BYTES = 256 * 1024;

interface Watched {
  readonly streams: Set<LineStream>;
  /** Until it fires no line is sent. */
  timer: Timer | undefined;
  isDirty: boolean;
}

export class ChangeStreams {
  readonly #clock: Clock;
  /** Undefined: the queue is gone. */
  readonly #countsOf: (queue: string) => QueueCounts | undefined;
  readonly #byQueue = new Map<string, Watched>();
  readonly #maxStreams: number;
  #size = 0;

  constructor(clock: Clock, maxStreams: number, countsOf: (queue: string) => QueueCounts | undefined) {
    this.#clock = clock;
    this.#maxStreams = maxStreams;
    this.#countsOf = countsOf;
  }

  open(queue: string, response: ServerResponse): void {
    if (this.#size >= this.#maxStreams)
      throw new RelevoError("too_many_streams", "too many streams are open", { class: "retryable", allowed: `${this.#maxStreams}` });
    const watched = this.#byQueue.get(queue) ?? { streams: new Set<LineStream>(), timer: undefined, isDirty: false };
    this.#byQueue.set(queue, watched);
    const ping = { toJSON: () => this.#countsOf(queue) ?? {} };
    const options = { clock: this.#clock, pingEveryMs: HEARTBEAT_MS, ping, maxBufferedBytes: MAX_BUFFERED_BYTES };
    const stream: LineStream = new LineStream(response, options, () => this.#forget(queue, watched, stream));
    this.#size++;
    watched.streams.add(stream);
    stream.open();
    stream.send(ping);
  }

  changed(queue: string): void {
    const watched = this.#byQueue.get(queue);
    if (watched === undefined) return;
    if (watched.timer !== undefined) watched.isDirty = true;
    else this.#tell(queue, watched);
  }

  close(): void {
    for (const { streams } of this.#byQueue.values()) for (const stream of streams) stream.end();
  }

  #tell(queue: string, watched: Watched): void {
    watched.isDirty = false;
    const counts = this.#countsOf(queue);
    // Of a queue that is gone nothing can be told: who comes again finds that out, or the new one.
    for (const stream of watched.streams)
      if (counts === undefined) stream.end();
      else stream.send(counts);
    watched.timer = this.#clock.after(MIN_GAP_MS, () => {
      watched.timer = undefined;
      if (watched.isDirty) this.#tell(queue, watched);
    });
  }

  #forget(queue: string, watched: Watched, stream: LineStream): void {
    if (watched.streams.delete(stream)) this.#size--;
    if (watched.streams.size > 0) return;
    watched.timer?.cancel();
    if (this.#byQueue.get(queue) === watched) this.#byQueue.delete(queue);
  }
}
