/** The replicas of the controller: who lives, and where each is reached. It only elects: who may act for a pool is in the store. */
import type { ElectionTiming } from "../kube/election-state.ts";
import { compareVersions } from "../model/version.ts";
import { ControllerMembers, type ControllerMembersOptions } from "../kube/election.ts";

export interface Member {
  readonly id: string;
  /** Of its HTTP API, as other replicas and gateways reach it; null when it says none. */
  readonly api: string | null;
  /** Absent: it says none. */
  readonly version?: string | undefined;
}

export interface Members {
  readonly self: string;
  /** Of this program; absent: nobody compares. */
  readonly version?: string | undefined;
  /** False: there is one replica and no election. */
  readonly isShared: boolean;
  /** Settles once this replica is seen to live, by the others too, and knows the others. */
  start(): Promise<void>;
  /** In good order: the others need not wait until it counts as dead. Settles when they can know. */
  stop(): Promise<void>;
  /** Those that count as living, by id. While the API server is away it stays as it was. */
  live(): readonly Member[];
  /** Whether the others can see that this one lives: otherwise they take over what it has, and it must not take anything. */
  isHeld(): boolean;
  /** Told when `live()` has changed. Returns how to stop listening. */
  onChange(listener: () => void): () => void;
}

/** Where there is one replica. */
export function onlyMember(self: string, api: string | null = null): Members {
  const live = [{ id: self, api }];
  return {
    self,
    isShared: false,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    live: () => live,
    isHeld: () => true,
    onChange: () => () => undefined,
  };
}

/** With what a take-over needs beside it, a list and a claim, a replica that is killed is replaced within five seconds, on a busy machine too. */
const TIMING: ElectionTiming = { renewEveryMs: 700, durationMs: 3_500, gapMs: 2_000 };

export interface ElectedMembersOptions extends Omit<ControllerMembersOptions, "apiUrl"> {
  /** Known at `start`. */
  readonly apiUrl: () => string;
}

/** Where each replica holds a Lease. */
export function electedMembers(options: ElectedMembersOptions): Members {
  let members: ControllerMembers | undefined;
  const listeners = new Set<() => void>();
  return {
    self: options.id,
    version: options.version,
    isShared: true,
    start() {
      members = new ControllerMembers({ timing: TIMING, ...options, apiUrl: options.apiUrl() });
      members.onChange(() => {
        for (const listener of listeners) listener();
      });
      members.start();
      return members.whenReady();
    },
    stop: () => members?.stop() ?? Promise.resolve(),
    live: () => members?.live() ?? [],
    isHeld: () => members?.isHeld() ?? false,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Live replicas of another version than this one, `id (version)`. */
export function otherVersions(members: Members): readonly string[] {
  return others(members, (version, own) => version !== own);
}

/** D17: a live replica from before this version may not know what a pool would be activated for. Undefined: there is none. */
export function olderReplica(members: Members): string | undefined {
  return others(members, (version, own) => version === undefined || compareVersions(version, own) < 0)[0];
}

function others(members: Members, matches: (version: string | undefined, own: string) => boolean): readonly string[] {
  const own = members.version;
  if (own === undefined) return [];
  return members
    .live()
    .filter(({ id, version }) => id !== members.self && matches(version, own))
    .map(({ id, version }) => `${id} (${version ?? "of no known version"})`);
}
