/** Clients that speak the statement protocol through the gateway, and know what each answer must be before they ask. */
import type { Clock } from "../../../kernel/clock.ts";
import { describeError, RelevoError } from "../../../kernel/errors.ts";
import { integerBetween, type Random } from "../../../kernel/random.ts";
import { TrinoHttp } from "../../../drivers/trino/http.ts";
import { type QueryResult, type Statement, StatementClient } from "../../../drivers/trino/statement-client.ts";
import type { RetryPolicy } from "../../../model/trino.ts";

/** As patient as Trino's own clients are with what asks them to come again. */
const PATIENCE_MS = 120_000;
const FAILURES_KEPT = 50;
const BETWEEN_MS = [400, 1_200] as const;
/** Well within `query.client.timeout`. */
const SLOW_PAGE_MS = 15_000;

export const ACT_NAMES = ["voluntary", "deadline", "withoutFte", "worker", "coordinator"] as const;
export type ActName = (typeof ACT_NAMES)[number];

export interface Counts {
  sent: number;
  right: number;
  wrong: number;
  failed: number;
}

export interface Transactions {
  opened: number;
  committed: number;
  failed: number;
}

export interface Failure {
  readonly act: ActName;
  readonly sql: string;
  readonly why: string;
}

/** A statement and the rows that it must give; null: it gives none that matter. */
export interface Checked {
  readonly sql: string;
  readonly rows: readonly (readonly unknown[])[] | null;
}

export type Ended =
  | { readonly how: "right" | "wrong"; readonly queryId: string }
  /** The engine or the gateway said so in a page of the protocol. */
  | { readonly how: "explicit"; readonly queryId: string; readonly name: string; readonly message: string }
  /** Anything else that the client got instead of an answer. */
  | { readonly how: "thrown"; readonly why: string };

export interface ClientsOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
}

export class TrinoClients {
  readonly transactions: Transactions = { opened: 0, committed: 0, failed: 0 };
  readonly failures: Failure[] = [];
  readonly #options: ClientsOptions;
  readonly #http: TrinoHttp;
  readonly #counts = new Map<ActName, Counts>();

  constructor(options: ClientsOptions) {
    this.#options = options;
    this.#http = new TrinoHttp(options.clock);
  }

  async close(): Promise<void> {
    await this.#http.destroy();
  }

  countsOf(act: ActName): Counts {
    const known = this.#counts.get(act) ?? { sent: 0, right: 0, wrong: 0, failed: 0 };
    this.#counts.set(act, known);
    return known;
  }

  total(): Counts {
    const sum = { sent: 0, right: 0, wrong: 0, failed: 0 };
    for (const { sent, right, wrong, failed } of this.#counts.values()) {
      sum.sent += sent;
      sum.right += right;
      sum.wrong += wrong;
      sum.failed += failed;
    }
    return sum;
  }

  /** With a session of its own: what one prepares or begins is not another's. */
  client(retryPolicy: RetryPolicy = "NONE"): StatementClient {
    return new StatementClient({
      base: this.#options.url,
      user: "demo",
      source: "relevo-demo",
      clock: this.#options.clock,
      http: this.#http,
      session: { retry_policy: retryPolicy },
      limits: { retryForMs: PATIENCE_MS },
    });
  }

  /** Runs it to its end and counts it; never throws but when the demo ends. */
  async check(act: ActName, client: StatementClient, checked: Checked): Promise<Ended> {
    return this.#counted(act, checked, () => client.query(checked.sql, this.#options.signal));
  }

