/**
 * Takes notices from a queue, with several receivers at once.
 *
 * 1. A message is deleted only after all that it says is durable. While the store is away it stays in hand, and nothing more is received: its receive count
 *    does not rise for our trouble, so it does not end among the dead letters. Only a message that is refused for a reason that does not pass is given back,
 *    as one that cannot be understood: it must not hold up the others.
 * 2. While a message is in hand nobody else gets it: its visibility is renewed. When it comes again all the same, what it says is there already.
 * 3. What cannot be understood is written down and shown, and left in the queue with a growing pause: the queue's own redrive policy makes it a dead letter.
 * 4. What names a machine that this cluster does not know is written down too (its node may be about to register), and given back soon, for another cluster
 *    that reads the same queue. Who of them knows the machine deletes it; what nobody claimed in time is deleted, or left, as configured.
 */
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { autoScalingSource, isOfAutoScaling } from "../autoscaling/parse.ts";
import { eventBridgeSource } from "../eventbridge/parse.ts";
import { isRetryable } from "../../kernel/errors.ts";
import { type Notice, NoticeError } from "../notice.ts";
import type { Received } from "../receive.ts";
import type { NoticeMessage, NoticeSource } from "../source.ts";
import type { NoticeQueue, QueueMessage } from "./queue.ts";

/** Whoever keeps notices: the notice desk. */
export interface NoticeKeeper {
  /** Durable when it settles. Throws NoticeError, or why it cannot be kept now. */
  take(source: NoticeSource, message: NoticeMessage): Promise<readonly Received[]>;
  keepMalformed(source: NoticeSource, key: string, body: string, error: NoticeError): Promise<void>;
  /** True when the machine has, is about to have or lately had a node in this cluster. */
  knows(machineId: string): boolean;
  /** Of a withdrawal that names no machine: true when what it takes back is of a machine that this cluster knows. */
  knowsSubject(notice: Notice): boolean;
}

