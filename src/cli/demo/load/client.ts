/**
 * The demo's load: an open loop of what hurts, and the only witness of what became of it.
 *
 * 1. A request belongs to the act in which it began; the load goes on between acts, and an act ends when the last of its requests has.
 * 2. Its counts come from its own records and from asking the ledger for every acknowledged id; nothing is taken from Relevo but the two headers that say
 *    `queued` and `retried`.
 * 3. Nothing hangs: every exchange has a limit, and what reaches it is lost.
 */
import type { Clock } from "../../../kernel/clock.ts";
import { RelevoError } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Random } from "../../../kernel/random.ts";
import { Http1Transport } from "./http1-transport.ts";
import { Http2Transport } from "./http2-transport.ts";
import { LedgerReader } from "./ledger-reader.ts";
import { Arrivals, DEFAULT_MIX, type Mix } from "./mix.ts";
import { type Ending, type Outcome, type ReplyHeaders, type RequestKind, type RequestRecord, wasQueued, wasRetried } from "./outcome.ts";
import { type Notes, sendCharge, sendExport, sendOrder, sendTransaction } from "./requests.ts";
import { runSession } from "./session.ts";
import { type ActResult, tallyAct } from "./tally.ts";
import type { Transport } from "./transport.ts";

export const MAX_IN_FLIGHT = 10_000;
export const MAX_RECORDS_PER_ACT = 500_000;

export interface LoadOptions {
  /** Of the gateway (or of an instance): `http://127.0.0.1:PORT`. */
  readonly url: string;
  /** For HTTP/2 with prior knowledge; null: HTTP/1.1 alone. */
  readonly http2Url: string | null;
  /** The Host header, when it differs from the address. */
  readonly host?: string | undefined;
  readonly ledgerUrl: string;
  readonly mix?: Mix;
}

export interface LoadSnapshot {
  readonly act: string | null;
  readonly inFlight: number;
  /** Of the running act, so far: those that ended are in one of the outcomes. */
  readonly sent: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Arrivals that were not sent because too many were in flight; 0 in a run that is worth anything. */
  readonly skipped: number;
}

/** A record without what only the client needs. */
export type RequestTrace = Omit<RequestRecord, "acknowledged">;

interface Act {
  readonly name: string;
  sent: number;
  readonly records: RequestRecord[];
  readonly running: Set<Promise<void>>;
}

export class LoadClient {
  readonly #options: LoadOptions;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #run: string;
  readonly #http1: Transport;
  readonly #http2: Transport | null;
  readonly #ledger: LedgerReader;
  readonly #arrivals: Arrivals;
  #mix: Mix;
  #act: Act;
  #named = false;
  #count = 0;
  #inFlight = 0;
  #skipped = 0;

  constructor(options: LoadOptions, ports: { readonly clock: Clock; readonly random: Random; readonly ids: Ids }) {
    this.#options = options;
    this.#clock = ports.clock;
    this.#random = ports.random;
    this.#run = ports.ids.next("load");
    this.#mix = options.mix ?? DEFAULT_MIX;
    this.#http1 = new Http1Transport({ origin: options.url, host: options.host, clock: ports.clock });
    this.#http2 =
      options.http2Url === null ? null : new Http2Transport({ origin: options.http2Url, host: options.host, clock: ports.clock });
    this.#ledger = new LedgerReader(options.ledgerUrl, ports.clock);
    this.#act = newAct("");
    this.#arrivals = new Arrivals({ clock: ports.clock, random: ports.random, mix: () => this.#mix, start: (kind) => this.begin(kind) });
  }

  start(): void {
    this.#arrivals.start();
  }

