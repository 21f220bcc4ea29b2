/** For calls that know no AbortSignal: whoever waits is let go, the call ends by its own limit. */
import { unreachable } from "./errors.ts";

/** Rejects with `demand_unreachable` when the signal aborts first, after `onAbort`; what the call comes to later is nobody's. */
export function endedBy<T>(signal: AbortSignal, call: Promise<T>, who: string, onAbort?: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      onAbort?.();
      reject(unreachable(who, signal.reason, signal));
    };
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    void call.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}
