/**
 * A client of Trino's statement protocol: POST /v1/statement, then GET `nextUri` until there is none.
 *
 * 1. What the server asks to be tried again is (502, 503, 504; SERVER_STARTING_UP), for a bounded time. A lost answer to a GET too: the server gives the same
 *    page again. A lost answer to the POST is an error, for the statement may run.
 * 2. Whoever does not want a statement any more has it cancelled at the server (DELETE), also when a bound of ours ended it.
 * 3. A query that failed is a result with an `error`; only what kept it from being answered is thrown.
 *
 * Errors besides those of drivers/port.ts: `trino_query_gone` (terminal: the server knows no such query; a coordinator that was started anew does not),
 * `trino_query_timeout` (retryable), `trino_result_too_large` (terminal), `cancelled`.
 */
import type { Clock } from "../../kernel/clock.ts";
import { isRetryable, RelevoError } from "../../kernel/errors.ts";
import { type Column, parseResults, type QueryError, type Results } from "./answers.ts";
import { type HttpAnswer, type HttpCall, refusalOf, TrinoHttp } from "./http.ts";
import { TrinoSession } from "./session.ts";

/** For one request; the server itself holds an answer back for a second or so. */
const REQUEST_LIMIT_MS = 30_000;
const CANCEL_LIMIT_MS = 5_000;
const RETRY_FOR_MS = 10_000;
/** The protocol demands 50 to 100 ms. */
const RETRY_AFTER_MS = [50, 75, 100] as const;
const STARTING_FOR_MS = 120_000;
const STARTING_AGAIN_MS = 500;
const QUERY_LIMIT_MS = 30 * 60_000;
/** The server aims at 16 MB at most. */
const PAGE_BYTES_MAX = 64 * 1024 * 1024;
const ROWS_MAX = 1_000_000;

export interface StatementClientOptions {
  /** `http://host:port`. */
  readonly base: string;
  readonly user: string;
  readonly clock: Clock;
  /** As which program it asks. */
  readonly source?: string | undefined;
  /** Session properties. */
  readonly session?: Readonly<Record<string, string>>;
  readonly catalog?: string;
  readonly schema?: string;
  /** More headers of each request: a routing group, credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Connections that are shared; otherwise `close` ends its own. */
  readonly http?: TrinoHttp;
  readonly limits?: Partial<StatementLimits>;
}

export interface StatementLimits {
  readonly requestMs: number;
  /** Of all that belongs to one `query`. */
  readonly queryMs: number;
  /** How long what the server asks to be tried again is tried. */
  readonly retryForMs: number;
  /** How long a server that starts is waited for. */
  readonly startingForMs: number;
  readonly pageBytes: number;
  readonly rows: number;
}

const LIMITS: StatementLimits = {
  requestMs: REQUEST_LIMIT_MS,
  queryMs: QUERY_LIMIT_MS,
  retryForMs: RETRY_FOR_MS,
  startingForMs: STARTING_FOR_MS,
  pageBytes: PAGE_BYTES_MAX,
  rows: ROWS_MAX,
};

export interface QueryResult {
  readonly queryId: string;
  readonly columns: readonly Column[];
  /** An integer that a number does not hold exactly is a bigint. */
  readonly rows: readonly unknown[][];
  /** `FINISHED`, `FAILED`, …: of the last answer, which is not authoritative; `error` is. */
  readonly state: string;
  readonly error?: QueryError;
  readonly startedTransactionId?: string;
  readonly infoUri: string;
}

/** One answer. */
export interface Page {
  readonly queryId: string;
  readonly columns: readonly Column[] | undefined;
  readonly rows: readonly unknown[][];
  readonly state: string;
  readonly error: QueryError | undefined;
  readonly infoUri: string;
  /** Where the next one is; undefined: this was the last. */
  readonly nextUri: string | undefined;
  readonly startedTransactionId: string | undefined;
}

export class StatementClient {
  readonly session: TrinoSession;
  readonly #options: StatementClientOptions;
  readonly #limits: StatementLimits;
  readonly #http: TrinoHttp;

