/**
 * Which controller replicas are alive, as a pure state machine: what was seen of their Leases in, who counts as alive out.
 *
 * 1. A replica lives as long as its Lease is seen to change; how long ago that was is told by our own monotonic clock. The times in it are compared as
 *    text and never interpreted: clocks of others may be off.
 * 2. Only a list that was asked for after its time was up declares a replica dead: a watch that lags or is silent proves nothing.
 * 3. Time counts against others only while we ourselves get through to the API server without a gap (our own renewals show it). When it was away, or
 *    when we stood still, everybody gets a full duration again; meanwhile the last membership stands.
 * 4. A Lease that is gone, is gone at once: a clean stop deletes it.
 * 5. It only elects: what a replica may do is decided by the epoch in the store.
 */

export interface ElectionTiming {
  readonly renewEveryMs: number;
  /** Without a change for this long a replica is dead. */
  readonly durationMs: number;
  /** Two of our renewals further apart than this: others could not renew either. Less than the duration by two renewals, for ours and for theirs. */
  readonly gapMs: number;
}

export const ELECTION_DEFAULTS: ElectionTiming = { renewEveryMs: 1_000, durationMs: 4_000, gapMs: 2_000 };

/** A replica, and where other replicas and gateways reach its HTTP API. */
export interface ControllerMember {
  readonly id: string;
  readonly api: string;
  /** Absent: it says none. */
  readonly version?: string | undefined;
}

export interface SeenLease extends ControllerMember {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Another text means that the holder was alive. */
  readonly stamp: string;
}

export interface OtherMember extends SeenLease {
  /** When the stamp was last seen to change; our monotonic milliseconds. */
  readonly changedAt: number;
  readonly isLive: boolean;
}

export interface ElectionState {
  readonly self: ControllerMember;
  readonly timing: ElectionTiming;
  /** By the Lease's name. */
  readonly others: ReadonlyMap<string, OtherMember>;
  /** When our last renewal was confirmed. */
  readonly renewedAt: number | null;
  /** Since when our renewals have had no gap. */
  readonly steadySince: number;
  readonly isListed: boolean;
}

export type ElectionEvent =
  | { readonly type: "renewed" }
  /** By the watch. */
  | { readonly type: "seen"; readonly lease: SeenLease }
  | { readonly type: "left"; readonly name: string; readonly uid: string }
  /** All there are, at some moment after `askedAt`. */
  | { readonly type: "listed"; readonly askedAt: number; readonly leases: readonly SeenLease[] };

export function electionState(self: ControllerMember, timing: ElectionTiming = ELECTION_DEFAULTS): ElectionState {
  return { self, timing, others: new Map(), renewedAt: null, steadySince: 0, isListed: false };
}

/** `at`: monotonic milliseconds. */
export function stepElection(state: ElectionState, event: ElectionEvent, at: number): ElectionState {
  switch (event.type) {
    case "renewed": {
      const isSteady = state.renewedAt !== null && at - state.renewedAt <= state.timing.gapMs;
      return { ...state, renewedAt: at, steadySince: isSteady ? state.steadySince : at };
    }
    case "seen":
      return isOwn(state, event.lease) ? state : { ...state, others: withOther(state.others, see(state, event.lease, at)) };
    case "left":
      return state.others.get(event.name)?.uid === event.uid ? { ...state, others: without(state.others, event.name) } : state;
    case "listed":
      return takeList(state, event, at);
    default:
      return event satisfies never;
  }
}

/** Who counts as alive, us included, by id; nobody before our own Lease is there and all others were listed once: before that nothing may be claimed. */
export function liveMembers(state: ElectionState): readonly ControllerMember[] {
  if (!isReady(state)) return [];
  const others = [...state.others.values()]
    .filter(({ isLive }) => isLive)
    .map(({ id, api, version }) => ({ id, api, ...(version === undefined ? {} : { version }) }));
  return [state.self, ...others].toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

export function isReady({ isListed, renewedAt }: ElectionState): boolean {
  return isListed && renewedAt !== null;
}

/** When somebody's time is up and a list should tell; null when nobody is awaited. May lie in the past. */
export function nextSuspicion(state: ElectionState): number | null {
  const times = [...state.others.values()].filter(({ isLive }) => isLive).map((other) => deadAt(state, other));
  return times.length === 0 ? null : Math.min(...times);
}

/** Leases of the dead that nobody will renew any more. */
export function abandoned(state: ElectionState, at: number, afterMs: number): readonly OtherMember[] {
  return [...state.others.values()].filter((other) => !other.isLive && at - Math.max(other.changedAt, state.steadySince) >= afterMs);
}

function takeList(state: ElectionState, { askedAt, leases }: ElectionEvent & { type: "listed" }, at: number): ElectionState {
  const isReachable = state.renewedAt !== null && at - state.renewedAt <= state.timing.gapMs;
  const others = leases
    .filter((lease) => !isOwn(state, lease))
    .map((lease) => {
      const other = see(state, lease, askedAt);
      return isReachable && other.isLive && askedAt >= deadAt(state, other) ? { ...other, isLive: false } : other;
    });
  return { ...state, isListed: true, others: new Map(others.map((other) => [other.name, other])) };
}

/** A list may bring what the watch has told already, or something older: what was seen changing later stays so. */
function see({ others }: ElectionState, lease: SeenLease, at: number): OtherMember {
  const known = others.get(lease.name);
  if (known?.uid === lease.uid && known.stamp === lease.stamp) return { ...known, ...lease };
  return { ...lease, changedAt: Math.max(at, known?.changedAt ?? at), isLive: true };
}

function deadAt({ timing, steadySince }: ElectionState, { changedAt }: OtherMember): number {
  return Math.max(changedAt, steadySince) + timing.durationMs;
}

function isOwn({ self }: ElectionState, { id }: SeenLease): boolean {
  return id === self.id;
}

function withOther(others: ElectionState["others"], other: OtherMember): ElectionState["others"] {
  return new Map(others).set(other.name, other);
}

function without(others: ElectionState["others"], name: string): ElectionState["others"] {
  return new Map([...others].filter(([each]) => each !== name));
}
