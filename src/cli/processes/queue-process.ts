/** `relevo queue`: the built-in queue, with a SQLite file of its own. */
import { startQueueServer } from "../../demand/queue/server.ts";
import { systemClock, systemIds } from "../../kernel/system.ts";
import { createLogger } from "../../server/log.ts";
import { tellReady, untilAskedToEnd } from "./child.ts";

export interface QueueProcessOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly store: string;
  readonly tokenFile: string;
  readonly logLevel: string;
}

/** Runs until it is asked to end. */
export async function runQueue({ logLevel, ...options }: QueueProcessOptions): Promise<void> {
  const asked = untilAskedToEnd();
  const log = createLogger({ level: logLevel, name: "queue", clock: systemClock });
  const queue = await startQueueServer({ ...options, clock: systemClock, ids: systemIds, log });
  log.info({ event: "listening", url: queue.url, store: options.store }, "the queue takes calls");
  tellReady({ queue: queue.url });
  await asked;
  await queue.close();
}
