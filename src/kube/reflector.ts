/**
 * Keeps a copy of one kind up to date by list and watch, as a pure state machine: events in, effects out; no I/O, no clock, no randomness.
 *
 *   idle → listing or streaming ⇄ waiting ⇄ watching → … → stopped
 *
 * 1. A list is one consistent snapshot: all pages show the first page's resourceVersion, and the copy is swapped once, after the last page. Pages are
 *    handed over as they come (`stage`), so that nobody holds the whole answer.
 *    Where the server has it, a watch that begins with everything that is there (`streaming`) takes the list's place. A server that refuses it, cuts it
 *    short or never says where the beginning ends is asked for lists from then on.
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
import {
  type Effect,
  type Failure,
  type Phase,
  REFLECTOR_DEFAULTS,
  type ReflectorConfig,
  type ReflectorEvent,
  type ReflectorState,
  type Stepped,
  type Surroundings,
  type TimedPhase,
} from "./reflector-types.ts";

export function initialState(given: Partial<ReflectorConfig> = {}): ReflectorState {
  const config = { ...REFLECTOR_DEFAULTS, ...given };
  return {
    config,
    phase: { name: "idle" },
    version: null,
    failures: 0,
    expiredLists: 0,
    failing: null,
    brokenStreams: config.initialEvents ? 0 : null,
    lastId: 0,
  };
}

export function step(state: ReflectorState, event: ReflectorEvent, around: Surroundings): Stepped {
  if (state.phase.name === "stopped") return same(state);
  switch (event.type) {
    case "start":
      return state.phase.name === "idle" ? readAll(state, around) : same(state);
    case "page":
      return state.phase.name === "listing" && state.phase.list === event.list
        ? takePage(state, state.phase, event.page, around)
        : same(state);
    case "list_failed":
      return state.phase.name === "listing" && state.phase.list === event.list ? failList(state, event.failure, around) : same(state);
    case "line":
    case "watch_ended":
    case "watch_failed":
      return "watch" in state.phase && state.phase.watch === event.watch ? hearWatch(state, state.phase, event, around) : same(state);
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

function hearWatch(
  state: ReflectorState,
  phase: Phase & { readonly name: "watching" | "streaming" },
  event: ReflectorEvent & { readonly type: "line" | "watch_ended" | "watch_failed" },
  around: Surroundings,
): Stepped {
  if (phase.name === "streaming") return hearStream(state, phase, event, around);
  switch (event.type) {
    case "line":
      return takeLine(state, phase, event.line, around);
    case "watch_ended":
      return endWatch(state, phase, around);
    case "watch_failed":
      return failWatch(state, phase, event.failure, around);
    default:
      return event satisfies never;
  }
}

/** Everything anew, by the one way or the other. */
function readAll(state: ReflectorState, around: Surroundings): Stepped {
  return state.brokenStreams === null ? list(state) : stream(state, around);
}

// ---- listing

