/** What the reflector is told, what it asks for, and what it remembers. */
import type { KubeList, KubeObject, WatchEvent } from "./api.ts";

export interface ReflectorConfig {
  /** Objects per page. */
  readonly pageSize: number;
  /** More than this many objects are refused (`too_many_objects`), and the copy stays as it was. */
  readonly maxObjects: number;
  /** A page that takes longer counts as failed. */
  readonly listTimeoutMs: number;
  /** The server is asked to end each watch after this long. */
  readonly watchTimeoutSeconds: number;
  /** A server sends a bookmark about once a minute. */
  readonly silentMs: number;
  /** A watch that lasts this long is taken for established. */
  readonly settleMs: number;
  readonly backoffFirstMs: number;
  readonly backoffMaxMs: number;
  /** The kind may not be installed: 404 then means that there are no objects, and it is asked for again every `backoffMaxMs`. */
  readonly optional: boolean;
  /** Ask for a watch that begins with all that is there, instead of a list. */
  readonly initialEvents: boolean;
}

export const REFLECTOR_DEFAULTS: ReflectorConfig = {
  pageSize: 500,
  maxObjects: 200_000,
  listTimeoutMs: 60_000,
  watchTimeoutSeconds: 290,
  silentMs: 90_000,
  settleMs: 1_000,
  backoffFirstMs: 200,
  backoffMaxMs: 30_000,
  optional: false,
  initialEvents: false,
};

/** Why a list or a watch did not work. */
export interface Failure {
  readonly code: string;
  /** The version or the continue token is too old: only a new list helps. */
  readonly gone: boolean;
  /** The server refused the request as such: the same one from the same version would be refused again. */
  readonly refused: boolean;
  /** There is no such kind. */
  readonly missing?: boolean;
  readonly retryAfterMs?: number | undefined;
}

export type ReflectorEvent =
  | { readonly type: "start" }
  | { readonly type: "page"; readonly list: number; readonly page: KubeList }
  | { readonly type: "list_failed"; readonly list: number; readonly failure: Failure }
  | { readonly type: "line"; readonly watch: number; readonly line: WatchEvent }
  | { readonly type: "watch_ended"; readonly watch: number }
  | { readonly type: "watch_failed"; readonly watch: number; readonly failure: Failure }
  | { readonly type: "waited"; readonly timer: number }
  /** The copy holds more than `maxObjects`: said by its keeper, who alone can count. */
  | { readonly type: "overflow" }
  | { readonly type: "stop" };

export type Delivery =
  /** What was staged is the whole truth: what is not in it is gone. */
  | { readonly kind: "replace" }
  | { readonly kind: "put"; readonly object: KubeObject }
  /** It left the watch: deleted, or only out of the selector. */
  | { readonly kind: "remove"; readonly object: KubeObject };

export type Effect =
  | { readonly type: "list_page"; readonly list: number; readonly limit?: number; readonly continue?: string }
  /** Without a version: with all that is there first. */
  | { readonly type: "open_watch"; readonly watch: number; readonly version: string | null; readonly timeoutSeconds: number }
  | { readonly type: "close_watch"; readonly watch: number }
  /** There is one timer: a new one replaces the former. */
  | { readonly type: "wait"; readonly timer: number; readonly ms: number }
  /** Parts of a snapshot that is not complete yet. A new one begins with `unstage`. */
  | { readonly type: "unstage" }
  | { readonly type: "stage"; readonly objects: readonly KubeObject[] }
  | { readonly type: "stage_removal"; readonly object: KubeObject }
  | { readonly type: "deliver"; readonly change: Delivery }
  /** The copy was complete at this version. */
  | { readonly type: "synced"; readonly version: string }
  | { readonly type: "failing"; readonly code: string; readonly failures: number }
  | { readonly type: "recovered" };

export type Phase =
  | { readonly name: "idle" | "stopped" }
  | {
      readonly name: "listing";
      readonly list: number;
      readonly timer: number;
      readonly version: string | null;
      readonly count: number;
    }
  | {
      readonly name: "streaming";
      readonly watch: number;
      readonly timer: number;
      readonly openedAt: number;
      readonly count: number;
    }
  | {
      readonly name: "watching";
      readonly watch: number;
      readonly timer: number;
      readonly openedAt: number;
      readonly heardAt: number;
      readonly lines: number;
    }
  | { readonly name: "waiting"; readonly timer: number; readonly next: "list" | "watch" };

export type TimedPhase = Exclude<Phase, { readonly name: "idle" | "stopped" }>;

export interface ReflectorState {
  readonly config: ReflectorConfig;
  readonly phase: Phase;
  /** The last one seen; null before the first list. */
  readonly version: string | null;
  /** In a row, since a watch last worked. */
  readonly failures: number;
  /** Lists in a row that expired under way. */
  readonly expiredLists: number;
  readonly failing: string | null;
  /** How often a stream with initial events broke, in a row; null when it is not asked for any more. */
  readonly brokenStreams: number | null;
  readonly lastId: number;
}

/** What a step may not know by itself: the time (monotonic ms) and one random number in [0, 1). */
export interface Surroundings {
  readonly at: number;
  readonly jitter: number;
}

export interface Stepped {
  readonly state: ReflectorState;
  readonly effects: readonly Effect[];
}
