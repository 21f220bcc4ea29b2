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
export { createSink, type Sink, type SinkOptions } from "./sink.ts";
export { MAX_TRANSACTIONS, type Transactions } from "./transactions.ts";
export { type ClosableSocket, type CloseOptions, SERVICE_RESTART } from "./upgraded.ts";
export { ProtocolRefusal, WRITER_EPOCH_HEADER } from "./wire.ts";
