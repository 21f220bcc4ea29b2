/**
 * What waits for each pool with `scale`, asked from its own source, and what was wanted of its size lately. An adapter: it owns the timers and the calls; whether
 * an answer can be believed is judged in `demand/validity.ts`, and what follows from it is the planner's.
 *
 * 1. One open source for each pool, of which one call at a time is on its way; over all pools at most `MAX_AT_ONCE`, few of them to where nobody answers.
 * 2. A source that tells of changes is asked when it does, and now and then; any other one is polled. Who does not answer is asked less and less often, up to a bound.
 * 3. The last valid reading stays until the next valid one, beside the trouble: nothing here turns trouble into a number.
 * 4. A pool is woken when its answer can change what is decided, and not at each message.
 */
import { type Connections, findSignal } from "../demand/availability.ts";
import type { Connection } from "../demand/connections.ts";
import type { DemandAdapter, DemandPorts, DemandSource } from "../demand/port.ts";
import type { DemandAdapters } from "../demand/registry.ts";
import { type Believed, isAnswer, judgeReading, type Trouble, troubleOfError } from "../demand/validity.ts";
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import type { DemandReading, DemandTrouble, DemandView } from "../model/demand.ts";
import type { PoolDocument } from "../model/pool.ts";
import type { ScalePolicy } from "../model/scale.ts";
import { rememberRecommendation } from "../plan/scaling/recommended.ts";
import type { Recommendation } from "../plan/scaling/types.ts";

/** Calls that are on their way at once, over all pools. */
const MAX_AT_ONCE = 32;
/** Of them by a connection whose newest call was not answered: what hangs there keeps no other pool waiting. */
const MAX_AT_ONCE_UNANSWERED = 2;
/** An answer that is later than this is none. */
export const READ_LIMIT_MS = 10_000;
/** Of a source that tells of changes, in case it does not. */
const LISTENED_MS = 15_000;
/** Between two calls to who does not answer, at most; unless it is polled less often anyway. */
const LONGEST_BACK_OFF_MS = 30_000;
/** Polls come up to this share earlier than their time, so that those of many pools spread. */
const JITTER = 0.1;