  constructor(options: StatementClientOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#http = options.http ?? new TrinoHttp(options.clock);
    this.session = new TrinoSession(options.session ?? {}, options);
  }

  /** Runs it to its end. */
  async query(sql: string, signal?: AbortSignal): Promise<QueryResult> {
    const rows: unknown[][] = [];
    let columns: readonly Column[] = [];
    let startedTransactionId: string | undefined;
    const { clock } = this.#options;
    const until = clock.monotonic() + this.#limits.queryMs;
    const statement = await this.start(sql, signal);
    for (;;) {
      const page = await statement.next();
      if (page === undefined) throw new Error("a statement ended without a last page");
      columns = page.columns ?? columns;
      startedTransactionId = page.startedTransactionId ?? startedTransactionId;
      for (const row of page.rows) rows.push(row);
      if (page.nextUri === undefined || page.error !== undefined) return resultOf(page, { columns, rows, startedTransactionId });
      if (rows.length > this.#limits.rows) await giveUp(statement, tooLarge(page.queryId, this.#limits.rows));
      if (clock.monotonic() > until) await giveUp(statement, tooLate(page.queryId, this.#limits.queryMs));
    }
  }

  /** Sends it; its pages are fetched one by one, at the caller's pace. A signal that aborts has it cancelled. */
  async start(sql: string, signal?: AbortSignal): Promise<Statement> {
    const statement = new Statement(sql, { ...this.#options, http: this.#http, limits: this.#limits, session: this.session, signal });
    await statement.send();
    return statement;
  }

  /** Ends the connections, where they are its own. */
  async close(): Promise<void> {
    if (this.#options.http === undefined) await this.#http.destroy();
  }
}

interface StatementContext {
  readonly base: string;
  readonly user: string;
  readonly source?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly http: TrinoHttp;
  readonly limits: StatementLimits;
  readonly session: TrinoSession;
  readonly signal: AbortSignal | undefined;
}

/** One that was sent. */
export class Statement {
  readonly #sql: string;
  readonly #context: StatementContext;
  #page: Page | undefined;
  /** The page above was not fetched yet. */
  #isFresh = false;
  #startingUntil: number | undefined;
  #nextUri: string | undefined;

  constructor(sql: string, context: StatementContext) {
    this.#sql = sql;
    this.#context = context;
  }

  /** Of a server that was still starting it may be another one later. */
  get queryId(): string {
    return this.#page?.queryId ?? "";
  }

  /** Where its next page is; undefined once there is none. */
  get nextUri(): string | undefined {
    return this.#nextUri;
  }

  async send(): Promise<void> {
    const { base, session } = this.#context;
    await this.#fetch(`${base}/v1/statement`, { method: "POST", body: this.#sql, headers: { ...this.#headers(), ...session.headers() } });
    this.#isFresh = true;
  }

  /** Undefined after the last one. */
  async next(): Promise<Page | undefined> {
    if (!this.#isFresh) {
      if (this.#nextUri === undefined) return undefined;
      await this.#fetch(this.#nextUri, { method: "GET", headers: this.#headers() });
    }
    this.#isFresh = false;
    while (this.#page?.error?.name === "SERVER_STARTING_UP" && this.#mayWaitForStart()) {
      await this.#pause(STARTING_AGAIN_MS);
      await this.send();
      this.#isFresh = false;
    }
    return this.#page;
  }

  /** Has the server forget it. A query that ended, or that the server does not know, is cancelled. */
  async cancel(): Promise<void> {
    const uri = this.#nextUri;
    this.#nextUri = undefined;
    this.#isFresh = false;
    if (uri === undefined) return;
    const answer = await this.#context.http.send(uri, {
      method: "DELETE",
      headers: this.#headers(),
      limitMs: CANCEL_LIMIT_MS,
      bytesMax: this.#context.limits.pageBytes,
    });
    if (answer.status >= 300 && !isGone(answer)) throw refusalOf(answer, hostOf(uri));
  }

  #mayWaitForStart(): boolean {
    const { clock, limits } = this.#context;
    this.#startingUntil ??= clock.monotonic() + limits.startingForMs;
    return clock.monotonic() < this.#startingUntil;
  }

  #headers(): Record<string, string> {
    const { user, source, headers } = this.#context;
    return { "x-trino-user": user, ...(source === undefined ? {} : { "x-trino-source": source }), "user-agent": "relevo", ...headers };
  }

  async #fetch(url: string, call: Pick<HttpCall, "method" | "body" | "headers">): Promise<void> {
    const answer = await this.#sendPatiently(url, call);
    if (answer.status !== 200) throw isGone(answer) && call.method === "GET" ? gone(this.queryId, url) : refusalOf(answer, hostOf(url));
    this.#take(answer, hostOf(url));
  }

  #take(answer: HttpAnswer, where: string): void {
    const results: Results = parseResults(answer.text, where);
    const startedTransactionId = this.#context.session.take(answer);
    this.#nextUri = results.nextUri;
    this.#page = { ...results, startedTransactionId };
  }

  async #sendPatiently(url: string, call: Pick<HttpCall, "method" | "body" | "headers">): Promise<HttpAnswer> {
    const { clock, http, limits, signal } = this.#context;
    const until = clock.monotonic() + limits.retryForMs;
    for (let attempt = 0; ; attempt++) {
      const isLate = clock.monotonic() >= until;
      try {
        const answer = await http.send(url, { ...call, limitMs: limits.requestMs, bytesMax: limits.pageBytes, signal });
        if (isLate || !isPassing(answer)) return answer;
      } catch (error) {
        if (signal?.aborted) await this.#abandon(error);
        if (isLate || call.method === "POST" || !isRetryable(error)) throw error;
      }
      await this.#pause(RETRY_AFTER_MS[Math.min(attempt, RETRY_AFTER_MS.length - 1)] ?? 100);
    }
  }

