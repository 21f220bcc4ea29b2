/**
 * What Relevo writes on a Pool: its finalizer, its status, and Events. Status is never read back; it is written at each change that matters and otherwise
 * at most once in five seconds.
 */
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import { formatInstant } from "../kernel/clock.ts";
import { isForbidden, isNotFound, type KubeApi, type ObjectRef } from "../kube/api.ts";
import { EVENTS, POOLS } from "../kube/resources.ts";
import type { PoolEntry } from "./pool-informer.ts";
import { POOL_FINALIZER } from "./pool-informer.ts";
import type { ControllerLog, Pass } from "./pass.ts";
import { conditionsOf, type PoolStatus, statusOf, type Transitions, transitionsOf } from "./status.ts";

const QUIET_MS = 5_000;
/** What is measured changes at each look. */
const MEASURED_MS = 15_000;
/** Until a finalizer that was refused is tried again. */
const REFUSED_MS = 30_000;
/** Events that wait to be sent; the oldest goes when there are more. */
const MAX_PENDING_EVENTS = 200;

interface Written {
  /** Without the counts that change all the time. */
  urgent: string;
  /** Without what is measured. */
  calm: string;
  all: string;
  /** When it was last tried. */
  at: Instant;
  hasFailed: boolean;
  timer: Timer | undefined;
  transitions: Transitions;
}

