/** The driver of each instance by what it speaks. */
import type { Clock } from "../kernel/clock.ts";
import type { InstanceDriver, InstanceTarget } from "./port.ts";
import { ServiceDriver } from "./service/service-driver.ts";
import { TrinoDriver } from "./trino/trino-driver.ts";

/** Members are Trino's: no other instance has any. */
export type AnyDriver = Required<InstanceDriver> & {
  /** Frees the sockets; the driver cannot be used afterwards. */
  destroy(): Promise<void>;
};

export function driverFor(options: { readonly clock: Clock }): AnyDriver {
  const service = new ServiceDriver(options);
  const trino = new TrinoDriver(options);
  const of = (target: InstanceTarget): InstanceDriver => (target.protocol === "trino/v1" ? trino : service);
  return {
    identity: (target) => of(target).identity(target),
    health: (target) => of(target).health(target),
    obligations: (target) => of(target).obligations(target),
    slots: (target) => of(target).slots(target),
    prepare: (target, call) => of(target).prepare(target, call),
    admit: (target, call) => of(target).admit(target, call),
    drain: (target, call) => of(target).drain(target, call),
    close: (target, call) => of(target).close(target, call),
    drainMember: (target, how) => trino.drainMember(target, how),
    resumeMember: (target) => trino.resumeMember(target),
    memberState: (target) => trino.memberState(target),
    destroy: async () => void (await Promise.all([service.destroy(), trino.destroy()])),
  };
}
