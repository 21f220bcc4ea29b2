/**
 * Keeps a copy of one kind up to date by list and watch, as a pure state machine: events in, effects out; no I/O, no clock, no randomness.
 *
 *   idle → listing ⇄ waiting ⇄ watching → … → stopped
 *
 * 1. A list is one consistent snapshot: all pages show the first page's resourceVersion, and the copy is swapped once, after the last page.
 * 2. A watch starts from the version that was seen last, bookmarks included; versions are opaque and never compared.
 * 3. 410 in any form (HTTP status, ERROR event, thrown) lists anew. The first goes at once; one after another backs off.
 * 4. What breaks is opened again after a bounded, jittered delay. A watch that ends in order is opened again at once, unless it ended before it could
 *    say anything: then that counts as a failure, or a server that hangs up would be called in a loop.
 * 5. A watch without a line for `silentMs` is taken for dead. If it never said anything, its version may lie in the future of a server that was
 *    rewound, which answers with silence for ever: then it lists anew.
 * 6. The copy stays as it is while the server cannot be read.
 *
 * The state is immutable and small: the copy itself is the caller's (`deliver`). Each list, watch and timer has an id; what comes from an older one is
 * dropped.
 */
import { KubeApiError, type KubeList, type KubeObject, type WatchEvent } from "./api.ts";
import { RelevoError } from "../kernel/errors.ts";

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
}

