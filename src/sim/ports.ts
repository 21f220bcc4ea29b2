/**
 * The ports of one simulated process: each call is a crash point, takes a little time, and may fail before its effect or lose its reply after it. What the
 * effect was is told to the checkers, whatever the caller hears of it.
 */
import type { InstanceDriver } from "../drivers/port.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { integerBetween, type Random } from "../kernel/random.ts";
import { type KubeApi, KubeApiError, type KubeObject, type ObjectRef, type ResourceType, type WatchEvent } from "../kube/api.ts";
import { type Authority, type Change, type PoolRows, type Store, storeUnavailable } from "../store/port.ts";
import type { EventLog } from "./event-log.ts";
import type { Observe, WriteMethod } from "./events.ts";
import type { SimulatedProcess } from "./process.ts";
import { chance } from "./seeded.ts";

const API_LATENCY_MS = [1, 6] as const;
const DRIVER_LATENCY_MS = [1, 8] as const;
const STORE_LATENCY_MS = [0, 2] as const;
/** Until a caller gives up to wait for an answer. */
const API_TIMEOUT_MS = [5_000, 30_000] as const;
const DRIVER_TIMEOUT_MS = [500, 2_000] as const;

export type WatchBreak = "ended" | "broken" | "gone";

/** What goes wrong right now, as shares of the calls; the injector changes it. `took` counts what was really done. */
export interface Troubles {
  apiErrors: number;
  /** The caller waits for long and hears nothing; half of the calls had their effect. */
  apiTimeouts: number;
  lostReplies: number;
  conflicts: number;
  storeFailures: number;
  /** The commit happened, and its caller hears that it failed. */
  storeLostReplies: number;
  /** A call takes up to so much longer; each tenth one is told that the store is busy. */
  storeBusyMs: number;
  /** An instance call fails before its effect, or its reply is lost. */
  driverErrors: number;
  /** The controller's own network to the instances is cut: each of its checks fails, and nobody else's. */
  isProberCut: boolean;
  watchLagMs: number;
  /** World time, monotonic ms: until then no watch opens and nothing is listed. */
  watchGapUntil: number;
  /** So many watches that open next are told that what they ask for is too old. */
  watchesToExpire: number;
  readonly took: (kind: string) => void;
}

export function noTroubles(took: (kind: string) => void): Troubles {
  return {
    apiErrors: 0,
    apiTimeouts: 0,
    lostReplies: 0,
    conflicts: 0,
    storeFailures: 0,
    storeLostReplies: 0,
    storeBusyMs: 0,
    driverErrors: 0,
    isProberCut: false,
    watchLagMs: 0,
    watchGapUntil: 0,
    watchesToExpire: 0,
    took,
  };
}

export interface PortOptions {
  readonly process: SimulatedProcess;
  /** The world's clock: a call goes on when its caller is dead. */
  readonly clock: Clock;
  readonly random: Random;
  readonly troubles: Troubles;
  readonly log: EventLog;
  readonly observe: Observe;
}

export interface BreakableKube extends KubeApi {
  /** Ends all watches that are open. */
  breakWatches(how: WatchBreak): void;
}

function latency({ clock, random }: PortOptions, [low, high]: readonly [number, number]): Promise<void> | undefined {
  const ms = integerBetween(random, low, high);
  return ms > 0 ? clock.sleep(ms) : undefined;
}

