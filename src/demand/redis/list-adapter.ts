/**
 * Backlog of a Redis list. An empty list does not exist in Redis, so a name that is mistyped looks empty too: what guards against that is the flow, and the proof of a
 * scaler by effect. Lists hold no times: there is no age.
 */
import type { DemandReading, SignalOf } from "../../model/demand.ts";
import { demandError } from "../errors.ts";
import type { DemandAdapter } from "../port.ts";
import { redisLinks } from "./link.ts";
import { timeOf } from "./time.ts";

type Spec = SignalOf<"redis-list">;

export const redisListAdapter: DemandAdapter<"redis-list"> = {
  kind: "redis-list",
  needs: { infrastructure: "Redis 5 or newer, or Valkey, without cluster mode", permissions: ["+llen on the lists", "+time"] },
  flowOf,
  open(spec, connection) {
    if (connection?.kind !== "redis") throw demandError("not_available", "a redis-list signal needs a connection of kind redis");
    const lease = redisLinks.lease(connection);
    return {
      read: async (signal) => {
        const link = await lease.client();
        return readingOf(spec, await link.together(commandsOf(spec), signal));
      },
      close: () => lease.release(),
    };
  },
};

function flowOf({ list }: Spec): string {
  return `redis/${list}`;
}

function commandsOf({ list, processing }: Spec): readonly (readonly string[])[] {
  return [["TIME"], ["LLEN", list], ...(processing === undefined ? [] : [["LLEN", processing]])];
}

export function readingOf(spec: Spec, [time, backlog, inFlight]: readonly unknown[]): DemandReading {
  return {
    backlog: backlog as number,
    inFlight: spec.processing === undefined ? null : (inFlight as number),
    oldestAgeMs: null,
    flow: flowOf(spec),
    valueAt: null,
    sourceNow: timeOf(time),
  };
}
