import type { Checker } from "./checker.ts";

/** A container that restarts keeps its address: the gateway finds out at its next check (every 2 s here, two time-outs at most). */
const FOUND_OUT_MS = 5_000;

/** Watches: every request that a gateway replica sends. */
export function trafficFollowsAPassedCheck(): Checker {
  return {
    id: "I11",
    rule: "traffic implies a passed health check",
    watches: ["dispatched"],
    on(event, { violate }) {
      if (event.type !== "dispatched") return;
      const who = `${event.instance}.${event.incarnation}`;
      if (event.passedCheckAt === null) violate(`${event.replica} sends to ${who}, which never passed its check`);
      if (event.state === "starting" || event.state === "ready") violate(`${event.replica} sends to ${who}, which was never admitted`);
      if (event.state === "another_process" && event.processAgeMs > FOUND_OUT_MS)
        violate(`${event.replica} sends to ${who} and reaches another process`);
    },
  };
}

/** Watches: the counts of each report. */
export function countsAddUp(): Checker {
  return {
    id: "I14",
    rule: "accepted = completed + in flight + queued + rejected + cut",
    watches: ["counted"],
    on(event, { violate }) {
      if (event.type !== "counted") return;
      const { accepted, completed, inFlight, queued, rejected, cut } = event.counts;
      if (accepted !== completed + inFlight + queued + rejected + cut)
        violate(`${event.replica} ${event.route}: ${JSON.stringify(event.counts)}`);
    },
  };
}