export interface PollerOptions {
  readonly queue: NoticeQueue;
  readonly keeper: NoticeKeeper;
  readonly clock: Clock;
  readonly random: Random;
  readonly receivers?: number;
  readonly waitSeconds?: number;
  readonly visibilitySeconds?: number;
  /** After how long, as seen by this process, nobody is expected to claim a message any more. */
  readonly unclaimedAfterMs?: number;
  /** What becomes of it then. */
  readonly unclaimed?: "delete" | "leave";
  /** After each answer of the queue. */
  readonly onHeard: () => void;
  /** One sentence. */
  readonly onTrouble: (trouble: string) => void;
  readonly log: (level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

const RECEIVERS = 4;
/** SQS gives no more at once. */
const BATCH = 10;
const WAIT_SECONDS = 20;
const VISIBILITY_SECONDS = 30;
const UNCLAIMED_AFTER_MS = 5 * 60_000;
/** Messages whose first sight is remembered. */
const MAX_REMEMBERED = 20_000;
const RETRY = { firstMs: 200, mostMs: 10_000 };
/** How often a message is tried that is refused for a reason that does not pass by itself. */
const FAULTS = 5;
/** In good order a batch ends at once; a store that hangs is not waited for. */
const STOP_WITHIN_MS = 5_000;

type Verdict = "delete" | { readonly againInSeconds: number };

interface Judged {
  readonly message: QueueMessage;
  readonly verdict: Verdict;
}

export class QueuePoller {
  readonly #options: PollerOptions;
  readonly #stop = new AbortController();
  readonly #firstSeen = new Map<string, number>();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  start(): void {
    const { receivers = RECEIVERS } = this.#options;
    this.#loops = Promise.all(Array.from({ length: receivers }, () => this.#receiveForEver()));
  }

  /** Receives nothing more, and gives back what could not be kept. */
  async stop(): Promise<void> {
    const { clock, queue } = this.#options;
    this.#stop.abort();
    await Promise.race([this.#loops, clock.sleep(STOP_WITHIN_MS)]);
    queue.close();
  }

  async #receiveForEver(): Promise<void> {
    const { queue, waitSeconds = WAIT_SECONDS, visibilitySeconds = VISIBILITY_SECONDS, onHeard } = this.#options;
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      try {
        const messages = await queue.receive({ max: BATCH, waitSeconds, visibilitySeconds }, this.#stop.signal);
        onHeard();
        failures = 0;
        if (messages.length > 0) await this.#takeBatch(messages);
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#tell(error, "the queue cannot be read");
        await this.#pause(failures++);
      }
    }
  }

  async #takeBatch(messages: readonly QueueMessage[]): Promise<void> {
    const endRenewal = this.#keepInvisible(messages);
    let verdicts: readonly Judged[];
    try {
      verdicts = await Promise.all(messages.map(async (message) => ({ message, verdict: await this.#judge(message) })));
    } finally {
      // Before anything is given back: a late renewal would take it away again.
      await endRenewal();
    }
    await this.#carryOut(verdicts);
  }

  /** Returns how to end it. A renewal that fails is no harm: what comes again is a duplicate. */
  #keepInvisible(messages: readonly QueueMessage[]): () => Promise<void> {
    const { queue, clock, visibilitySeconds = VISIBILITY_SECONDS } = this.#options;
    const end = new AbortController();
    const renew = async (): Promise<void> => {
      while (!end.signal.aborted) {
        try {
          await clock.sleep((visibilitySeconds * 1_000) / 2, end.signal);
          await queue.setVisibility(messages, visibilitySeconds);
        } catch (error) {
          if (!end.signal.aborted) this.#tell(error, "messages in hand could not be kept from others");
        }
      }
    };
    const renewing = renew();
    return async () => {
      end.abort();
      await renewing;
    };
  }

  async #judge(message: QueueMessage): Promise<Verdict> {
    const { keeper, unclaimed = "delete", unclaimedAfterMs = UNCLAIMED_AFTER_MS } = this.#options;
    const source = isOfAutoScaling(message.body) ? autoScalingSource : eventBridgeSource;
    let received: readonly Received[] | undefined;
    try {
      received = await this.#untilKept(() => keeper.take(source, { body: message.body, headers: {} }));
    } catch (error) {
      if (!(error instanceof NoticeError)) throw error;
      await this.#untilKept(() => keeper.keepMalformed(source, message.id, message.body, error));
      return { againInSeconds: malformedAgainIn(message.receiveCount) };
    }
    if (received === undefined) return { againInSeconds: this.#stop.signal.aborted ? 0 : malformedAgainIn(message.receiveCount) };
    if (received.every(({ notice }) => this.#isOurs(notice))) return this.#forget(message);
    if (this.#seenForMs(message) < unclaimedAfterMs) return { againInSeconds: strangersAgainIn(message.receiveCount) };
    return unclaimed === "delete" ? this.#forget(message) : { againInSeconds: malformedAgainIn(message.receiveCount) };
  }

  /** True when no other cluster has to hear of it. */
  #isOurs(notice: Notice): boolean {
    const { keeper } = this.#options;
    if (notice.reason === null || notice.reason === "unknown_kind") return true;
    if (notice.reason === "withdrawn" && notice.machineIds.length === 0) return keeper.knowsSubject(notice);
    return notice.machineIds.every((machine) => keeper.knows(machine));
  }

  /** Undefined when it was stopped before, or will never be kept. A NoticeError is the message's fault and thrown; anything else is ours. */
  async #untilKept<T>(keep: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 0; !this.#stop.signal.aborted; failures++) {
      try {
        return await keep();
      } catch (error) {
        if (error instanceof NoticeError) throw error;
        this.#tell(error, "a notice cannot be written down and is kept in hand");
        if (!isRetryable(error) && failures + 1 >= FAULTS) return undefined;
        await this.#pause(failures);
      }
    }
    return undefined;
  }

  async #carryOut(verdicts: readonly Judged[]): Promise<void> {
    const { queue, log } = this.#options;
    const done = verdicts.flatMap(({ message, verdict }) => (verdict === "delete" ? [message] : []));
    const later = new Map<number, QueueMessage[]>();
    for (const { message, verdict } of verdicts)
      if (verdict !== "delete") later.set(verdict.againInSeconds, [...(later.get(verdict.againInSeconds) ?? []), message]);
    if (done.length > 0) {
      const failed = await queue.delete(done);
      if (failed.length > 0) log("warn", "messages could not be deleted and will come again", { queue: queue.name, messages: failed });
    }
    for (const [seconds, messages] of later) await queue.setVisibility(messages, seconds);
  }

  #seenForMs({ id }: QueueMessage): number {
    const now = this.#options.clock.monotonic();
    const first = this.#firstSeen.get(id);
    if (first !== undefined) return now - first;
    this.#firstSeen.set(id, now);
    if (this.#firstSeen.size > MAX_REMEMBERED) for (const oldest of this.#firstSeen.keys()) if (this.#firstSeen.delete(oldest)) break;
    return 0;
  }

  #forget({ id }: QueueMessage): "delete" {
    this.#firstSeen.delete(id);
    return "delete";
  }

  #tell(error: unknown, what: string): void {
    const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    this.#options.onTrouble(`${what}: ${why}`);
    this.#options.log("warn", what, { queue: this.#options.queue.name, error });
  }

  async #pause(failures: number): Promise<void> {
    const { clock, random } = this.#options;
    const most = Math.min(RETRY.mostMs, RETRY.firstMs * 2 ** Math.min(failures, 16));
    await clock.sleep(most / 2 + (random.next() * most) / 2, this.#stop.signal).catch(() => undefined);
  }
}

/** Soon: of two clusters the right one gets it next with every second chance, and it has two minutes. */
function strangersAgainIn(receiveCount: number): number {
  return receiveCount <= 8 ? 1 : Math.min(30, 2 ** Math.min(receiveCount - 8, 5));
}

/** It may be understood after an upgrade, or never: 5 s, 10 s, … 15 min. */
function malformedAgainIn(receiveCount: number): number {
  return Math.min(900, 5 * 2 ** Math.min(Math.max(receiveCount - 1, 0), 8));
}
