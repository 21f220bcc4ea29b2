/**
 * Membership of the controller replicas by Leases: each holds one of its own and watches those of the others (`election-state.ts` says who lives).
 * Nothing here gives authority: that is the epoch in the store.
 */
import type { Clock, Timer } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { RelevoError } from "../kernel/errors.ts";
import { ANNOTATIONS, LABELS } from "../model/marks.ts";
import {
  beforeOthers,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeApi,
  type KubeObject,
  type KubeObjectDraft,
  type ObjectRef,
} from "./api.ts";
import {
  abandoned,
  type ControllerMember,
  ELECTION_DEFAULTS,
  type ElectionEvent,
  type ElectionState,
  type ElectionTiming,
  electionState,
  isReady,
  liveMembers,
  nextSuspicion,
  type SeenLease,
  stepElection,
} from "./election-state.ts";
import { createInformer, type Informer, type InformerLog } from "./informer.ts";
import { formatMicroTime } from "./micro-time.ts";
import { LEASES } from "./resources.ts";

export type { ControllerMember } from "./election-state.ts";

export interface ControllerMembersOptions {
  readonly api: KubeApi;
  /** Where the Leases lie: the namespace that the controllers run in. */
  readonly namespace: string;
  /** Of this process and no other, new at each start; valid in a DNS label. */
  readonly id: string;
  /** The URL at which other replicas and gateways reach this one's HTTP API. */
  readonly apiUrl: string;
  /** Of this program. */
  readonly version?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: InformerLog;
  readonly timing?: ElectionTiming | undefined;
}

/** All members are listed at least so often, whatever the watch says. */
const LIST_EVERY_MS = 10_000;
/** A Lease that nobody renewed for so long is removed by whoever sees it. */
const ABANDONED_MS = 10 * 60_000;
/** Requests of one kind that have not been answered: more than can be, when each is given up after half a minute. A connection that hangs must not delay the next. */
const OUTSTANDING_MAX = 40;
const STOP_LIMIT_MS = 3_000;

export class ControllerMembers {
  readonly #options: ControllerMembersOptions;
  readonly #leases: Informer<SeenLease>;
  readonly #listeners = new Set<(live: readonly ControllerMember[]) => void>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #outstanding = new Set<Promise<void>>();
  #state: ElectionState;
  #live: readonly ControllerMember[] = [];
  #acquireTime = "";
  #uid: string | undefined;
  #renewTimer: Timer | undefined;
  #suspicionTimer: Timer | undefined;
  /** Lists that have not been answered. */
  #listings = 0;
  /** Monotonic: of the newest list, and of the newest one that was answered. */
  #listAskedAt = Number.NEGATIVE_INFINITY;
  #listedAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  #failing: string | undefined;

