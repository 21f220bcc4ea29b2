/** The queues that a controller takes notices from, and the lifecycle hooks that it answers. The AWS SDK is loaded only where they are switched on. */
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { regionOf } from "../../notices/sqs/queue-url.ts";
import { watchRedrive } from "../../notices/sqs/redrive.ts";
import type { SdkQueue } from "../../notices/sqs/sdk-queue.ts";
import type { Logger } from "../../server/log.ts";
import type { Metrics } from "../../server/metrics.ts";
import type { NoticeDoor } from "./controller.ts";

export interface NoticeQueueOptions {
  readonly urls: readonly string[];
  /** Absent: of each URL, else the SDK's own. */
  readonly region?: string | undefined;
  /** In the place of the URLs' hosts. */
  readonly endpoint?: string | undefined;
  /** What becomes of a message about machines that no cluster claimed. */
  readonly unclaimed: "delete" | "leave";
  /** Answers lifecycle hooks of terminating machines. */
  readonly answersLifecycleHooks: boolean;
}

export interface NoticeQueues {
  /** Gives back what is in hand. */
  stop(): Promise<void>;
}

/** How often a queue that has nothing to say answers; silence of three times as long is told. */
const HEARD_EVERY_MS = 20_000;
const SQS = "sqs";

interface Parts {
  readonly door: NoticeDoor;
  readonly metrics: Pick<Metrics, "setQueueRedrive">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Starts to receive at once. */
export async function startNoticeQueues(options: NoticeQueueOptions, parts: Parts): Promise<NoticeQueues> {
  const stops: (() => Promise<void> | void)[] = [];
  const { urls, region, endpoint } = options;
  if (urls.length > 0) {
    const { SdkQueue } = await import("../../notices/sqs/sdk-queue.ts");
    for (const queue of urls.map((url) => new SdkQueue({ url, region, endpoint }))) stops.push(await poll(queue, options, parts));
  }
  if (options.answersLifecycleHooks) stops.push(await answerHooks(options, parts));
  return { stop: async () => void (await Promise.all(stops.map(async (stop) => stop()))) };
}

async function poll(
  queue: SdkQueue,
  { unclaimed }: NoticeQueueOptions,
  { door, metrics, clock, random, log }: Parts,
): Promise<() => Promise<void>> {
  const { QueuePoller } = await import("../../notices/sqs/poller.ts");
  const { desk, heartbeats } = door;
  heartbeats.expect(SQS, queue.name, HEARD_EVERY_MS);
  const poller = new QueuePoller({
    queue,
    keeper: desk,
    clock,
    random,
    unclaimed,
    onHeard: () => heartbeats.heard(SQS, queue.name, HEARD_EVERY_MS),
    onTrouble: (trouble) => heartbeats.troubled(SQS, queue.name, trouble),
    log: (level, message, fields) => log[level](fields, message),
  });
  poller.start();
  log.info({ queue: queue.name, unclaimed }, "notices are taken from a queue");
  const ending = new AbortController();
  const watching = watchRedrive(
    {
      queue,
      clock,
      onAnswer: (hasRedrive) => metrics.setQueueRedrive(queue.name, hasRedrive),
      log: (level, message, fields) => log[level](fields, message),
    },
    ending.signal,
  );
  return async () => {
    ending.abort();
    await poller.stop();
    await watching;
  };
}

async function answerHooks({ region, urls }: NoticeQueueOptions, { door, clock, log }: Parts): Promise<() => void> {
  const { LifecycleKeeper } = await import("../../notices/autoscaling/keeper.ts");
  const { SdkAutoScalingGroups } = await import("../../notices/autoscaling/sdk-groups.ts");
  const keeper = new LifecycleKeeper({
    groups: new SdkAutoScalingGroups({ region: region ?? urls.map(regionOf).find((each) => each !== undefined) }),
    open: () => door.desk.open(),
    stateOf: door.stateOf,
    clock,
    log: (level, message, fields) => log[level](fields, message),
  });
  keeper.start();
  return () => keeper.stop();
}