  async #pause(delayMs: number): Promise<void> {
    const { clock, signal } = this.#context;
    try {
      await clock.sleep(delayMs, signal);
    } catch {
      await this.#abandon(
        new RelevoError("cancelled", "Nobody waits for this query any more.", { class: "cancelled", found: this.queryId }),
      );
    }
  }

  async #abandon(error: unknown): Promise<never> {
    return giveUp(this, error);
  }
}

/** Has it cancelled, and tells in any case why. */
async function giveUp(statement: Statement, error: unknown): Promise<never> {
  try {
    await statement.cancel();
  } catch (cause) {
    // The engine ends an abandoned query by its own time-out; why it was abandoned matters more.
    if (error instanceof RelevoError && error.cause === undefined) error.cause = cause;
  }
  throw error;
}

function resultOf(
  last: Page,
  all: Pick<QueryResult, "columns" | "rows"> & { readonly startedTransactionId: string | undefined },
): QueryResult {
  const { queryId, state, error, infoUri } = last;
  return {
    queryId,
    columns: all.columns,
    rows: all.rows,
    state,
    infoUri,
    ...(error === undefined ? {} : { error }),
    ...(all.startedTransactionId === undefined ? {} : { startedTransactionId: all.startedTransactionId }),
  };
}

function isPassing({ status }: HttpAnswer): boolean {
  return status >= 502 && status <= 504;
}

function isGone({ status }: HttpAnswer): boolean {
  return status === 404 || status === 410;
}

function gone(queryId: string, url: string): RelevoError {
  return new RelevoError("trino_query_gone", "The server does not know this query any more.", {
    found: `${queryId} at ${hostOf(url)}`,
    todo: "Send it again: its coordinator was started anew, or nobody polled it for longer than the server waits.",
  });
}

function tooLarge(queryId: string, rows: number): RelevoError {
  return new RelevoError("trino_result_too_large", "The result has more rows than are taken here.", {
    found: queryId,
    allowed: `${rows} rows`,
  });
}

function tooLate(queryId: string, limitMs: number): RelevoError {
  return new RelevoError("trino_query_timeout", `The query did not end within ${limitMs} ms.`, { class: "retryable", found: queryId });
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
