/** What goes wrong between the controller and the API server, the store, and the instances. */
import { RelevoError } from "../../kernel/errors.ts";
import type { Troubles } from "../ports.ts";
import type { World } from "../world.ts";
import type { Handlers, Injection } from "./injection.ts";

type WireFault =
  | "api_errors"
  | "api_timeouts"
  | "lost_replies"
  | "conflicts"
  | "driver_errors"
  | "prober_cut"
  | "store_failing"
  | "store_busy"
  | "store_lost_replies"
  | "store_rewound"
  | "watch_break"
  | "watch_gap"
  | "watch_lag";

/** At least as many as a controller has. */
const WATCHES = 8;
const RECOVER_AGAIN_MS = 2_000;
const RECOVER_TRIES = 150;

export const WIRE_FAULTS: Handlers<WireFault> = {
  api_errors: ({ share, forMs }, injection) => trouble(injection, "apiErrors", share, forMs),
  api_timeouts: ({ share, forMs }, injection) => trouble(injection, "apiTimeouts", share, forMs),
  lost_replies: ({ share, forMs }, injection) => trouble(injection, "lostReplies", share, forMs),
  conflicts: ({ share, forMs }, injection) => trouble(injection, "conflicts", share, forMs),
  driver_errors: ({ share, forMs }, injection) => trouble(injection, "driverErrors", share, forMs),
  store_failing: ({ share, forMs }, injection) => trouble(injection, "storeFailures", share, forMs),
  store_lost_replies: ({ share, forMs }, injection) => trouble(injection, "storeLostReplies", share, forMs),
  store_busy: ({ upToMs, forMs }, injection) => trouble(injection, "storeBusyMs", upToMs, forMs),
  watch_lag: ({ lagMs, forMs }, injection) => trouble(injection, "watchLagMs", lagMs, forMs),

  async store_rewound({ byMs, recoverAfterMs }, injection) {
    const { world } = injection;
    if (!(await world.rewindStore(byMs))) return false;
    world.log.add(`the store is what it was ${byMs} ms ago`);
    injection.until(recoverAfterMs, () => recover(world, RECOVER_TRIES));
    return true;
  },

  prober_cut({ forMs }, injection) {
    const { troubles } = injection.world;
    troubles.isProberCut = true;
    injection.until(forMs, () => (troubles.isProberCut = false));
    return false;
  },

  watch_break({ how }, { world }) {
    for (const kube of world.controllers.kubes()) kube.breakWatches(how);
    return world.controllers.isUp;
  },

  watch_gap({ forMs, isTooOld }, injection) {
    const { troubles, controllers, clock } = injection.world;
    troubles.watchGapUntil = clock.monotonic() + forMs;
    for (const kube of controllers.kubes()) kube.breakWatches("broken");
    injection.until(forMs, () => {
      troubles.watchGapUntil = 0;
      troubles.watchesToExpire = isTooOld ? WATCHES : 0;
    });
    return controllers.isUp;
  },
};

/** The operator tries until somebody has noticed; when nothing was lost that anybody had seen, nobody does: the liveness phase goes on with that. */
function recover(world: World, tries: number): void {
  world.controllers
    .call((controlPlane) => controlPlane.recoverStore({ why: "an old backup was restored", by: "an operator", force: false }))
    .then(
      () => world.log.add("the store is recovered"),
      (error: unknown) => {
        if (!(error instanceof RelevoError)) world.observe({ type: "unhandled", error: String(error) });
        if (tries > 1) world.clock.after(RECOVER_AGAIN_MS, () => recover(world, tries - 1));
      },
    );
}

type Share =
  | "apiErrors"
  | "apiTimeouts"
  | "lostReplies"
  | "conflicts"
  | "driverErrors"
  | "storeFailures"
  | "storeLostReplies"
  | "storeBusyMs"
  | "watchLagMs";

/** Counted where a call meets it. */
function trouble(injection: Injection, name: Share & keyof Troubles, value: number, forMs: number): false {
  const { troubles } = injection.world;
  troubles[name] = Math.max(troubles[name], value);
  injection.until(forMs, () => (troubles[name] = 0));
  return false;
}
