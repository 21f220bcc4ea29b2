/** Controllers and gateway replicas: they die, stand still, are there twice, are cut off, and believe in another time. */
import type { GatewayReplica } from "../gateway.ts";
import type { Handlers, Injection } from "./injection.ts";

type ProcessFault =
  | "controller_crash"
  | "controller_pause"
  | "two_controllers"
  | "replica_gone"
  | "second_controller"
  | "deposed"
  | "clock_jump"
  | "gateway_silent"
  | "gateway_returns"
  | "gateway_restart"
  | "gateway_pause"
  | "gateway_unreaching";

export const PROCESS_FAULTS: Handlers<ProcessFault> = {
  controller_crash: ({ afterCalls, side, downMs }, { world }) => world.controllers.crash(afterCalls, side, downMs),

  controller_pause({ forMs }, injection) {
    const resume = injection.world.controllers.pause();
    if (resume === undefined) return false;
    injection.until(forMs, resume);
    return true;
  },

  two_controllers({ pausedMs, bothMs, strays }, injection) {
    const { controllers } = injection.world;
    const first = controllers.another({ pauseFirst: true });
    if (first === undefined) return false;
    injection.until(pausedMs, () => {
      const replica = strays === undefined ? undefined : pickReplica(injection, strays);
      if (replica !== undefined) {
        first.reachedBy(replica.id);
        replica.reconnect();
      }
      first.resume();
      injection.until(bothMs, () => first.end());
    });
    return true;
  },

  replica_gone({ pick, how, forMs }, injection) {
    const { replicas } = injection.world;
    const controllers = replicas[Math.floor(pick * replicas.length)];
    if (controllers === undefined || replicas.length < 2) return false;
    if (how === "ended") return controllers.endInOrder(forMs);
    if (how === "killed") return controllers.crash(1, "before", forMs);
    const resume = controllers.pause();
    if (resume !== undefined) injection.until(forMs, resume);
    return resume !== undefined;
  },

  second_controller({ bothMs, firstEnds }, injection) {
    const { controllers } = injection.world;
    const first = controllers.another({ pauseFirst: false });
    if (first === undefined) return false;
    injection.until(bothMs, () => (firstEnds ? first.end() : controllers.stepBack()));
    return true;
  },

  async deposed(_, injection) {
    const { store, clock, observe } = seen(injection);
    const authority = await store.claim(injection.nextPool().key, "somebody else", clock.now());
    observe({ type: "claimed", process: "somebody else", authority });
    return true;
  },

  clock_jump({ of, byMs, backAfterMs }, injection) {
    const { controllers, gateways } = injection.world;
    const jump = (ms: number): void => {
      if (of === "controller") controllers.skew(ms);
      else for (const replica of gateways) replica?.skew(ms);
    };
    jump(byMs);
    if (backAfterMs !== null) injection.until(backAfterMs, () => jump(-byMs));
    return true;
  },

  gateway_silent: ({ pick, forMs }, injection) => cutOff(injection, pick, forMs),

  gateway_returns({ pick, forMs }, injection) {
    // One replica that nobody misses: without another one nothing could be sealed, and all would wait for it.
    return injection.world.gateways.length > 1 && cutOff(injection, pick, forMs);
  },

  gateway_restart({ pick, downMs }, injection) {
    const { world } = injection;
    const slot = Math.floor(pick * world.gateways.length);
    if (!world.killGateway(slot)) return false;
    injection.until(downMs, () => world.startGateway(slot));
    return true;
  },

  gateway_pause({ pick, forMs }, injection) {
    const replica = pickReplica(injection, pick);
    if (replica === undefined) return false;
    replica.pause();
    injection.until(forMs, () => replica.resume());
    return true;
  },

  gateway_unreaching({ pick, forMs }, injection) {
    const replica = pickReplica(injection, pick);
    if (replica === undefined) return false;
    replica.reachesNobody = true;
    injection.until(forMs, () => (replica.reachesNobody = false));
    return true;
  },
};

function seen({ world }: Injection): Pick<Injection["world"], "store" | "clock"> & { observe: Injection["world"]["observe"] } {
  return { store: world.store, clock: world.clock, observe: (event) => world.observe(event) };
}

function cutOff(injection: Injection, pick: number, forMs: number): boolean {
  const replica = pickReplica(injection, pick);
  if (replica === undefined) return false;
  replica.isCutOff = true;
  injection.until(forMs, () => (replica.isCutOff = false));
  return true;
}

function pickReplica({ world }: Injection, share: number): GatewayReplica | undefined {
  return world.gateways[Math.floor(share * world.gateways.length)];
}
