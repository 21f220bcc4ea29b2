/** Backlog of the built-in queue. It tells of changes by itself, so a pool follows within a moment. */
import type { Clock, Timer } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { DemandReading } from "../../model/demand.ts";
import { QueueClient, type QueueCounts } from "../../sdk/queue-client.ts";
import { demandError, unreachable } from "../errors.ts";
import type { DemandAdapter } from "../port.ts";

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 10_000;

export const queueAdapter: DemandAdapter<"queue"> = {
  kind: "queue",
  needs: { infrastructure: "Relevo's own queue (relevo queue)", permissions: ["a token of the queue"] },
  flowOf: ({ queue }) => flowOf(queue),
  open({ queue }, connection, { clock }) {
    if (connection?.kind !== "queue") throw demandError("not_available", "a queue signal needs a connection of kind queue");
    const client = new QueueClient({ url: connection.url, token: connection.token, clock });
    const listeners = new Set<ChangeListener>();
    return {
      read: (signal) => readCounts(client, queue, signal),
      onChange: (listener) => {
        const follower = new ChangeListener(client, queue, clock, listener);
        listeners.add(follower);
        return follower.stop;
      },
      close: async () => {
        for (const each of listeners) each.stop();
      },
    };
  },
};

function flowOf(queue: string): string {
  return `queue/${queue}`;
}

async function readCounts(client: QueueClient, queue: string, signal: AbortSignal): Promise<DemandReading> {
  try {
    return readingOf(queue, await client.counts(queue, signal));
  } catch (error) {
    throw asTrouble(error, queue, signal);
  }
}

/** As it came: whether the numbers can be believed is judged elsewhere. */
function readingOf(queue: string, { waiting, taken, oldestAgeMs, now }: QueueCounts): DemandReading {
  return { backlog: waiting, inFlight: taken, oldestAgeMs, flow: flowOf(queue), valueAt: null, sourceNow: now };
}

function asTrouble(error: unknown, queue: string, signal: AbortSignal): unknown {
  if (!(error instanceof RelevoError)) return unreachable("the queue", error, signal);
  const { code, found } = error;
  switch (code) {
    case "queue_missing":
      return demandError("missing", `there is no queue ${queue}`);
    case "body_invalid":
      return demandError("missing", `${queue} is no name of a queue`, { found });
    case "unauthorized":
      return demandError("credentials_refused", "the queue refuses our token");
    case "queue_answer_invalid":
    case "route_not_found":
      return demandError("type_changed", "what answers is no queue of Relevo", { found });
    default:
      return demandError("unreachable", error.message, { found, cause: error });
  }
}

/** Holds the stream of changes, and calls at each one that is another number, and when the stream was lost. */
class ChangeListener {
  readonly #client: QueueClient;
  readonly #queue: string;
  readonly #clock: Clock;
  readonly #listener: () => void;
  readonly #over = new AbortController();
  #retryMs = FIRST_RETRY_MS;
  #timer: Timer | undefined;
  #last: string | undefined;

  constructor(client: QueueClient, queue: string, clock: Clock, listener: () => void) {
    this.#client = client;
    this.#queue = queue;
    this.#clock = clock;
    this.#listener = listener;
    void this.#follow();
  }

  readonly stop = (): void => {
    this.#over.abort();
    this.#timer?.cancel();
  };

  async #follow(): Promise<void> {
    try {
      for await (const counts of this.#client.changes(this.#queue, this.#over.signal)) {
        this.#retryMs = FIRST_RETRY_MS;
        const { waiting, taken, createdAt } = counts;
        const numbers = `${waiting} ${taken} ${createdAt}`;
        if (numbers === this.#last) continue;
        this.#last = numbers;
        this.#listener();
      }
    } catch {
      // What is the matter says the look that follows.
    }
    if (this.#over.signal.aborted) return;
    if (this.#last !== undefined) this.#listener();
    this.#last = undefined;
    this.#timer = this.#clock.after(this.#retryMs, () => void this.#follow());
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
  }
}
