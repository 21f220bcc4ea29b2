/** Whether a queue has a redrive policy: without one, a message that nobody can understand comes again until it is too old, and no one hears of it. */
import type { Clock } from "../../kernel/clock.ts";

export interface RedriveOptions {
  readonly queue: {
    readonly name: string;
    /** Rejects where it may not be asked. */
    hasRedrivePolicy(): Promise<boolean>;
  };
  readonly clock: Clock;
  readonly onAnswer: (hasRedrive: boolean) => void;
  readonly log: (level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** It may be given one meanwhile. */
export const ASK_AGAIN_MS = 3_600_000;

/** Asks at once, and again and again until it is stopped. What cannot be asked is told once, and no answer. */
export async function watchRedrive({ queue, clock, onAnswer, log }: RedriveOptions, signal: AbortSignal): Promise<void> {
  let told = "";
  const tell = (level: "info" | "warn", message: string, fields: object = {}): void => {
    if (told !== message) log(level, message, { queue: queue.name, ...fields });
    told = message;
  };
  while (!signal.aborted) {
    try {
      const hasRedrive = await queue.hasRedrivePolicy();
      onAnswer(hasRedrive);
      if (!hasRedrive)
        tell("warn", "the queue has no redrive policy: what nobody understands comes again until it is too old (docs/notices.md)");
    } catch (error) {
      tell("info", "whether the queue has a redrive policy cannot be asked: grant sqs:GetQueueAttributes", { error });
    }
    await clock.sleep(ASK_AGAIN_MS, signal).catch(() => undefined); // it was stopped
  }
}
