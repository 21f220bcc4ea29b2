/** A server for tests of list and watch: a few objects in memory, and every fault that a real one shows, on command. */
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { type KubeApi, KubeApiError, type KubeList, type KubeObject, type ListOptions, type WatchEvent, type WatchOptions } from "./api.ts";

interface Logged {
  readonly revision: number;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
  readonly last: KubeObject;
}

interface OpenWatch {
  readonly labelSelector: string | undefined;
  readonly queue: (WatchEvent | { readonly type: "END" } | { readonly type: "BREAK" })[];
  wake: () => void;
  isSilent: boolean;
}

const EXPIRED = { code: 410, reason: "Expired", message: "too old resource version" } as const;

export class FakeServer {
  readonly #clock: Clock;
  readonly #objects = new Map<string, KubeObject>();
  readonly #log: Logged[] = [];
  readonly #pages = new Map<string, { readonly version: string; readonly rest: readonly KubeObject[] }>();
  readonly #watches = new Set<OpenWatch>();
  #revision = 1;
  #forgotten = 0;
  #uids = 0;
  /** How a 410 of a watch arrives. */
  goneAs: "thrown" | "event" = "thrown";
  /** So many lists to come fail with 500. */
  failLists = 0;
  /** All that is asked for fails as if the network were cut. */
  isCut = false;
  lists = 0;
  watches = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  names(label?: string): readonly string[] {
    return [...this.#objects.values()]
      .filter((object) => matches(object, label))
      .map(summary)
      .toSorted();
  }

  put(name: string, label = "in"): void {
    const before = this.#objects.get(name);
    const uid = before?.metadata.uid ?? `uid-${++this.#uids}`;
    const after: KubeObject = {
      apiVersion: "v1",
      kind: "Thing",
      metadata: {
        name,
        namespace: "default",
        uid,
        resourceVersion: String(++this.#revision),
        creationTimestamp: "2030-01-01T00:00:00Z",
        labels: { side: label },
      },
    };
    this.#objects.set(name, after);
    this.#publish({ revision: this.#revision, before, after, last: after });
  }

  delete(name: string): void {
    const before = this.#objects.get(name);
    if (before === undefined) return;
    this.#objects.delete(name);
    const last = { ...before, metadata: { ...before.metadata, resourceVersion: String(++this.#revision) } };
    this.#publish({ revision: this.#revision, before, after: undefined, last });
  }

  /** Everything before now is forgotten: older versions and continue tokens answer 410. */
  compact(): void {
    this.#forgotten = this.#revision;
    this.#pages.clear();
  }

  bookmark(): void {
    this.#each({ type: "BOOKMARK", resourceVersion: String(this.#revision) });
  }

  endWatches(): void {
    this.#each({ type: "END" });
  }

  breakWatches(): void {
    this.#each({ type: "BREAK" });
  }

  /** The connections that are open now stay open and carry nothing any more. */
  silenceWatches(): void {
    for (const watch of this.#watches) watch.isSilent = true;
  }

  expireWatches(): void {
    this.compact();
    this.#each({ type: "ERROR", status: EXPIRED });
  }

  api(): Pick<KubeApi, "list" | "watch"> & KubeApi {
    const unused = (): never => {
      throw new Error("not part of this fake");
    };
    return {
      list: (_type, options) => this.#list(options ?? {}),
      watch: (_type, options, signal) => this.#watch(options, signal),
      get: unused,
      create: unused,
      replace: unused,
      patch: unused,
      patchStatus: unused,
      patchScale: unused,
      delete: unused,
      evict: unused,
    };
  }

  async #list(options: ListOptions): Promise<KubeList> {
    this.lists++;
    await this.#clock.sleep(5);
    if (this.isCut) throw new RelevoError("connection_broken", "cut", { class: "retryable" });
    if (this.failLists > 0) {
      this.failLists--;
      throw new KubeApiError({ code: 500, reason: "InternalError" }, "list");
    }
    const from = options.continue === undefined ? this.#snapshot(options.labelSelector) : this.#pages.get(options.continue);
    if (from === undefined) throw new KubeApiError(EXPIRED, "list");
    const limit = options.limit ?? Number.POSITIVE_INFINITY;
    if (from.rest.length <= limit) return { resourceVersion: from.version, items: from.rest };
    const token = `token-${this.#pages.size}-${this.lists}`;
    this.#pages.set(token, { version: from.version, rest: from.rest.slice(limit) });
    return { resourceVersion: from.version, items: from.rest.slice(0, limit), continue: token };
  }

  #snapshot(label: string | undefined): { readonly version: string; readonly rest: readonly KubeObject[] } {
    return { version: String(this.#revision), rest: [...this.#objects.values()].filter((object) => matches(object, label)) };
  }

  async *#watch(options: WatchOptions, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    this.watches++;
    if (this.isCut) throw new RelevoError("connection_broken", "cut", { class: "retryable" });
    if (Number(options.resourceVersion) < this.#forgotten) {
      if (this.goneAs === "thrown") throw new KubeApiError(EXPIRED, "watch");
      yield { type: "ERROR", status: EXPIRED };
      return;
    }
    const watch: OpenWatch = { labelSelector: options.labelSelector, queue: [], wake: () => undefined, isSilent: false };
    for (const logged of this.#log) if (logged.revision > Number(options.resourceVersion)) this.#offer(watch, logged);
    this.#watches.add(watch);
    const abort = (): void => watch.wake();
    signal.addEventListener("abort", abort, { once: true });
    try {
      yield* this.#lines(watch, signal);
    } finally {
      this.#watches.delete(watch);
      signal.removeEventListener("abort", abort);
    }
  }

  async *#lines(watch: OpenWatch, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    while (!signal.aborted) {
      const next = watch.queue.shift();
      if (next === undefined) {
        const { promise, resolve } = Promise.withResolvers<void>();
        watch.wake = resolve;
        await promise;
        continue;
      }
      if (next.type === "END") return;
      if (next.type === "BREAK") throw new RelevoError("connection_broken", "reset", { class: "retryable" });
      yield next;
      if (next.type === "ERROR") return;
    }
  }

  #publish(logged: Logged): void {
    this.#log.push(logged);
    for (const watch of this.#watches) this.#offer(watch, logged);
  }

  #offer(watch: OpenWatch, { before, after, last }: Logged): void {
    const was = before !== undefined && matches(before, watch.labelSelector);
    const is = after !== undefined && matches(after, watch.labelSelector);
    if (is) this.#send(watch, { type: was ? "MODIFIED" : "ADDED", object: after });
    else if (was)
      this.#send(watch, {
        type: "DELETED",
        object: { ...before, metadata: { ...before.metadata, resourceVersion: last.metadata.resourceVersion } },
      });
  }

  #each(line: OpenWatch["queue"][number]): void {
    for (const watch of this.#watches) this.#send(watch, line);
  }

  #send(watch: OpenWatch, line: OpenWatch["queue"][number]): void {
    if (watch.isSilent) return;
    watch.queue.push(line);
    watch.wake();
  }
}

/** `name/uid/version`: enough to tell two states of a copy apart. */
export function summary({ metadata }: Pick<KubeObject, "metadata">): string {
  return `${metadata.name}/${metadata.uid}/${metadata.resourceVersion}`;
}

function matches(object: KubeObject, selector: string | undefined): boolean {
  return selector === undefined || selector === `side=${object.metadata.labels?.["side"]}`;
}