export function simulatedKube(api: KubeApi, find: (ref: ObjectRef) => KubeObject | undefined, options: PortOptions): BreakableKube {
  const { process, random, troubles, log, observe } = options;
  const watches = new Set<(how: WatchBreak) => void>();

  const call = <T>(type: ResourceType, what: string, isWrite: boolean, effect: () => Promise<T>): Promise<T> =>
    process.pass(async () => {
      await latency(options, API_LATENCY_MS);
      if (chance(random, troubles.apiTimeouts)) return timeOut(type, what, effect);
      if (chance(random, troubles.apiErrors)) {
        troubles.took("api_errors");
        observe({ type: "api_trouble", process: process.name, of: type });
        throw serverError(what);
      }
      if (isWrite && chance(random, troubles.conflicts)) {
        troubles.took("conflicts");
        observe({ type: "api_conflict", process: process.name, what });
        throw conflictError(what);
      }
      const result = await effect();
      await latency(options, API_LATENCY_MS);
      if (chance(random, troubles.lostReplies)) {
        troubles.took("lost_replies");
        observe({ type: "api_trouble", process: process.name, of: type });
        throw new RelevoError("kube_connection_lost", `${what}: the reply was lost`, { class: "retryable" });
      }
      return result;
    }, what);

  const timeOut = async <T>(type: ResourceType, what: string, effect: () => Promise<T>): Promise<never> => {
    troubles.took("api_timeouts");
    observe({ type: "api_trouble", process: process.name, of: type });
    // Whatever became of it: its caller has long given up to wait for the answer.
    if (chance(random, 0.5)) await effect().catch(() => undefined);
    await latency(options, API_TIMEOUT_MS);
    throw new RelevoError("kube_timeout", `${what}: no answer in time`, { class: "retryable" });
  };

  /** The API server answers other calls: only what is watched is not heard. */
  const throughGap = <T>(type: ResourceType, what: string): Promise<T> | undefined => {
    if (options.clock.monotonic() >= troubles.watchGapUntil) return undefined;
    observe({ type: "api_trouble", process: process.name, of: type });
    return process.pass(async () => {
      await latency(options, API_LATENCY_MS);
      throw new RelevoError("kube_connection_lost", `${what}: not connected`, { class: "retryable" });
    });
  };

  const write = <T>(method: WriteMethod, ref: ObjectRef, body: unknown, effect: () => Promise<T>): Promise<T> =>
    call(ref.type, `${method} ${nameOf(ref)}`, true, async () => {
      const before = find(ref);
      const result = await effect();
      const after = method === "create" ? (result as KubeObject) : find(ref);
      const isChanged = before?.metadata.resourceVersion !== after?.metadata.resourceVersion;
      if (ref.type.plural !== "events" && isChanged) log.add(`${process.name} ${method} ${nameOf(ref)}`);
      observe({ type: "api_write", process: process.name, method, ref, body, before, after });
      return result;
    });

  return {
    get: (ref) => call(ref.type, `get ${nameOf(ref)}`, false, () => api.get(ref)),
    list: (type, listOptions = {}) =>
      throughGap(type, `list ${type.plural}`) ??
      call(type, `list ${type.plural}`, false, async () => {
        const list = await api.list(type, listOptions);
        observe({ type: "api_list", process: process.name, of: type, options: listOptions });
        observe({ type: "listed", process: process.name, of: type, items: list.items });
        return list;
      }),
    watch: (type, watchOptions, signal) =>
      new SimulatedWatch(options, type, watches, (inner) => api.watch(type, watchOptions, inner)).until(signal),
    create: (type, object, createOptions) =>
      write("create", { type, namespace: createOptions?.namespace, name: object.metadata.name ?? "" }, object, () =>
        api.create(type, object, createOptions),
      ),
    replace: (ref, object) => write("replace", ref, object, () => api.replace(ref, object)),
    patch: (ref, body) => write("patch", ref, body, () => api.patch(ref, body)),
    patchStatus: (ref, body) => write("patchStatus", ref, body, () => api.patchStatus(ref, body)),
    patchScale: (ref, body) => write("patchScale", ref, body, () => api.patchScale(ref, body)),
    delete: (ref, deleteOptions) => write("delete", ref, deleteOptions, () => api.delete(ref, deleteOptions)),
    evict: (ref, deleteOptions) => write("evict", ref, deleteOptions, () => api.evict(ref, deleteOptions)),
    breakWatches(how) {
      for (const end of [...watches]) end(how);
    },
  };
}

/** A watch that can break, and that ends without a word when its process dies. */
class SimulatedWatch implements AsyncIterable<WatchEvent> {
  readonly #options: PortOptions;
  readonly #type: ResourceType;
  readonly #open: (signal: AbortSignal) => AsyncIterable<WatchEvent>;
  readonly #watches: Set<(how: WatchBreak) => void>;
  readonly #inner = new AbortController();
  #broken: WatchBreak | undefined;
  #isOpened = false;
  #forget: () => void = () => {};

