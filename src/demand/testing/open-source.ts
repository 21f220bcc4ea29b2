/** A source as the controller opens it. The controller's clock is five minutes off: no adapter may measure an age by it. */
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { systemClock } from "../../kernel/system.ts";
import type { SignalKind, SignalOf } from "../../model/demand.ts";
import { type Connection, connectionSchema } from "../connections.ts";
import type { DemandAdapter, DemandSource } from "../port.ts";

const OFF_BY_MS = 5 * 60_000;

const skewedClock: Clock = {
  now: () => systemClock.now() - OFF_BY_MS,
  monotonic: () => systemClock.monotonic(),
  after: (delayMs, fire) => systemClock.after(delayMs, fire),
  sleep: (delayMs, signal) => systemClock.sleep(delayMs, signal),
};

const noCluster = () => Promise.reject(new RelevoError("not_in_this_test", "there is no cluster in this test"));

export function openSource<K extends SignalKind>(adapter: DemandAdapter<K>, spec: SignalOf<K>, connection: object): DemandSource {
  const parsed: Connection = connectionSchema.parse(connection);
  return adapter.open(spec, parsed, { clock: skewedClock, kube: { get: noCluster, list: noCluster }, namespace: "default" });
}