  /** Requests that begin from here on belong to the act; `mix` holds until the next act. Errors: `act_running`. */
  startAct(name: string, mix?: Mix): void {
    if (this.#named) throw new RelevoError("act_running", "An act is running already.", { class: "conflict", found: this.#act.name });
    this.#act = newAct(name);
    this.#named = true;
    this.#mix = mix ?? this.#options.mix ?? DEFAULT_MIX;
  }

  /** Closes the act's window, waits for its requests, asks the ledger. Errors: `no_act`, `ledger_unreachable`. */
  async endAct(name: string): Promise<{ readonly result: ActResult; readonly traces: readonly RequestTrace[] }> {
    if (!this.#named || this.#act.name !== name) throw new RelevoError("no_act", `The act ${name} is not running.`, { class: "conflict" });
    const act = this.#act;
    this.#named = false;
    this.#act = newAct("");
    await Promise.all(act.running);
    const missing = await this.#ledger.findMissing(act.records.flatMap((record) => record.acknowledged));
    const result = tallyAct(act.records, missing, await this.#ledger.doubledIds());
    return { result, traces: act.records.map(({ acknowledged: _, ...trace }) => trace) };
  }

  snapshot(): LoadSnapshot {
    const outcomes: Record<Outcome, number> = { completed: 0, rejected: 0, cut: 0, lost: 0 };
    for (const record of this.#act.records) outcomes[record.outcome]++;
    return { act: this.#named ? this.#act.name : null, inFlight: this.#inFlight, sent: this.#act.sent, outcomes, skipped: this.#skipped };
  }

  /** Starts no more requests and waits for those that run. */
  async stop(): Promise<void> {
    this.#arrivals.stop();
    await Promise.all(this.#act.running);
    this.#http1.close();
    this.#http2?.close();
    this.#ledger.close();
  }

  /** Starts one request now, whatever the plan says. */
  begin(kind: RequestKind): void {
    if (this.#inFlight >= MAX_IN_FLIGHT || this.#act.records.length >= MAX_RECORDS_PER_ACT) {
      this.#skipped++;
      return;
    }
    const act = this.#act;
    act.sent++;
    this.#inFlight++;
    const running: Promise<void> = this.#record(kind, act).finally(() => {
      this.#inFlight--;
      act.running.delete(running);
    });
    act.running.add(running);
  }

  async #record(kind: RequestKind, act: Act): Promise<void> {
    const id = `${this.#run}-${this.#count++}`;
    const acknowledged: string[] = [];
    let queued = false;
    let retried = false;
    const notes: Notes = {
      seen: (headers: ReplyHeaders) => {
        queued ||= wasQueued(headers);
        retried ||= wasRetried(headers);
      },
      acknowledged: (one) => acknowledged.push(one),
    };
    const startedAt = this.#clock.now();
    const start = this.#clock.monotonic();
    const ending = await this.#send(kind, id, notes);
    const durationMs = this.#clock.monotonic() - start;
    // Between acts there is nobody to tell.
    if (act.name !== "") act.records.push({ id, kind, startedAt, durationMs, queued, retried, acknowledged, ...ending });
  }

  async #send(kind: RequestKind, id: string, notes: Notes): Promise<Ending> {
    const transport = this.#chooseTransport();
    const { stepMs, exportSeconds, liveSeconds, txSeconds } = this.#mix;
    switch (kind) {
      case "order":
        return sendOrder(transport, id, notes);
      case "charge":
        return sendCharge(transport, id, notes);
      case "export":
        return sendExport(transport, id, this.#between(exportSeconds), notes);
      case "tx":
        return sendTransaction(transport, id, { lastsMs: this.#between(txSeconds) * 1000, stepMs, clock: this.#clock }, notes);
      case "live": {
        const url = `${this.#options.url.replace(/^http/, "ws")}/live`;
        return runSession({
          url,
          host: this.#options.host,
          id,
          lastsMs: this.#between(liveSeconds) * 1000,
          stepMs,
          clock: this.#clock,
          ...notes,
        });
      }
      default:
        return kind satisfies never;
    }
  }

  #chooseTransport(): Transport {
    return this.#http2 !== null && this.#random.next() < this.#mix.http2Share ? this.#http2 : this.#http1;
  }

  #between([low, high]: readonly [number, number]): number {
    return low + this.#random.next() * (high - low);
  }
}

function newAct(name: string): Act {
  return { name, sent: 0, records: [], running: new Set() };
}
