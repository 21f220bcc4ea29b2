/** A watch: one JSON object a line, until the time is up, the client goes, or the client falls too far behind. */
import type { ServerResponse } from "node:http";
import type { Timer } from "../../kernel/clock.ts";
import type { KubeObject, WatchEvent } from "../../kube/api.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import type { KindSpec } from "../kinds.ts";
import { invalid } from "../store/api-errors.ts";
import { statusBody } from "./answer.ts";
import { type ApiContext, type Exchange, isTrue, textOf, wholeNumber } from "./context.ts";
import { includeOf } from "./reads.ts";
import { isTableWanted, tableOf } from "./table.ts";

/** A consumer with more than this unread is cut off: it begins anew from its last event, and nothing grows without end. */
const UNREAD_BYTES_MAX = 8 * 2 ** 20;
/** So many events may happen while what was there is still being sent. */
const BEHIND_MAX = 10_000;
const BOOKMARK_EVERY_MS = 60_000;
/** As a real server: somewhere between 30 and 60 minutes when the client does not say. */
const TIMEOUT_DEFAULT_S = 2_400;
const INITIAL_END = "k8s.io/initial-events-end";

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

export function streamWatch(context: ApiContext, exchange: Exchange, kind: KindSpec, namespace: string | undefined): void {
  new WatchStream(context, exchange, kind).open(namespace);
}

class WatchStream {
  readonly #context: ApiContext;
  readonly #exchange: Exchange;
  readonly #kind: KindSpec;
  readonly #wantsTable: boolean;
  readonly #wantsBookmarks: boolean;
  readonly #timers: Timer[] = [];
  #isFirst = true;
  #isEnding = false;
  #close: (() => void) | undefined;

  constructor(context: ApiContext, exchange: Exchange, kind: KindSpec) {
    this.#context = context;
    this.#exchange = exchange;
    this.#kind = kind;
    this.#wantsTable = isTableWanted(exchange.request.headers.accept);
    this.#wantsBookmarks = isTrue(exchange.query, "allowWatchBookmarks");
  }

  open(namespace: string | undefined): void {
    const { query, response } = this.#exchange;
    const wantsInitial = isTrue(query, "sendInitialEvents");
    if (wantsInitial && query.get("resourceVersionMatch") !== "NotOlderThan") {
      const message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
      throw invalid({ group: "meta.k8s.io", plural: "listoptions", kind: "ListOptions" }, "", [
        { field: "resourceVersionMatch", message, reason: "FieldValueForbidden" },
      ]);
    }
    const pending: WatchEvent[] = [];
    let deliver = (event: WatchEvent): void => void pending.push(event);
    const watch = this.#context.store.watch(
      this.#kind,
      {
        namespace,
        labelSelector: textOf(query, "labelSelector"),
        fieldSelector: textOf(query, "fieldSelector"),
        resourceVersion: wantsInitial ? "" : (query.get("resourceVersion") ?? ""),
      },
      (event) => deliver(event),
    );
    this.#close = () => watch.close();
    // The store has accepted it: only now is there a 200 to send.
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    response.on("close", () => this.#end());
    void this.#catchUp(pending, () => {
      deliver = (event) => this.#send(event);
      if (wantsInitial && this.#wantsBookmarks) this.#bookmark({ [INITIAL_END]: "true" });
    });
    this.#schedule(wholeNumber(query, "timeoutSeconds") ?? TIMEOUT_DEFAULT_S);
  }

  /** What is there when a watch begins may be more than anybody may leave unread: it goes out as fast as it is read. */
  async #catchUp(pending: readonly WatchEvent[], done: () => void): Promise<void> {
    const { response } = this.#exchange;
    const pendingMax = pending.length + BEHIND_MAX;
    for (let next = 0; next < pending.length && !this.#isEnding; next++) {
      const event = pending[next];
      if (event) this.#send(event);
      if (pending.length > pendingMax) return this.#cutOff();
      if (response.writableNeedDrain && !response.destroyed) await drained(response);
    }
    if (!this.#isEnding) done();
  }

  #schedule(timeoutS: number): void {
    const { clock, closing } = this.#context;
    this.#timers.push(
      clock.after(Math.max(1, timeoutS) * 1_000, () => {
        this.#bookmark();
        this.#end();
      }),
    );
    const repeat = (): void => {
      this.#bookmark();
      this.#timers[1] = clock.after(BOOKMARK_EVERY_MS, repeat);
    };
    this.#timers.push(clock.after(BOOKMARK_EVERY_MS, repeat));
    const stop = (): void => this.#end();
    closing.addEventListener("abort", stop, { once: true });
    this.#timers.push({ cancel: () => closing.removeEventListener("abort", stop) });
    if (this.#isEnding) this.#cancelTimers();
  }

  #send(event: WatchEvent): void {
    switch (event.type) {
      case "BOOKMARK":
        return this.#bookmark();
      case "ERROR":
        this.#write(JSON.stringify({ type: "ERROR", object: statusBody(event.status) }));
        return this.#end();
      default:
        return this.#write(`{"type":"${event.type}","object":${this.#body(event.object)}}`);
    }
  }

  #body(object: KubeObject): string {
    if (!this.#wantsTable) return this.#context.texts.of(object);
    const table = tableOf(
      this.#kind,
      [object],
      { resourceVersion: object.metadata.resourceVersion },
      { now: this.#context.clock.now(), include: includeOf(this.#exchange), withColumns: this.#isFirst },
    );
    this.#isFirst = false;
    return JSON.stringify(table);
  }

  #bookmark(annotations?: Readonly<Record<string, string>>): void {
    if (!this.#wantsBookmarks) return;
    const metadata = {
      resourceVersion: String(this.#context.store.revision),
      creationTimestamp: null,
      ...(annotations === undefined ? {} : { annotations }),
    };
    this.#write(JSON.stringify({ type: "BOOKMARK", object: { kind: this.#kind.kind, apiVersion: apiVersionOf(this.#kind), metadata } }));
  }

  #write(line: string): void {
    const { response } = this.#exchange;
    if (this.#isEnding) return;
    response.write(`${line}\n`);
    if (response.writableLength > UNREAD_BYTES_MAX) this.#cutOff();
  }

  #cutOff(): void {
    this.#end();
    this.#exchange.response.destroy();
  }

  #end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#close?.();
    this.#cancelTimers();
    this.#exchange.response.end();
  }

  #cancelTimers(): void {
    for (const timer of this.#timers) timer.cancel();
  }
}
