/** What each process of `relevo up` shares: telling its parent that it is up, and ending in good order. */
import { flushCompileCache } from "node:module";
import { onHangup } from "../hangup.ts";
import { systemClock } from "../../kernel/system.ts";

const SAME_SIGNAL_MS = 500;

/** Sent over IPC once a child can be used. */
export interface ReadyMessage {
  readonly type: "ready";
  /** Its addresses by name, and whatever else its next life must know. */
  readonly facts: Readonly<Record<string, string>>;
}

export function isReadyMessage(message: unknown): message is ReadyMessage {
  return typeof message === "object" && message !== null && "type" in message && message.type === "ready" && "facts" in message;
}

export function tellReady(facts: Readonly<Record<string, string>>): void {
  const message: ReadyMessage = { type: "ready", facts };
  process.send?.(message);
  // A process that ends by a signal would not write its cache: the next start would be slow again.
  flushCompileCache();
}

/** Sent over IPC to a child that was started before its arguments were known. */
export interface ArgumentsMessage {
  readonly type: "arguments";
  readonly args: readonly string[];
}

/** Those that the parent sends once it knows them. Without a parent there is nothing to wait for. */
export function argumentsThatFollow(): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const gone = () => process.exit(1);
    process.once("disconnect", gone);
    process.once("message", ({ args }: ArgumentsMessage) => {
      process.off("disconnect", gone);
      resolve(args);
    });
  });
}

/** One Ctrl-C can arrive several times: from the terminal, and from npm and whatever else hands it on. */
function unlessRepeated(ask: () => void): () => void {
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const now = systemClock.monotonic();
    if (now - last > SAME_SIGNAL_MS) ask();
    last = now;
  };
}

/**
 * Settles when the process is asked to end: SIGTERM, SIGINT and SIGHUP unless it has a parent, or its parent is gone, also when it went before this was called. A second signal ends it at
 * once. To be called before anything that may wait for others, or a process that cannot start yet could not be ended either.
 */
export function untilAskedToEnd(): Promise<void> {
  return new Promise((resolve) => {
    let isAsked = false;
    const ask = () => {
      if (isAsked) process.exit(1);
      isAsked = true;
      // From here on the line to the parent must not keep the process alive.
      process.channel?.unref();
      resolve();
    };
    process.on("SIGTERM", ask);
    if (!process.send) {
      process.on("SIGINT", unlessRepeated(ask));
      onHangup(process.env, unlessRepeated(ask));
      return;
    }
    // A Ctrl-C, and the end of the terminal, reach all its processes: those that have a parent are ended by it, in its order.
    process.on("SIGINT", () => undefined);
    process.on("SIGHUP", () => undefined);
    process.on("disconnect", ask);
    // To listen for its end must not keep a process alive whose start failed.
    process.channel?.unref();
    if (!process.connected) ask();
  });
}