export interface DemandMonitorParts {
  readonly adapters: DemandAdapters;
  readonly connections: Connections;
  readonly clock: Clock;
  readonly random: Random;
  readonly kube: DemandPorts["kube"];
  /** What is known of the pool's demand has changed so that another size may be wanted. */
  readonly onChange: (pool: string) => void;
  /** Told of each call: of what kind, how it ended (`valid` or the trouble's code), and how long it took in ms. */
  readonly onRead?: (pool: string, outcome: "valid" | DemandTrouble, ms: number) => void;
  readonly log: (level: "info" | "warn", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** A pool whose demand is followed. */
interface Entry {
  readonly pool: string;
  readonly namespace: string;
  readonly sites: readonly string[];
  readonly flow: string | null;
  scale: ScalePolicy;
  /** What the entry was made from: another text is another entry. */
  readonly key: string;
  opened: Opened | undefined;
  /** By which its calls go; undefined: not looked for since the connections changed. */
  route: Route | undefined;
  believed: Believed | null;
  readAt: Instant | null;
  trouble: DemandView["trouble"];
  view: DemandView;
  failures: number;
  timer: Timer | undefined;
  isQueued: boolean;
  isReading: boolean;
  /** Asked for while a call was on its way. */
  isWanted: boolean;
}

/** Of a connection: its calls that are on their way, and whether the newest that ended was answered. */
interface Route {
  running: number;
  isUnanswered: boolean;
}

interface Opened {
  readonly source: DemandSource;
  readonly adapter: DemandAdapter;
  readonly connection: Connection | undefined;
  readonly stopListening: (() => void) | undefined;
}

export class DemandMonitor {
  readonly #parts: DemandMonitorParts;
  readonly #entries = new Map<string, Entry>();
  readonly #recommended = new Map<string, readonly Recommendation[]>();
  readonly #queue: Entry[] = [];
  readonly #routes = new WeakMap<Connection, Route>();
  /** Of what needs no connection. */
  readonly #direct: Route = { running: 0, isUnanswered: false };
  #running = 0;

  constructor(parts: DemandMonitorParts) {
    this.#parts = parts;
  }

  /** From now on as the document says; without `scale` nothing is asked. */
  follow(pool: string, document: PoolDocument): void {
    const { scale, worker, sites } = document.spec;
    if (scale === undefined) return this.forget(pool);
    const { namespace } = document.metadata;
    const flow = worker.flow ?? null;
    const key = JSON.stringify([namespace, sites, flow, scale.signal]);
    const known = this.#entries.get(pool);
    if (known?.key === key) {
      known.scale = scale;
      return;
    }
    if (known !== undefined) this.#drop(known);
    const view: DemandView = { reading: null, readAt: null, trouble: null };
    const entry: Entry = {
      ...{ pool, namespace, sites, flow, scale, key, view },
      ...{ opened: undefined, route: undefined, believed: null, readAt: null, trouble: null, failures: 0, timer: undefined },
      ...{ isQueued: false, isReading: false, isWanted: false },
    };
    this.#entries.set(pool, entry);
    this.#want(entry);
  }

  forget(pool: string): void {
    const entry = this.#entries.get(pool);
    if (entry !== undefined) this.#drop(entry);
    this.#recommended.delete(pool);
  }

  /** Null: it is not followed. The same object while nothing changed. */
  viewOf(pool: string): DemandView | null {
    return this.#entries.get(pool)?.view ?? null;
  }

  /** The size that was wanted at a look. */
  remember(pool: string, size: number, at: Instant): void {
    const entry = this.#entries.get(pool);
    if (entry === undefined) return;
    // A clock that was set back forgets what would be of the future.
    const former = this.recommendedOf(pool).filter((each) => each.at <= at);
    this.#recommended.set(pool, rememberRecommendation(former, { at, size }, entry.scale));
  }

  /** Oldest first. */
  recommendedOf(pool: string): readonly Recommendation[] {
    return this.#recommended.get(pool) ?? [];
  }

  /** The connections are others by now: whose is another one is opened anew. */
  connectionsChanged(): void {
    for (const entry of this.#entries.values()) {
      const found = this.#find(entry);
      if (entry.opened !== undefined && "adapter" in found && found.connection === entry.opened.connection) continue;
      this.#close(entry);
      entry.failures = 0;
      this.#want(entry);
    }
  }

  stop(): void {
    for (const entry of [...this.#entries.values()]) this.#drop(entry);
    this.#recommended.clear();
  }

  #find({ scale, namespace, sites }: Entry) {
    return findSignal(scale.signal, { namespace, sites }, this.#parts.connections, this.#parts.adapters);
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.pool);
    entry.timer?.cancel();
    this.#close(entry);
  }

  #close(entry: Entry): void {
    const { opened } = entry;
    entry.opened = undefined;
    entry.route = undefined;
    if (opened === undefined) return;
    opened.stopListening?.();
    opened.source.close().catch((error: unknown) => this.#parts.log("info", "a demand source did not close", { pool: entry.pool, error }));
  }

  #isCurrent(entry: Entry): boolean {
    return this.#entries.get(entry.pool) === entry;
  }

  #want(entry: Entry): void {
    if (!this.#isCurrent(entry)) return;
    entry.timer?.cancel();
    if (entry.isReading) entry.isWanted = true;
    else if (!entry.isQueued) {
      entry.isQueued = true;
      this.#queue.push(entry);
      this.#begin();
    }
  }

  #begin(): void {
    while (this.#running < MAX_AT_ONCE) {
      const next = this.#queue.findIndex((each) => !this.#isCurrent(each) || hasRoom(this.#routeOf(each)));
      const [entry] = next === -1 ? [] : this.#queue.splice(next, 1);
      if (entry === undefined) return;
      entry.isQueued = false;
      if (!this.#isCurrent(entry)) continue;
      const route = this.#routeOf(entry);
      this.#running += 1;
      route.running += 1;
      entry.isReading = true;
      void this.#look(entry, route).finally(() => {
        this.#running -= 1;
        route.running -= 1;
        entry.isReading = false;
        this.#next(entry);
        this.#begin();
      });
    }
  }

