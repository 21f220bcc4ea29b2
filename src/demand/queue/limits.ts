/** What the queue takes: everything that a caller can make grow has an end. */
export interface QueueLimits {
  readonly queues: number;
  /** Waiting, taken and dead ones of one queue. */
  readonly jobsPerQueue: number;
  readonly jobsPerCall: number;
  /** Of its JSON. */
  readonly payloadChars: number;
  readonly resultChars: number;
  /** Workloads whose epoch is remembered. */
  readonly writers: number;
  /** Of changes, open at once. */
  readonly streams: number;
  /** Finished jobs are known so long and so many of them, so that one that is put in twice is found out. */
  readonly finishedForMs: number;
  readonly finishedJobs: number;
  /** Of the taker of a lease that could not be renewed because the queue was away. */
  readonly restartGraceMs: number;
}

export const DEFAULT_LIMITS: QueueLimits = {
  queues: 1_000,
  jobsPerQueue: 1_000_000,
  jobsPerCall: 1_000,
  payloadChars: 256 * 1024,
  resultChars: 16 * 1024,
  writers: 100_000,
  streams: 2_000,
  finishedForMs: 24 * 3_600_000,
  finishedJobs: 200_000,
  restartGraceMs: 10_000,
};

export const DEFAULT_MAX_ATTEMPTS = 5;
