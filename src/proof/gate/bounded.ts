/** Calls that end: the answer within a time, or an error that says so. */
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { formatDuration } from "../../kernel/units.ts";

export async function within<T>(clock: Clock, ms: number, what: string, call: Promise<T>): Promise<T> {
  let timer: { cancel(): void } | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.after(ms, () =>
      reject(new RelevoError("gate_call_timeout", `${what} took longer than ${formatDuration(ms)}.`, { class: "retryable" })),
    );
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    timer?.cancel();
  }
}
