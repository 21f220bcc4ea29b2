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
export { MAX_TRANSACTIONS, type Transactions } from "./transactions.ts";
export { type ClosableSocket, type CloseOptions, SERVICE_RESTART } from "./upgraded.ts";
export { ProtocolRefusal } from "./wire.ts";