  constructor(
    options: PortOptions,
    type: ResourceType,
    watches: Set<(how: WatchBreak) => void>,
    open: (signal: AbortSignal) => AsyncIterable<WatchEvent>,
  ) {
    this.#options = options;
    this.#type = type;
    this.#watches = watches;
    this.#open = open;
  }

  until(signal: AbortSignal): this {
    const end = (): void => this.#close();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) this.#inner.abort();
    return this;
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchEvent> {
    const { process, observe } = this.#options;
    const iterator = this.#open(this.#inner.signal)[Symbol.asyncIterator]();
    const breakIt = (how: WatchBreak): void => {
      this.#broken = how;
      this.#options.troubles.took(`watch_${how}`);
      observe({ type: "api_trouble", process: process.name, of: this.#type });
      this.#close();
    };
    this.#watches.add(breakIt);
    const alive = process.onDeath(() => this.#close());
    this.#forget = () => {
      this.#watches.delete(breakIt);
      alive();
    };
    return {
      next: () => process.pass(() => this.#next(iterator), `watch ${this.#type.plural}`),
      return: async () => {
        this.#close();
        return { done: true, value: undefined };
      },
    };
  }

  async #next(iterator: AsyncIterator<WatchEvent>): Promise<IteratorResult<WatchEvent>> {
    const { process, observe, troubles, random, clock } = this.#options;
    const isInGap = clock.monotonic() < troubles.watchGapUntil;
    if (!this.#isOpened && !isInGap && troubles.watchesToExpire > 0) {
      troubles.watchesToExpire -= 1;
      troubles.took("watch_gone");
      observe({ type: "api_trouble", process: process.name, of: this.#type });
      this.#close();
      return { done: false, value: { type: "ERROR", status: { code: 410, reason: "Expired", message: "too old" } } };
    }
    this.#isOpened = true;
    if (isInGap || chance(random, troubles.apiErrors / 10)) {
      observe({ type: "api_trouble", process: process.name, of: this.#type });
      this.#close();
      throw new RelevoError("kube_connection_lost", "the watch broke", { class: "retryable" });
    }
    const askedAt = clock.monotonic();
    const result = await iterator.next();
    // What came while the one before it was on its way arrives together with it: nothing is later than the lag.
    const isFresh = clock.monotonic() > askedAt;
    const { broken } = { broken: this.#broken };
    if (result.done !== true) {
      if (troubles.watchLagMs > 0 && isFresh) {
        troubles.took("watch_lag");
        await this.#options.clock.sleep(troubles.watchLagMs);
      }
      observe({ type: "watch_line", process: process.name, of: this.#type, line: result.value });
      return result;
    }
    this.#broken = "ended";
    if (broken === "broken") throw new RelevoError("kube_connection_lost", "the watch broke", { class: "retryable" });
    if (broken === "gone") return { done: false, value: { type: "ERROR", status: { code: 410, reason: "Expired", message: "too old" } } };
    return result;
  }

  #close(): void {
    this.#inner.abort();
    this.#forget();
  }
}

export function simulatedStore(store: Store, options: PortOptions): Store {
  const { process, troubles, random, observe, log, clock } = options;
  const told: Partial<Record<keyof Store, (input: readonly unknown[], result: unknown, askedAt: Instant) => void>> = {
    claim: (_, result) => observe({ type: "claimed", process: process.name, authority: result as Authority }),
    commit: ([authority, changes, now], _, askedAt) => {
      for (const change of changes as readonly Change[]) {
        const line = describeChange(change);
        if (line !== undefined) log.add(`${process.name} commit ${line}`);
      }
      observe({
        type: "committed",
        process: process.name,
        authority: authority as Authority,
        changes: changes as readonly Change[],
        now: now as number,
        askedAt,
      });
    },
    readPool: (_, result) => {
      if (result !== undefined) observe({ type: "rows_read", process: process.name, rows: result as PoolRows });
    },
  };
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name] as (...input: unknown[]) => Promise<unknown>;
      if (name === "close") return async () => {}; // the file outlives the process
      return (...input: unknown[]) => {
        const askedAt = clock.now();
        return process.pass(async () => {
          await latency(options, STORE_LATENCY_MS);
          if (troubles.storeBusyMs > 0) await beBusy(options);
          if (chance(random, troubles.storeFailures)) {
            troubles.took("store_failing");
            throw storeUnavailable("the disk is full", undefined);
          }
          const result = await method.apply(target, input);
          told[name]?.(input, result, askedAt);
          if (chance(random, troubles.storeLostReplies)) {
            troubles.took("store_lost_replies");
            throw storeUnavailable("the reply was lost", undefined);
          }
          return result;
        }, process.onCall && describeStoreCall(name, input));
      };
    },
  });
}

/** A commit by what it writes. */
function describeStoreCall(name: string, [, changes]: readonly unknown[]): string {
  if (name !== "commit") return `store ${name}`;
  const kinds = (changes as readonly Change[]).map((change) =>
    change.kind === "record_step" ? `record ${change.step.kind}` : change.kind,
  );
  return `store commit ${[...new Set(kinds)].join(" ")}`;
}

async function beBusy(options: PortOptions): Promise<void> {
  options.troubles.took("store_busy");
  await latency(options, [0, options.troubles.storeBusyMs]);
  if (chance(options.random, 0.1)) throw storeUnavailable("it is busy", undefined);
}

export function simulatedDriver(driver: InstanceDriver, options: PortOptions): InstanceDriver {
  const { process, troubles, random } = options;
  return new Proxy(driver, {
    get(target, name: keyof InstanceDriver) {
      const method = target[name] as (...input: unknown[]) => Promise<unknown>;
      return (...input: unknown[]) =>
        process.pass(async () => {
          await latency(options, DRIVER_LATENCY_MS);
          if (troubles.isProberCut) {
            troubles.took("prober_cut");
            await latency(options, DRIVER_TIMEOUT_MS);
            throw new RelevoError("instance_timeout", "no answer in time", { class: "retryable" });
          }
          const isTroubled = chance(random, troubles.driverErrors);
          const isBefore = isTroubled && chance(random, 0.5);
          if (isTroubled) troubles.took("driver_errors");
          if (isBefore) throw new RelevoError("instance_unreachable", "not connected", { class: "retryable" });
          const result = await method.apply(target, input);
          if (isTroubled) throw new RelevoError("instance_timeout", "no answer in time", { class: "retryable" });
          return result;
        }, `instance ${name}`);
    },
  });
}

function serverError(what: string): KubeApiError {
  return new KubeApiError({ code: 500, reason: "InternalError", message: "injected" }, what);
}

function conflictError(what: string): KubeApiError {
  return new KubeApiError({ code: 409, reason: "Conflict", message: "injected" }, what);
}

function nameOf({ type, namespace, name }: ObjectRef): string {
  return `${type.plural}/${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

function describeChange(change: Change): string | undefined {
  switch (change.kind) {
    case "record_evidence":
      return `evidence ${change.evidence.instance} ${change.evidence.reason}`;
    case "create_instance":
      return `add ${change.instance.id} ${change.instance.purpose} ${change.instance.replaces ?? ""}`;
    case "move_instance":
      return `move ${change.instance} ${change.from}→${change.to} ${JSON.stringify(change.set ?? {})}`;
    case "take_standby":
      return `take ${change.instance} for ${change.replaces}`;
    case "renew_incarnation":
      return `incarnation ${change.instance} ${change.after + 1} ${change.incarnation.podName ?? ""} ${change.incarnation.host ?? ""}`;
    case "set_trust":
      return `trust ${change.instance} ${change.to}`;
    case "pass_writer":
      return `writer of ${change.ordinal} after ${change.after} ${change.to?.instance ?? "nobody"}`;
    case "record_step":
      return `step ${change.step.id} recorded`;
    case "end_step":
      return `step ${change.step} ${change.state} ${change.outcome}`;
    case "retry_step":
      return `step ${change.step} again: ${change.error}`;
    case "count_loss":
      return `loss ${change.instance} ${change.loss} ${change.obligations} ${change.seal}`;
    case "set_reasons":
      return change.reasons.map(({ subject, reason }) => `${subject}:${reason.code}`).join(" ");
    case "set_desired":
      return `size ${change.from}→${change.to} ${change.reason.code}`;
    case "update_instance":
      return undefined;
    default:
      return change satisfies never;
  }
}
