import type { KubeObject } from "../../kube/api.ts";
import { POOLS } from "../../kube/resources.ts";
import { poolKey } from "../../model/pool.ts";
import type { Checker } from "./checker.ts";

/** Watches: commits that begin a drain. The decision was made a moment ago: the best of what could be seen since counts. */
const DECIDED_WITHIN_MS = 1_000;

export function voluntaryDrainHasASpare(): Checker {
  /** By pool, as everything here. */
  const seen = new Map<string, { readonly at: number; spare: number }[]>();
  /** As each controller has heard it, newest last; the oldest was heard before the time that counts. One that stood still has heard other things than its successor. */
  const heard = new Map<string, { readonly at: number; readonly desired: number }[]>();
  const hear = (process: string, pool: KubeObject, at: number): void => {
    const words = listIn(heard, `${process} ${poolKey(pool.metadata.namespace ?? "", pool.metadata.name)}`);
    words.push({ at, desired: desiredOf(pool) });
  };
  const desiredBy = (process: string, pool: string, now: number): number => {
    const words = listIn(heard, `${process} ${pool}`);
    while (words[1] !== undefined && words[1].at < now - DECIDED_WITHIN_MS) words.shift();
    return Math.min(...words.map(({ desired }) => desired));
  };
  return {
    id: "I5",
    rule: "a voluntary drain implies more serving than desired at decision time",
    watches: ["listed", "watch_line", "rows_read", "committed"],
    on(event, { mirror, truth, violate }) {
      const now = truth.now();
      if (event.type === "listed" && event.of.plural === POOLS.plural) for (const item of event.items) hear(event.process, item, now);
      if (event.type === "watch_line" && event.of.plural === POOLS.plural && "object" in event.line)
        hear(event.process, event.line.object, now);
      if (event.type === "rows_read") {
        const serving = event.rows.instances.filter(({ phase }) => phase === "serving").length;
        const looks = listIn(seen, event.rows.pool);
        looks.push({ at: now, spare: serving - desiredBy(event.process, event.rows.pool, now) });
        while (looks[0] !== undefined && looks[0].at < now - DECIDED_WITHIN_MS) looks.shift();
      }
      if (event.type !== "committed") return;
      const { pool } = event.authority;
      for (const change of event.changes) {
        if (change.kind !== "move_instance" || change.to !== "draining" || mirror.get(change.instance)?.phase !== "serving") continue;
        const desired = desiredBy(event.process, pool, now);
        const best = Math.max(...listIn(seen, pool).map(({ spare }) => spare), mirror.serving(pool) - desired);
        // One spare instance is spent once: who has drained since that look took one.
        for (const look of listIn(seen, pool)) look.spare -= 1;
        if (best <= 0 && change.set?.drainLoss === "voluntary")
          violate(`${change.instance} drains voluntarily while ${mirror.serving(pool)} serve and ${desired} are desired`);
      }
    },
  };
}

function listIn<T>(lists: Map<string, T[]>, key: string): T[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

function desiredOf(pool: KubeObject): number {
  if (pool.metadata.deletionTimestamp !== undefined) return 0;
  return (pool["spec"] as { readonly size?: { readonly desired?: number } } | undefined)?.size?.desired ?? 0;
}

/** Watches: commits that seal. What the gateways hold and what runs at the instance is looked up. */
export function confirmedSealIsEmpty(): Checker {
  return {
    id: "D5",
    rule: "a confirmed seal implies that no gateway replica holds anything of the instance",
    watches: ["committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "move_instance" || change.to !== "sealed" || change.set?.seal !== "confirmed") continue;
        const incarnation = mirror.get(change.instance)?.incarnation ?? 0;
        for (const { replica, requests, sessions, state } of truth.held(change.instance, incarnation)) {
          if (state === "serving" || state === "suspect") violate(`${change.instance} is sealed while ${replica} still sends to it`);
          if (requests + sessions > 0)
            violate(`${change.instance} is sealed while ${replica} holds ${requests} requests and ${sessions} sessions`);
        }
      }
    },
  };
}

/** More incarnations than a stranger has. */
const INCARNATIONS = [1, 2, 3, 4] as const;

/**
 * Watches: decisions to delete what the store does not know. A replica that nobody hears is given up sooner or later; what the store knows as deleted left
 * traffic by its seal, which may have been forced.
 */
export function strangersLeaveTrafficFirst(): Checker {
  return {
    id: "D5/stranger",
    rule: "what the store does not know is deleted once no gateway replica sends anything there",
    watches: ["committed"],
    on(event, { mirror, truth, violate }) {
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "record_step" || !change.step.kind.startsWith("delete_stranger/")) continue;
        const { instance } = change.step.payload as { readonly instance: string };
        if (mirror.get(instance)?.phase === "deleted") continue;
        for (const { replica, state, isCutOff } of INCARNATIONS.flatMap((incarnation) => truth.held(instance, incarnation)))
          if (!isCutOff && (state === "serving" || state === "suspect"))
            violate(`${instance} is to be deleted while ${replica} sends to it`);
      }
    },
  };
}

/** Watches: ends of processes. One that Relevo ends has nothing left when its drain was confirmed. */
export function noObligationIsLostByADelete(): Checker {
  const confirmed = new Set<string>();
  return {
    id: "D19",
    rule: "a process that ends because its instance was deleted after a confirmed seal holds nothing",
    watches: ["committed", "instance_ended"],
    on(event, { violate }) {
      if (event.type === "committed") {
        for (const change of event.changes)
          if (change.kind === "move_instance" && change.set?.seal === "confirmed") confirmed.add(change.instance);
      }
      if (event.type !== "instance_ended" || event.obligations === 0) return;
      const instance = [...confirmed].find((id) => event.podName.startsWith(`${id}-`));
      if (instance !== undefined) violate(`${event.podName} ends with ${event.obligations} obligations after a confirmed seal`);
    },
  };
}

/** Watches: ends of processes, and seals. What a process still had when it ended was lost, whatever the gateways say of it afterwards. */
export function lostProcessesAreNotDrained(): Checker {
  const admitted = new Map<string, string>();
  const lostWith = new Map<string, number>();
  return {
    id: "D13",
    rule: "a draining instance whose admitted process is lost leaves the drain as a loss",
    watches: ["committed", "instance_ended"],
    on(event, { violate }) {
      if (event.type === "instance_ended" && event.obligations > 0) lostWith.set(event.bootId, event.obligations);
      if (event.type !== "committed") return;
      for (const change of event.changes) {
        if (change.kind !== "move_instance") continue;
        const bootId = change.set?.bootId;
        if (change.to === "admitted" && bootId) admitted.set(change.instance, bootId);
        const lost = lostWith.get(admitted.get(change.instance) ?? "");
        if (change.to === "sealed" && change.set?.seal === "confirmed" && lost !== undefined)
          violate(`${change.instance} is sealed as drained, and its process ended with ${lost} obligations`);
      }
    },
  };
}