export class PoolWriter {
  readonly #kube: KubeApi;
  readonly #clock: Clock;
  readonly #log: ControllerLog;
  readonly #written = new Map<string, Written>();
  /** The last write of each pool that is not over: the next one waits, or the server might get the older one last. */
  readonly #writes = new Map<string, Promise<void>>();
  readonly #refusals = new Map<string, { readonly found: string; readonly until: Instant }>();
  readonly #events: {
    readonly entry: PoolEntry;
    readonly reason: string;
    readonly message: string;
    readonly isWarning: boolean;
    readonly at: Instant;
  }[] = [];
  #isSending = false;
  /** The last Event could not be sent: said once, and again after one was. */
  #isMute = false;
  #eventNumber = 0;

  constructor(kube: KubeApi, clock: Clock, log: ControllerLog) {
    this.#kube = kube;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Puts our finalizer on, so that a deleted pool ends by its deletion policy. Settles with what the server said when we may not: nothing else must wait for
   * that, and it is asked again after a while.
   */
  async keep(entry: PoolEntry): Promise<string | null> {
    const known = this.#refusals.get(entry.key);
    if (known && this.#clock.now() < known.until) return known.found;
    try {
      await this.#patchFinalizers(entry, [...entry.finalizers, POOL_FINALIZER]);
      this.#refusals.delete(entry.key);
      return null;
    } catch (error) {
      if (!isForbidden(error)) throw error;
      const found = error.status.message ?? error.code;
      this.#refusals.set(entry.key, { found, until: this.#clock.now() + REFUSED_MS });
      return found;
    }
  }

  forget(pool: string): void {
    this.#written.get(pool)?.timer?.cancel();
    this.#written.delete(pool);
    this.#refusals.delete(pool);
  }

  async letGo(entry: PoolEntry): Promise<void> {
    this.forget(entry.key);
    await this.#patchFinalizers(
      entry,
      entry.finalizers.filter((each) => each !== POOL_FINALIZER),
    );
  }

  report(entry: PoolEntry, pass: Pass): void {
    const former = this.#written.get(entry.key);
    const status = statusOf(entry, pass);
    const urgent = JSON.stringify([
      status.phase,
      status.conditions.map(({ type, status: value, reason }) => [type, value, reason]),
      status.serving,
      status.desired,
    ]);
    const calm = JSON.stringify({ ...status, demand: null, slots: null });
    const all = JSON.stringify(status);
    former?.timer?.cancel();
    if (former?.all === all && !this.#writes.has(entry.key)) return;
    const isQuiet = former !== undefined && (former.urgent === urgent || former.hasFailed);
    const quietMs = former?.calm === calm ? MEASURED_MS : QUIET_MS;
    const wait = isQuiet ? Math.max(0, former.at + quietMs - this.#clock.now()) : 0;
    const timer: Timer = this.#clock.after(wait, () =>
      this.#inTurn(entry.key, async () => {
        // Another report took its place meanwhile, or the pool was forgotten.
        if (this.#written.get(entry.key)?.timer === timer) await this.#writeStatus(entry, status, { urgent, calm, all });
      }),
    );
    this.#written.set(entry.key, {
      urgent: former?.urgent ?? "",
      calm: former?.calm ?? "",
      all: former?.all ?? "",
      at: former?.at ?? 0,
      hasFailed: former?.hasFailed ?? false,
      timer,
      transitions: former?.transitions ?? new Map(),
    });
  }

  /** The last status could not be written: the next report tries it again. */
  hasFailed(pool: string): boolean {
    return this.#written.get(pool)?.hasFailed ?? false;
  }

  /** An Event on the Pool; sent in the background, dropped when the server is away for long. */
  tell(entry: PoolEntry, reason: string, message: string, isWarning = false): void {
    this.#events.push({ entry, reason, message, isWarning, at: this.#clock.now() });
    if (this.#events.length > MAX_PENDING_EVENTS) this.#events.shift();
    if (!this.#isSending) void this.#sendEvents();
  }

  #inTurn(pool: string, write: () => Promise<void>): void {
    const mine = (this.#writes.get(pool) ?? Promise.resolve()).then(write).finally(() => {
      if (this.#writes.get(pool) === mine) this.#writes.delete(pool);
    });
    this.#writes.set(pool, mine);
  }

  async #writeStatus(entry: PoolEntry, status: PoolStatus, written: Pick<Written, "urgent" | "calm" | "all">): Promise<void> {
    try {
      const former = this.#written.get(entry.key)?.transitions ?? new Map();
      const transitions = transitionsOf(status, former, secondsOf(this.#clock.now()));
      const conditions = conditionsOf(entry, status, transitions);
      await this.#kube.patchStatus(refOf(entry), { status: { ...status, conditions } });
      const known = this.#written.get(entry.key);
      if (known === undefined) return;
      this.#written.set(entry.key, { ...written, at: this.#clock.now(), hasFailed: false, timer: known.timer, transitions });
      this.#tellTransitions(entry, status, former);
    } catch (error) {
      const former = this.#written.get(entry.key);
      if (former) this.#written.set(entry.key, { ...former, at: this.#clock.now(), hasFailed: true });
      if (!isNotFound(error)) this.#log("warn", "the pool's status could not be written", { pool: entry.key, error });
    }
  }

  /** What an operator hears of beside the instances. The first look of a controller is no transition. */
  #tellTransitions(entry: PoolEntry, { conditions }: PoolStatus, former: Transitions): void {
    for (const { type, status, reason, message } of conditions) {
      const before = former.get(type)?.status;
      if (before === undefined || before === status || type === "Progressing") continue;
      this.tell(entry, reason, message === "" ? "nothing holds it any more" : message, (type === "Held") === (status === "True"));
    }
  }

  async #patchFinalizers(entry: PoolEntry, finalizers: readonly string[]): Promise<void> {
    try {
      await this.#kube.patch(refOf(entry), { metadata: { uid: entry.uid, resourceVersion: entry.resourceVersion, finalizers } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #sendEvents(): Promise<void> {
    this.#isSending = true;
    for (let event = this.#events.shift(); event; event = this.#events.shift()) {
      const { entry, reason, message, isWarning, at } = event;
      const { namespace, name } = entry.document.metadata;
      this.#eventNumber += 1;
      const time = secondsOf(at);
      const body = {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: `${name}.${at.toString(16)}${this.#eventNumber.toString(16)}`, namespace },
        involvedObject: { apiVersion: entry.document.apiVersion, kind: "Pool", namespace, name, uid: entry.uid },
        reason,
        message,
        type: isWarning ? "Warning" : "Normal",
        source: { component: "relevo" },
        firstTimestamp: time,
        lastTimestamp: time,
        count: 1,
      };
      await this.#kube.create(EVENTS, body, { namespace }).then(
        () => (this.#isMute = false),
        (error: unknown) => {
          this.#log(this.#isMute ? "debug" : "warn", "an Event could not be sent", { pool: entry.key, error });
          this.#isMute = true;
        },
      );
    }
    this.#isSending = false;
  }
}

/** Kubernetes keeps whole seconds. */
function secondsOf(at: Instant): string {
  return formatInstant(at).replace(/\.\d+Z$/, "Z");
}

function refOf(entry: PoolEntry): ObjectRef {
  const { namespace, name } = entry.document.metadata;
  return { type: POOLS, namespace, name };
}