const REFLECTOR_DEFAULTS: ReflectorConfig = {
  pageSize: 500,
  maxObjects: 200_000,
  listTimeoutMs: 60_000,
  watchTimeoutSeconds: 290,
  silentMs: 90_000,
  settleMs: 1_000,
  backoffFirstMs: 200,
  backoffMaxMs: 30_000,
  optional: false,
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
  /** The whole truth: what is not in it is gone. */
  | { readonly kind: "replace"; readonly objects: readonly KubeObject[] }
  | { readonly kind: "put"; readonly object: KubeObject }
  /** It left the watch: deleted, or only out of the selector. */
  | { readonly kind: "remove"; readonly object: KubeObject };

export type Effect =
  | { readonly type: "list_page"; readonly list: number; readonly limit?: number; readonly continue?: string }
  | { readonly type: "open_watch"; readonly watch: number; readonly version: string; readonly timeoutSeconds: number }
  | { readonly type: "close_watch"; readonly watch: number }
  /** There is one timer: a new one replaces the former. */
  | { readonly type: "wait"; readonly timer: number; readonly ms: number }
  | { readonly type: "deliver"; readonly change: Delivery }
  /** The copy was complete at this version. */
  | { readonly type: "synced"; readonly version: string }
  | { readonly type: "failing"; readonly code: string; readonly failures: number }
  | { readonly type: "recovered" };

type Phase =
  | { readonly name: "idle" | "stopped" }
  | {
      readonly name: "listing";
      readonly list: number;
      readonly timer: number;
      readonly version: string | null;
      readonly pages: readonly (readonly KubeObject[])[];
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

type TimedPhase = Exclude<Phase, { readonly name: "idle" | "stopped" }>;

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

export function initialState(config: Partial<ReflectorConfig> = {}): ReflectorState {
  return {
    config: { ...REFLECTOR_DEFAULTS, ...config },
    phase: { name: "idle" },
    version: null,
    failures: 0,
    expiredLists: 0,
    failing: null,
    lastId: 0,
  };
}

export function step(state: ReflectorState, event: ReflectorEvent, around: Surroundings): Stepped {
  if (state.phase.name === "stopped") return same(state);
  switch (event.type) {
    case "start":
      return state.phase.name === "idle" ? list(state) : same(state);
    case "page":
      return state.phase.name === "listing" && state.phase.list === event.list
        ? takePage(state, state.phase, event.page, around)
        : same(state);
    case "list_failed":
      return state.phase.name === "listing" && state.phase.list === event.list ? failList(state, event.failure, around) : same(state);
    case "line":
      return state.phase.name === "watching" && state.phase.watch === event.watch
        ? takeLine(state, state.phase, event.line, around)
        : same(state);
    case "watch_ended":
      return state.phase.name === "watching" && state.phase.watch === event.watch ? endWatch(state, state.phase, around) : same(state);
    case "watch_failed":
      return state.phase.name === "watching" && state.phase.watch === event.watch
        ? failWatch(state, state.phase, event.failure, around)
        : same(state);
    case "waited":
      return "timer" in state.phase && state.phase.timer === event.timer ? wake(state, state.phase, around) : same(state);
    case "overflow":
      return after(closeWatch(state), backOff(state, "list", { ...OVERFLOW, retryAfterMs: state.config.backoffMaxMs }, around));
    case "stop":
      return { state: { ...state, phase: { name: "stopped" } }, effects: closeWatch(state) };
    default:
      return event satisfies never;
  }
}

const OVERFLOW: Failure = { code: "too_many_objects", gone: false, refused: false };
const MALFORMED: Failure = { code: "malformed_answer", gone: false, refused: true };
const EXPIRED: Failure = { code: "list_expired", gone: true, refused: false };

// ---- listing

function list(state: ReflectorState): Stepped {
  const [id, timer] = [state.lastId + 1, state.lastId + 2];
  return {
    state: { ...state, lastId: timer, phase: { name: "listing", list: id, timer, version: null, pages: [], count: 0 } },
    effects: [
      { type: "list_page", list: id, ...limitOf(state) },
      { type: "wait", timer, ms: state.config.listTimeoutMs },
    ],
  };
}

/** A list that expires again and again is too slow in pages: then it is asked for in one piece, which cannot expire. */
function limitOf({ config, expiredLists }: ReflectorState): { readonly limit?: number } {
  return expiredLists < 2 ? { limit: config.pageSize } : {};
}

function takePage(state: ReflectorState, phase: Phase & { name: "listing" }, page: KubeList, around: Surroundings): Stepped {
  if (!isText(page.resourceVersion) || !page.items.every(hasIdentity)) return failList(state, MALFORMED, around);
  if (phase.version !== null && phase.version !== page.resourceVersion) return failList(state, EXPIRED, around); // no snapshot any more
  const count = phase.count + page.items.length;
  if (count > state.config.maxObjects) return failList(state, { ...OVERFLOW, retryAfterMs: state.config.backoffMaxMs }, around);
  const pages = [...phase.pages, page.items];
  if (page.continue === undefined || page.continue === "") return finishList(state, page.resourceVersion, pages, around);

  const [id, timer] = [state.lastId + 1, state.lastId + 2];
  return {
    state: { ...state, lastId: timer, phase: { ...phase, list: id, timer, version: page.resourceVersion, pages, count } },
    effects: [
      { type: "list_page", list: id, ...limitOf(state), continue: page.continue },
      { type: "wait", timer, ms: state.config.listTimeoutMs },
    ],
  };
}

function finishList(state: ReflectorState, version: string, pages: readonly (readonly KubeObject[])[], around: Surroundings): Stepped {
  const listed: ReflectorState = { ...state, version, expiredLists: 0, failing: null };
  const effects: Effect[] = [
    { type: "deliver", change: { kind: "replace", objects: pages.flat() } },
    { type: "synced", version },
  ];
  if (state.failing !== null) effects.push({ type: "recovered" });
  return after(effects, openWatch(listed, around)); // failures are forgotten only when a watch works: a list alone may be followed by a 410 for ever
}

function failList(state: ReflectorState, failure: Failure, around: Surroundings): Stepped {
  if (failure.missing === true && state.config.optional) return findNothing(state);
  return backOff(failure.gone ? { ...state, expiredLists: state.expiredLists + 1 } : state, "list", failure, around);
}

/** Nothing is there, and that is known: there is no failure. */
function findNothing(state: ReflectorState): Stepped {
  const timer = state.lastId + 1;
  return {
    state: { ...established(state), version: null, expiredLists: 0, lastId: timer, phase: { name: "waiting", timer, next: "list" } },
    effects: [
      { type: "deliver", change: { kind: "replace", objects: [] } },
      { type: "synced", version: "" },
      ...recovered(state),
      { type: "wait", timer, ms: state.config.backoffMaxMs },
    ],
  };
}

// ---- watching

function openWatch(state: ReflectorState, { at }: Surroundings): Stepped {
  if (state.version === null) return list(state);
  const [watch, timer] = [state.lastId + 1, state.lastId + 2];
  return {
    state: { ...state, lastId: timer, phase: { name: "watching", watch, timer, openedAt: at, heardAt: at, lines: 0 } },
    effects: [
      { type: "open_watch", watch, version: state.version, timeoutSeconds: state.config.watchTimeoutSeconds },
      { type: "wait", timer, ms: Math.min(state.config.settleMs, state.config.silentMs) },
    ],
  };
}

function closeWatch({ phase }: ReflectorState): readonly Effect[] {
  return phase.name === "watching" ? [{ type: "close_watch", watch: phase.watch }] : [];
}

function takeLine(state: ReflectorState, phase: Phase & { name: "watching" }, line: WatchEvent, around: Surroundings): Stepped {
  if (line.type === "ERROR")
    return after(closeWatch(state), failWatch(state, phase, failureOf(new KubeApiError(line.status, "watch")), around));
  if (line.type === "BOOKMARK" ? !isText(line.resourceVersion) : !hasIdentity(line.object))
    return after(closeWatch(state), failWatch(state, phase, MALFORMED, around));

  const version = line.type === "BOOKMARK" ? line.resourceVersion : line.object.metadata.resourceVersion;
  const heard: ReflectorState = { ...established(state), version, phase: { ...phase, heardAt: around.at, lines: phase.lines + 1 } };
  const effects: Effect[] =
    line.type === "BOOKMARK"
      ? []
      : [{ type: "deliver", change: { kind: line.type === "DELETED" ? "remove" : "put", object: line.object } }];
  return { state: heard, effects: [...effects, ...recovered(state)] };
}

function endWatch(state: ReflectorState, phase: Phase & { name: "watching" }, around: Surroundings): Stepped {
  const isEarly = phase.lines === 0 && around.at - phase.openedAt < state.config.settleMs;
  if (isEarly) return backOff(state, "watch", { code: "watch_ended_early", gone: false, refused: false }, around);
  return after(recovered(state), openWatch(established(state), around));
}

function failWatch(state: ReflectorState, phase: Phase & { name: "watching" }, failure: Failure, around: Surroundings): Stepped {
  const isEstablished = phase.lines > 0 || around.at - phase.openedAt >= state.config.settleMs;
  return backOff(isEstablished ? { ...state, failures: 0 } : state, failure.gone || failure.refused ? "list" : "watch", failure, around);
}

/** The watch works: what went wrong before is over. */
function established(state: ReflectorState): ReflectorState {
  return state.failures === 0 && state.failing === null ? state : { ...state, failures: 0, failing: null };
}

function recovered({ failing }: ReflectorState): readonly Effect[] {
  return failing === null ? [] : [{ type: "recovered" }];
}

// ---- waiting

function wake(state: ReflectorState, phase: TimedPhase, around: Surroundings): Stepped {
  switch (phase.name) {
    case "waiting":
      return phase.next === "list" ? list(state) : openWatch(state, around);
    case "listing":
      return failList(state, { code: "list_timeout", gone: false, refused: false }, around);
    case "watching":
      return lookAtWatch(state, phase, around);
    default:
      return phase satisfies never;
  }
}

function lookAtWatch(state: ReflectorState, phase: Phase & { name: "watching" }, around: Surroundings): Stepped {
  const left = phase.heardAt + state.config.silentMs - around.at;
  if (left <= 0) return after(closeWatch(state), phase.lines === 0 ? list(state) : openWatch(state, around));
  const timer = state.lastId + 1;
  return {
    state: { ...established(state), lastId: timer, phase: { ...phase, timer } },
    effects: [...recovered(state), { type: "wait", timer, ms: left }],
  };
}

function backOff(state: ReflectorState, next: "list" | "watch", failure: Failure, { jitter }: Surroundings): Stepped {
  const { backoffFirstMs, backoffMaxMs } = state.config;
  const timer = state.lastId + 1;
  const failures = state.failures + 1;
  if (failure.gone && state.failures === 0) return after([], list({ ...state, failures })); // part of an ordinary life
  const full = Math.min(backoffMaxMs, backoffFirstMs * 2 ** Math.min(state.failures, 30));
  const ms = Math.max(full / 2 + (full / 2) * jitter, Math.min(failure.retryAfterMs ?? 0, backoffMaxMs));
  return {
    state: { ...state, lastId: timer, failures, failing: failure.code, phase: { name: "waiting", timer, next } },
    effects: [
      { type: "failing", code: failure.code, failures },
      { type: "wait", timer, ms: Math.round(ms) },
    ],
  };
}

/** What an adapter threw, or what an ERROR event said. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof KubeApiError))
    return { code: error instanceof RelevoError ? error.code : "watch_broken", gone: false, refused: false };
  const { code, details } = error.status;
  return {
    code: error.code,
    gone: code === 410,
    refused: code >= 400 && code < 500 && code !== 408 && code !== 429,
    missing: code === 404,
    retryAfterMs: details?.retryAfterSeconds === undefined ? undefined : details.retryAfterSeconds * 1000,
  };
}

/** Without these an object cannot be told from another: the answer is no answer. */
function hasIdentity(object: KubeObject): boolean {
  const meta: Partial<KubeObject["metadata"]> | undefined = object.metadata;
  return isText(meta?.name) && isText(meta?.uid) && isText(meta?.resourceVersion);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function same(state: ReflectorState): Stepped {
  return { state, effects: [] };
}

function after(before: readonly Effect[], stepped: Stepped): Stepped {
  return before.length === 0 ? stepped : { state: stepped.state, effects: [...before, ...stepped.effects] };
}
