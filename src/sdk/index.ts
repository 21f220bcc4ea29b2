/**
 * What a workload imports (`relevo/sdk`) to be an instance: it imports nothing outside Node itself, and loads in a few milliseconds.
 *
 * ```ts
 * const instance = createInstance({ handler: (request, response) => response.end("hello") });
 * await instance.listen();
 * ```
 */
export { HEALTH_CHECK_LIMIT_MS, type HealthCheck } from "./health.ts";
export { createInstance, type Hook, type InstanceOptions, RelevoInstance, type UpgradeListener } from "./instance.ts";
export { createLanding, type EpochRow, type EpochStorage, type Landing, memoryEpochs, type Stamp } from "./landing.ts";
export { DEFAULT_LEASE_GRACE_MS, type LeaseState, type NewLease, WriterLease } from "./lease.ts";
export type { HeldLease, LeaseAccess, LeaseAnswer, LeaseCall } from "./lease-call.ts";
export { builtInQueue, type QueueSource } from "./queue-source.ts";
export { QueueClient, type QueueClientOptions, type QueueCounts, type TakenJob, type WriterStamp } from "./queue-client.ts";
export { type ChildEnd, type ChildOptions, type RunningChild, runChild } from "./run-child.ts";
export { endLeftoverChildren } from "./child-home.ts";
export { endOfChild, type JobContext, type JobEnd, type JobPolicy, type JobResult } from "./job-run.ts";
export { type Slot, SlotTable } from "./slots.ts";
export { createWorker, Worker, type WorkerCounts, type WorkerOptions } from "./worker.ts";
export { createSink, type Sink, type SinkOptions } from "./sink.ts";
export { MAX_TRANSACTIONS, type Transactions } from "./transactions.ts";
export { type ClosableSocket, type CloseOptions, SERVICE_RESTART } from "./upgraded.ts";
export { ProtocolRefusal, WRITER_EPOCH_HEADER } from "./wire.ts";