  constructor(options: ControllerMembersOptions) {
    this.#options = options;
    const { api, namespace, clock, random, log, id, apiUrl, version, timing = ELECTION_DEFAULTS } = options;
    this.#state = electionState({ id, api: apiUrl, ...(version === undefined ? {} : { version }) }, timing);
    this.#leases = createInformer({
      api,
      namespace,
      type: LEASES,
      labelSelector: LABELS.controller,
      clock,
      random,
      log,
      parse: parseLease,
    });
    this.#leases.onChange(({ name, uid, after }) => this.#step(after ? { type: "seen", lease: after } : { type: "left", name, uid }));
  }

  /** Takes a Lease and begins to watch. Errors are told to the log and tried again. */
  start(): void {
    this.#acquireTime = formatMicroTime(this.#options.clock.now());
    this.#leases.start();
    this.#renew();
  }

  /** Deletes the own Lease, so that others take over at once. Settles in any case, within a few seconds. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#renewTimer?.cancel();
    this.#suspicionTimer?.cancel();
    this.#leases.stop();
    await this.#within(STOP_LIMIT_MS, Promise.allSettled(this.#outstanding)); // a renewal that lands later would bring the Lease back
    await this.#within(STOP_LIMIT_MS, this.#release());
  }

  /** Who counts as alive, us included, in the order of ids; empty until the first membership is known (`whenReady`). */
  live(): readonly ControllerMember[] {
    return this.#live;
  }

  /** Settles when our own Lease is there and the others were listed. */
  whenReady(): Promise<void> {
    return this.#ready.promise;
  }

  /** The code of the error that our renewals fail with; undefined while they succeed. The membership stands meanwhile. */
  failing(): string | undefined {
    return this.#failing;
  }

  /** Whether a renewal of ours was confirmed within the duration: otherwise the others may have taken over, and nothing is to be taken. */
  isHeld(): boolean {
    const { renewedAt, timing } = this.#state;
    return !this.#isStopped && renewedAt !== null && this.#options.clock.monotonic() - renewedAt < timing.durationMs;
  }

  /** Returns how to stop listening. Called with all who live, whenever that changes. */
  onChange(listener: (live: readonly ControllerMember[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // ---- our own Lease

  #renew(): void {
    if (this.#isStopped) return;
    const { clock } = this.#options;
    this.#renewTimer = clock.after(this.#state.timing.renewEveryMs, () => this.#renew());
    if (this.#outstanding.size >= OUTSTANDING_MAX) return;
    const renewal = this.#renewOnce().finally(() => this.#outstanding.delete(renewal));
    this.#outstanding.add(renewal);
  }

  async #renewOnce(): Promise<void> {
    try {
      const lease = await this.#write();
      if (lease === undefined) return;
      this.#uid = lease.metadata.uid;
      if (this.#failing !== undefined) this.#options.log("info", "our Lease is renewed again", { lease: lease.metadata.name });
      this.#failing = undefined;
      this.#step({ type: "renewed" });
      if (!this.#state.isListed || this.#options.clock.monotonic() - this.#listedAt >= LIST_EVERY_MS) void this.#list();
    } catch (error) {
      const code = codeOf(error);
      if (this.#failing !== code) this.#options.log("warn", "our Lease cannot be renewed, trying again", { code, error });
      this.#failing = code;
    }
  }

  async #write(): Promise<KubeObject | undefined> {
    const { clock } = this.#options;
    const api = beforeOthers(this.#options.api);
    const draft = this.#draft(formatMicroTime(clock.now()));
    const { name: _name, namespace: _namespace, ...metadata } = draft.metadata;
    try {
      if (this.#uid !== undefined) return await api.patch(this.#ref(), { metadata, spec: draft["spec"] });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    if (this.#isStopped) return undefined;
    try {
      return await api.create(LEASES, draft);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return await api.patch(this.#ref(), { metadata, spec: draft["spec"] });
    }
  }

  #draft(renewTime: string): KubeObjectDraft {
    const { id, namespace, apiUrl, version } = this.#options;
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: {
        name: leaseName(id),
        namespace,
        labels: { [LABELS.controller]: id },
        annotations: { [ANNOTATIONS.controllerApi]: apiUrl, ...(version === undefined ? {} : { [ANNOTATIONS.version]: version }) },
      },
      spec: {
        holderIdentity: id,
        leaseDurationSeconds: Math.ceil(this.#state.timing.durationMs / 1_000),
        acquireTime: this.#acquireTime,
        renewTime,
      },
    };
  }

  #ref(): ObjectRef {
    return { type: LEASES, namespace: this.#options.namespace, name: leaseName(this.#options.id) };
  }

  async #release(): Promise<void> {
    try {
      await this.#options.api.delete(this.#ref(), this.#uid === undefined ? {} : { preconditions: { uid: this.#uid } });
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return;
      this.#options.log("warn", "our Lease could not be deleted: the others wait until it has run out", { code: codeOf(error) });
    }
  }

  // ---- the others

  async #list(): Promise<void> {
    const { api, namespace, clock } = this.#options;
    const askedAt = clock.monotonic();
    const isAsking = this.#listings > 0 && askedAt - this.#listAskedAt < this.#state.timing.gapMs;
    if (isAsking || this.#listings >= OUTSTANDING_MAX || this.#isStopped) return;
    this.#listAskedAt = askedAt;
    this.#listings += 1;
    try {
      const { items } = await api.list(LEASES, { namespace, labelSelector: LABELS.controller });
      if (askedAt <= this.#listedAt) return; // one that was asked for later has told already
      this.#listedAt = askedAt;
      this.#step({ type: "listed", askedAt, leases: items.map(parseLease).flatMap((lease) => (lease.ok ? [lease.value] : [])) });
      await this.#removeAbandoned();
    } catch (error) {
      this.#options.log("info", "the Leases of the controllers could not be listed, the membership stands", { code: codeOf(error) });
    } finally {
      this.#listings -= 1;
    }
  }

  async #removeAbandoned(): Promise<void> {
    const { api, namespace, clock, log } = this.#options;
    for (const { name, uid, resourceVersion } of abandoned(this.#state, clock.monotonic(), ABANDONED_MS)) {
      try {
        await api.delete({ type: LEASES, namespace, name }, { preconditions: { uid, resourceVersion } });
        log("info", "a Lease that nobody renews was removed", { lease: name });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    }
  }

  #step(event: ElectionEvent): void {
    if (this.#isStopped) return;
    this.#state = stepElection(this.#state, event, this.#options.clock.monotonic());
    if (isReady(this.#state)) this.#ready.resolve();
    this.#awaitSuspicion();
    const live = liveMembers(this.#state);
    if (isSame(live, this.#live)) return;
    this.#live = live;
    this.#options.log("info", "the live controllers are others now", { live: live.map(({ id }) => id) });
    for (const listener of this.#listeners) listener(live);
  }

  /** Looks when somebody's time is up, and again and again as long as that look did not tell. */
  #awaitSuspicion(): void {
    this.#suspicionTimer?.cancel();
    const next = nextSuspicion(this.#state);
    if (next === null || this.#isStopped) return;
    const { clock } = this.#options;
    const wait = next - clock.monotonic();
    this.#suspicionTimer = clock.after(wait > 0 ? wait : this.#state.timing.renewEveryMs / 2, () => {
      if (this.#failing === undefined) void this.#list();
      this.#awaitSuspicion();
    });
  }

  async #within(limitMs: number, work: Promise<unknown>): Promise<void> {
    const ending = new AbortController();
    const limit = this.#options.clock.sleep(limitMs, ending.signal).catch(() => undefined); // aborted: the work was done before
    await Promise.race([work, limit]);
    ending.abort();
  }
}

export function leaseName(id: string): string {
  return `relevo-controller-${id}`;
}

function parseLease(
  object: KubeObject,
): { readonly ok: true; readonly value: SeenLease } | { readonly ok: false; readonly problem: string } {
  const { name, uid, resourceVersion, labels, annotations } = object.metadata;
  const id = labels?.[LABELS.controller];
  const api = annotations?.[ANNOTATIONS.controllerApi];
  const version = annotations?.[ANNOTATIONS.version];
  if (id === undefined || api === undefined) return { ok: false, problem: "it does not say whose it is and where that one is reached" };
  const { renewTime, acquireTime } = (object["spec"] ?? {}) as { readonly renewTime?: unknown; readonly acquireTime?: unknown };
  return { ok: true, value: { name, uid, resourceVersion, id, api, version, stamp: `${String(acquireTime)} ${String(renewTime)}` } };
}

function isSame(one: readonly ControllerMember[], other: readonly ControllerMember[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ id, api, version }, index) => other[index]?.id === id && other[index]?.api === api && other[index]?.version === version)
  );
}

function codeOf(error: unknown): string {
  return error instanceof RelevoError ? error.code : "unknown";
}