function list(state: ReflectorState): Stepped {
  const [id, timer] = [state.lastId + 1, state.lastId + 2];
  return {
    state: { ...state, lastId: timer, phase: { name: "listing", list: id, timer, version: null, count: 0 } },
    effects: [
      { type: "unstage" },
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
  const staged: Effect = { type: "stage", objects: page.items };
  if (page.continue === undefined || page.continue === "") return after([staged], finishList(state, page.resourceVersion, around));

  const [id, timer] = [state.lastId + 1, state.lastId + 2];
  return {
    state: { ...state, lastId: timer, phase: { ...phase, list: id, timer, version: page.resourceVersion, count } },
    effects: [
      staged,
      { type: "list_page", list: id, ...limitOf(state), continue: page.continue },
      { type: "wait", timer, ms: state.config.listTimeoutMs },
    ],
  };
}

function finishList(state: ReflectorState, version: string, around: Surroundings): Stepped {
  const listed: ReflectorState = { ...state, version, expiredLists: 0, failing: null };
  return after(complete(state, version), openWatch(listed, around)); // failures are forgotten only when a watch works: a list alone may be followed by a 410 for ever
}

function complete(state: ReflectorState, version: string): readonly Effect[] {
  return [{ type: "deliver", change: { kind: "replace" } }, { type: "synced", version }, ...recovered(state)];
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
    effects: [{ type: "unstage" }, ...complete(state, ""), { type: "wait", timer, ms: state.config.backoffMaxMs }],
  };
}

// ---- streaming

const STREAM_OVERDUE: Failure = { code: "initial_events_overdue", gone: false, refused: false };
/** So often in a row a stream may break before lists are asked for. */
const BROKEN_STREAMS_MAX = 3;

function stream(state: ReflectorState, { at }: Surroundings): Stepped {
  const [watch, timer] = [state.lastId + 1, state.lastId + 2];
  return {
    state: { ...state, lastId: timer, phase: { name: "streaming", watch, timer, openedAt: at, count: 0 } },
    effects: [
      { type: "unstage" },
      { type: "open_watch", watch, version: null, timeoutSeconds: state.config.watchTimeoutSeconds },
      { type: "wait", timer, ms: state.config.listTimeoutMs },
    ],
  };
}

function hearStream(
  state: ReflectorState,
  phase: Phase & { readonly name: "streaming" },
  event: ReflectorEvent & { readonly type: "line" | "watch_ended" | "watch_failed" },
  around: Surroundings,
): Stepped {
  switch (event.type) {
    case "line":
      return takeStreamed(state, phase, event.line, around);
    case "watch_ended":
      return list({ ...state, brokenStreams: null });
    case "watch_failed":
      return failStream(state, event.failure, around);
    default:
      return event satisfies never;
  }
}

/** Before the mark changes may already be among what is there: the last word about an object counts. */
function takeStreamed(
  state: ReflectorState,
  phase: Phase & { readonly name: "streaming" },
  line: WatchEvent,
  around: Surroundings,
): Stepped {
  if (line.type === "ERROR") return after(closeWatch(state), failStream(state, failureOf(new KubeApiError(line.status, "watch")), around));
  if (line.type === "BOOKMARK")
    return line.endsInitialEvents === true ? finishStream(state, phase, line.resourceVersion, around) : same(state);
  if (!hasIdentity(line.object)) return after(closeWatch(state), failStream(state, MALFORMED, around));
  if (line.type === "DELETED") return { state, effects: [{ type: "stage_removal", object: line.object }] };
  const count = phase.count + (line.type === "ADDED" ? 1 : 0);
  if (count > state.config.maxObjects)
    return after(closeWatch(state), backOff(state, "list", { ...OVERFLOW, retryAfterMs: state.config.backoffMaxMs }, around));
  return { state: { ...state, phase: { ...phase, count } }, effects: [{ type: "stage", objects: [line.object] }] };
}

function finishStream(
  state: ReflectorState,
  { watch, openedAt }: Phase & { readonly name: "streaming" },
  version: string,
  around: Surroundings,
): Stepped {
  if (!isText(version)) return after(closeWatch(state), failStream(state, MALFORMED, around));
  const timer = state.lastId + 1;
  const phase: Phase = { name: "watching", watch, timer, openedAt, heardAt: around.at, lines: 0 };
  return {
    state: { ...state, version, expiredLists: 0, failing: null, brokenStreams: 0, lastId: timer, phase },
    effects: [...complete(state, version), { type: "wait", timer, ms: Math.min(state.config.settleMs, state.config.silentMs) }],
  };
}

/** Whoever may not watch may perhaps list; what is not installed is neither there to be listed. */
function failStream(state: ReflectorState, failure: Failure, around: Surroundings): Stepped {
  if (failure.missing === true && state.config.optional) return findNothing(state);
  if (failure.refused && !failure.gone && failure.missing !== true) return list({ ...state, brokenStreams: null });
  const broken = (state.brokenStreams ?? 0) + 1;
  return backOff({ ...state, brokenStreams: broken < BROKEN_STREAMS_MAX ? broken : null }, "list", failure, around);
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
  return phase.name === "watching" || phase.name === "streaming" ? [{ type: "close_watch", watch: phase.watch }] : [];
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
      return phase.next === "list" ? readAll(state, around) : openWatch(state, around);
    case "listing":
      return failList(state, { code: "list_timeout", gone: false, refused: false }, around);
    case "streaming":
      return after(closeWatch(state), backOff({ ...state, brokenStreams: null }, "list", STREAM_OVERDUE, around));
    case "watching":
      return lookAtWatch(state, phase, around);
    default:
      return phase satisfies never;
  }
}

function lookAtWatch(state: ReflectorState, phase: Phase & { name: "watching" }, around: Surroundings): Stepped {
  const left = phase.heardAt + state.config.silentMs - around.at;
  if (left <= 0) return after(closeWatch(state), phase.lines === 0 ? readAll(state, around) : openWatch(state, around));
  const timer = state.lastId + 1;
  return {
    state: { ...established(state), lastId: timer, phase: { ...phase, timer } },
    effects: [...recovered(state), { type: "wait", timer, ms: left }],
  };
}

function backOff(state: ReflectorState, next: "list" | "watch", failure: Failure, around: Surroundings): Stepped {
  const { backoffFirstMs, backoffMaxMs } = state.config;
  const timer = state.lastId + 1;
  const failures = state.failures + 1;
  if (failure.gone && state.failures === 0) return readAll({ ...state, failures }, around); // part of an ordinary life
  const full = Math.min(backoffMaxMs, backoffFirstMs * 2 ** Math.min(state.failures, 30));
  const ms = Math.max(full / 2 + (full / 2) * around.jitter, Math.min(failure.retryAfterMs ?? 0, backoffMaxMs));
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