  /** As a client that reads a page now and then, until `released` is settled; then the rest at once. */
  async readSlowly(act: ActName, client: StatementClient, checked: Checked, released: Promise<unknown>): Promise<Ended> {
    const { clock, signal } = this.#options;
    let isReleased = false;
    const release = released.then(() => (isReleased = true));
    return this.#counted(act, checked, async () => {
      const statement: Statement = await client.start(checked.sql, signal);
      // The rows are too many to keep: their number and sum are what is checked.
      let [count, sum] = [0, 0n];
      for (;;) {
        const page = await statement.next();
        if (page === undefined) throw new Error("a statement ended without a last page");
        for (const [value] of page.rows) {
          count += 1;
          sum += BigInt(String(value));
        }
        const { queryId, state, error, infoUri } = page;
        if (page.nextUri === undefined || error !== undefined)
          return { queryId, state, infoUri, columns: [], rows: [[count, String(sum)]], ...(error === undefined ? {} : { error }) };
        if (!isReleased && page.rows.length > 0) await Promise.race([clock.sleep(SLOW_PAGE_MS, signal), release]);
      }
    });
  }

  /** Opens one, asks within it, waits until `released`, asks again and commits. */
  async transact(act: ActName, released: Promise<unknown> = Promise.resolve()): Promise<boolean> {
    const client = this.client();
    this.transactions.opened += 1;
    const isRight = async (checked: Checked) => (await this.check(act, client, checked)).how === "right";
    let isDone = await isRight({ sql: "START TRANSACTION READ ONLY", rows: null });
    isDone = isDone && (await isRight(numbers(this.#between(1, 50_000))));
    if (isDone) await released;
    isDone = isDone && (await isRight({ sql: "SELECT count(*) FROM tpch.tiny.nation", rows: [[25]] }));
    isDone = isDone && (await isRight({ sql: "COMMIT", rows: null }));
    this.transactions[isDone ? "committed" : "failed"] += 1;
    // One that is left open would hold its cluster until the engine's own time-out.
    if (client.session.transactionId !== undefined) await client.query("ROLLBACK", this.#options.signal).catch(() => undefined);
    return isDone;
  }

  /** Short queries, prepared statements and transactions one after another, until the signal. */
  async keepAsking(act: ActName, over: AbortSignal): Promise<void> {
    const { clock, signal } = this.#options;
    const either = AbortSignal.any([signal, over]);
    for (let turn = this.#between(0, 3); !either.aborted; turn++) {
      await this.askOnce(act, turn);
      await clock.sleep(this.#between(...BETWEEN_MS), either).catch(() => undefined);
    }
  }

  /** Short queries over what is bound to no worker, until the signal. */
  async keepCounting(act: ActName, retryPolicy: RetryPolicy, over: AbortSignal): Promise<void> {
    const { clock, signal } = this.#options;
    const either = AbortSignal.any([signal, over]);
    while (!either.aborted) {
      await this.check(act, this.client(retryPolicy), numbers(this.#between(1_000, 200_000)));
      await clock.sleep(this.#between(...BETWEEN_MS), either).catch(() => undefined);
    }
  }

  async askOnce(act: ActName, turn: number): Promise<void> {
    switch (turn % 4) {
      case 0:
        return void (await this.check(act, this.client(), numbers(this.#between(1_000, 200_000))));
      case 1:
        return void (await this.check(act, this.client(), {
          sql: "SELECT regionkey, name FROM tpch.tiny.region ORDER BY 1",
          rows: REGIONS,
        }));
      case 2: {
        const client = this.client();
        const factor = this.#between(1, 1_000);
        await this.check(act, client, { sql: "PREPARE product FROM SELECT ? * ?, CAST(? AS varchar)", rows: null });
        return void (await this.check(act, client, { sql: `EXECUTE product USING ${factor}, 7, 'it''s'`, rows: [[factor * 7, "it's"]] }));
      }
      default:
        return void (await this.transact(act));
    }
  }

  /** What a client of another kind says: `right`, `wrong`, `failed` of a query; `opened`, `committed`, `lost` of a transaction. */
  told(act: ActName, how: string, what: string): void {
    if (how === "opened") this.transactions.opened += 1;
    else if (how === "committed") this.transactions.committed += 1;
    else if (how === "lost") this.transactions.failed += 1;
    if (how !== "right" && how !== "wrong" && how !== "failed") return;
    const counts = this.countsOf(act);
    counts.sent += 1;
    counts[how] += 1;
    if (how !== "right") this.#keep({ act, sql: what.slice(0, 200), why: how });
  }

  #keep(failure: Failure): void {
    if (this.failures.length < FAILURES_KEPT) this.failures.push(failure);
  }

  async #counted(act: ActName, checked: Checked, run: () => Promise<QueryResult>): Promise<Ended> {
    const counts = this.countsOf(act);
    counts.sent += 1;
    const ended = await this.#judged(checked, run);
    if (ended.how === "right") counts.right += 1;
    else if (ended.how === "wrong") counts.wrong += 1;
    else counts.failed += 1;
    if (ended.how !== "right") this.#keep({ act, sql: checked.sql.slice(0, 200), why: whyOf(ended) });
    return ended;
  }

  async #judged({ rows }: Checked, run: () => Promise<QueryResult>): Promise<Ended> {
    try {
      const result = await run();
      const { queryId, error } = result;
      if (error !== undefined) return { how: "explicit", queryId, name: error.name, message: error.message };
      return { how: rows === null || textOf(rows) === textOf(result.rows) ? "right" : "wrong", queryId };
    } catch (error) {
      if (this.#options.signal.aborted) throw error;
      return { how: "thrown", why: error instanceof RelevoError ? `${error.code}: ${error.found ?? ""}` : describeError(error) };
    }
  }

  #between(least: number, most: number): number {
    return integerBetween(this.#options.random, least, most);
  }
}

const REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"].map((name, index) => [index, name]);

/** The numbers up to `last`, and what they come to. */
export function numbers(last: number): Checked {
  const total = (BigInt(last) * BigInt(last + 1)) / 2n;
  return {
    sql: `SELECT count(*), CAST(sum(n) AS varchar) FROM TABLE(sequence(start => 1, stop => ${last})) AS t(n)`,
    rows: [[last, String(total)]],
  };
}

/** All of them as rows, for `readSlowly`: one row of their number and sum. */
export function allNumbers(last: number): Checked {
  return { ...numbers(last), sql: `SELECT n FROM TABLE(sequence(start => 1, stop => ${last})) AS t(n)` };
}

export function whyOf(ended: Ended): string {
  if (ended.how === "explicit") return `${ended.name}: ${ended.message.slice(0, 300)}`;
  return ended.how === "thrown" ? ended.why.slice(0, 300) : ended.how;
}

function textOf(rows: readonly (readonly unknown[])[]): string {
  return JSON.stringify(rows, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}
