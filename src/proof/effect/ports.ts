/** What a proof of effect needs of the world beside the Kubernetes API: a look into a pod, and a running engine that is asked. */
import type { Instant } from "../../kernel/clock.ts";
import type { ProcessSays } from "./judge.ts";

export interface PodFile {
  readonly text: string;
  /** When it got its present content. */
  readonly changedAt: Instant;
  /** For people. */
  readonly where: string;
}

export interface PodInside {
  /** The server's own command line; null: it was not found. */
  readonly commandLine: readonly string[] | null;
  /** Of the server's process, to the hundredth of a second; null: it was not found. */
  readonly startedAt: Instant | null;
  /** By its path beneath the folder that the process reads its configuration from; undefined: there is none. */
  readFile(path: string): Promise<PodFile | undefined>;
}

export interface PodLook {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

/** Nothing is run in a pod: where its files can be seen without that, they are. */
export interface PodSight {
  /** Why it sees nothing, for people. */
  readonly blind: string;
  /** Null: it cannot see into this pod. */
  look(pod: PodLook): Promise<PodInside | null>;
}

export const NO_SIGHT: PodSight = { blind: "files in pods are not read here", look: async () => null };

export interface SessionProperty {
  readonly value: string;
  /** What it is without a session's own words: the server's configuration. */
  readonly byDefault: string;
}

/** One coordinator or worker; every call is bounded and changes nothing that stays. */
export interface ServerProbe {
  /** `SHOW SESSION`, by name. Hidden properties are not in it. */
  session(): Promise<ReadonlyMap<string, SessionProperty>>;
  /** As the engine took it for a query that shuffled between workers and ended well; null: it does not tell. */
  retryPolicy(): Promise<string | null>;
  /** Of a query that shuffles: whether its files were seen at this location (T13). */
  exchange(location: string): Promise<ProcessSays>;
  /** Whether access control lets Relevo's user change the state of this server; changes nothing. */
  mayManage(): Promise<boolean>;
  close(): Promise<void>;
}

export type ServerProbes = (base: string, user: string) => ServerProbe;