  #routeOf(entry: Entry): Route {
    if (entry.route !== undefined) return entry.route;
    const found = this.#find(entry);
    const connection = "adapter" in found ? found.connection : undefined;
    const route = connection === undefined ? this.#direct : (this.#routes.get(connection) ?? { running: 0, isUnanswered: false });
    if (connection !== undefined) this.#routes.set(connection, route);
    entry.route = route;
    return route;
  }

  #next(entry: Entry): void {
    if (!this.#isCurrent(entry)) return;
    if (entry.isWanted) {
      entry.isWanted = false;
      return this.#want(entry);
    }
    entry.timer?.cancel();
    entry.timer = this.#parts.clock.after(this.#delayOf(entry), () => this.#want(entry));
  }

  #delayOf({ scale, failures, opened }: Entry): number {
    const isTold = failures === 0 && opened?.stopListening !== undefined;
    const every = isTold ? Math.max(scale.pollEvery, Math.min(LISTENED_MS, scale.maxAge / 2)) : scale.pollEvery;
    const longest = Math.max(every, LONGEST_BACK_OFF_MS);
    const delay = Math.min(longest, every * 2 ** Math.min(10, Math.max(0, failures - 1)));
    return delay * (1 - JITTER * this.#parts.random.next());
  }

  async #look(entry: Entry, route: Route): Promise<void> {
    const { clock, onRead } = this.#parts;
    const begun = clock.monotonic();
    const answer = await this.#ask(entry);
    route.isUnanswered = "trouble" in answer && answer.trouble.code === "unreachable";
    if (!this.#isCurrent(entry)) return;
    const at = clock.monotonic();
    const judged =
      "trouble" in answer
        ? answer
        : judgeReading(answer.reading, { flow: entry.flow, maxAgeMs: entry.scale.maxAge, former: entry.believed, at });
    onRead?.(entry.pool, "trouble" in judged ? judged.trouble.code : "valid", at - begun);
    if ("trouble" in judged) this.#fail(entry, judged.trouble);
    else this.#believe(entry, judged.valid);
  }

  async #ask(entry: Entry): Promise<{ readonly reading: DemandReading } | { readonly trouble: Trouble }> {
    const opened = this.#open(entry);
    if ("trouble" in opened) return opened;
    const limit = new AbortController();
    const late = Promise.withResolvers<never>();
    const timer = this.#parts.clock.after(READ_LIMIT_MS, () => {
      const error = new Error(`no answer within ${READ_LIMIT_MS / 1_000} s`);
      limit.abort(error);
      late.reject(error);
    });
    try {
      return { reading: await Promise.race([opened.source.read(limit.signal), late.promise]) };
    } catch (error) {
      // One that does not even end when it is told to is not waited for: the next call goes by another one.
      if (limit.signal.aborted && entry.opened === opened) this.#close(entry);
      return { trouble: troubleOfError(error) };
    } finally {
      timer.cancel();
    }
  }

  #open(entry: Entry): Opened | { readonly trouble: Trouble } {
    if (entry.opened !== undefined) return entry.opened;
    const { clock, kube } = this.#parts;
    const { scale, namespace, flow } = entry;
    const found = this.#find(entry);
    if ("missing" in found) return { trouble: { code: "not_available", detail: found.missing } };
    const { adapter, connection } = found;
    try {
      const told = adapter.flowOf(scale.signal);
      if (flow !== null && told !== null && told !== flow)
        return { trouble: { code: "other_flow", detail: `its signal is of ${told}, and the workers take ${flow}` } };
      const source = adapter.open(scale.signal, connection, { clock, kube, namespace });
      const stopListening = source.onChange?.(() => this.#want(entry));
      const opened = { source, adapter, connection, stopListening };
      entry.opened = opened;
      return opened;
    } catch (error) {
      return { trouble: troubleOfError(error) };
    }
  }

  #believe(entry: Entry, believed: Believed): void {
    const before = entry.view;
    entry.failures = 0;
    entry.believed = believed;
    entry.readAt = this.#parts.clock.now();
    entry.trouble = null;
    entry.view = { reading: believed.reading, readAt: entry.readAt, trouble: null };
    if (before.trouble !== null) this.#parts.log("info", "the demand of a pool is known again", { pool: entry.pool });
    const isNews =
      before.reading === null || before.trouble !== null || sizeFor(entry, before.reading) !== sizeFor(entry, believed.reading);
    if (isNews) this.#parts.onChange(entry.pool);
  }

  #fail(entry: Entry, { code, detail }: Trouble): void {
    const { clock, log, onChange } = this.#parts;
    entry.failures = isAnswer({ code, detail }) ? Math.min(entry.failures, 1) : entry.failures + 1;
    const isNews = entry.trouble?.code !== code;
    // However often it is another trouble: a fallback counts from the first.
    const since = entry.trouble?.since ?? clock.now();
    entry.trouble = { code, detail, since };
    entry.view = { ...entry.view, trouble: entry.trouble };
    if (!isNews) return;
    log("warn", "the demand of a pool is not known", { pool: entry.pool, code, detail });
    onChange(entry.pool);
  }
}

function hasRoom({ running, isUnanswered }: Route): boolean {
  return !isUnanswered || running < MAX_AT_ONCE_UNANSWERED;
}

/** What this much work wants, before anything else counts. */
function sizeFor({ scale }: Entry, { backlog, inFlight }: DemandReading): number {
  return Math.ceil((backlog + (inFlight ?? 0)) / scale.target);
}
