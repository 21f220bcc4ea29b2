/** Instances for the SDK's tests: real sockets, virtual time. */
import { onTestFinished } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createInstance, type InstanceOptions, type RelevoInstance } from "./index.ts";

export interface Started {
  readonly instance: RelevoInstance;
  readonly clock: VirtualClock;
  readonly base: string;
  readonly reports: string[];
}

/** Serves until the test is over; as nobody's instance from the start, unless the test gives it RELEVO_INSTANCE. */
export async function start(options: Partial<InstanceOptions> = {}): Promise<Started> {
  const clock = new VirtualClock();
  const reports: string[] = [];
  const instance = createInstance({
    handler: (_request, response) => response.end("hello"),
    name: "orders-1",
    env: { HOST: "127.0.0.1", PORT: "0" },
    clock,
    ids: { next: (prefix) => `${prefix}-0123456789` },
    report: (sentence) => reports.push(sentence),
    ...options,
  });
  onTestFinished(() => instance.stop());
  const { host, port } = await instance.listen();
  return { instance, clock, base: `http://${host}:${port}`, reports };
}
