/** A worker asked at its own door whether it may be told, with a connection that ends with the answer. */
import { TrinoHttp } from "../../../drivers/trino/http.ts";
import { workerAt } from "../../../drivers/trino/worker.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { TrinoPreflightParts } from "./ports.ts";

export function askWorker(clock: Clock): NonNullable<TrinoPreflightParts["maySetState"]> {
  return async (base, user) => {
    const http = new TrinoHttp(clock);
    try {
      return await workerAt({ base, user, clock, http }).maySetState();
    } finally {
      await http.destroy();
    }
  };
}
