/** A query under way: its pages are fetched until it ends, so that it runs on, and what became of it is kept. */
import { describeError } from "../../kernel/errors.ts";
import type { GateEngine, Row, RunningStatement } from "./ports.ts";
import type { Outcome } from "./record.ts";
import { differenceOf, MOST_ROWS } from "./rows.ts";
import type { Session } from "./variables.ts";

export interface Asked {
  readonly name: string;
  readonly sql: string;
  /** Null: whatever it gives is right. */
  readonly expected: readonly Row[] | null;
}

export class Followed {
  readonly asked: Asked;
  readonly queryId: string;
  readonly startedAt: number;
  /** The rows so far; those of a query that finished are all. */
  readonly rows: Row[] = [];
  readonly #statement: RunningStatement;
  readonly #at: () => number;
  #outcome: Outcome | undefined;

  private constructor(asked: Asked, statement: RunningStatement, at: () => number, startedAt: number) {
    this.asked = asked;
    this.queryId = statement.queryId;
    this.startedAt = startedAt;
    this.#statement = statement;
    this.#at = at;
  }

  static async start(engine: GateEngine, asked: Asked, session: Session, at: () => number): Promise<Followed> {
    const startedAt = at();
    const followed = new Followed(asked, await engine.start(asked.sql, session), at, startedAt);
    void followed.#follow();
    return followed;
  }

  /** Undefined while it runs. */
  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** Ends it, if it has not ended, with what was seen of it last. */
  async giveUp(state: string, tasks: string): Promise<void> {
    if (this.#outcome !== undefined) return;
    this.#outcome = { kind: "hung", at: this.#at(), state, tasks };
    await this.#cancel();
  }

  async #follow(): Promise<void> {
    try {
      for (let page = await this.#statement.next(); page !== undefined; page = await this.#statement.next()) {
        if (page.error !== null) return this.#end({ kind: "failed", at: this.#at(), error: page.error });
        this.rows.push(...page.rows);
        if (this.rows.length > MOST_ROWS) {
          await this.#cancel();
          return this.#end(this.#finished(`more than ${MOST_ROWS} rows: ask for an aggregate`));
        }
      }
      this.#end(this.#finished(this.asked.expected === null ? null : differenceOf(this.asked.expected, this.rows)));
    } catch (error) {
      this.#end({ kind: "lost", at: this.#at(), message: describeError(error) });
    }
  }

  #finished(difference: string | null): Outcome {
    return { kind: "finished", at: this.#at(), rows: this.rows.length, difference };
  }

  #end(outcome: Outcome): void {
    this.#outcome ??= outcome;
  }

  /** The engine ends a query that nobody polls by itself: a cancellation that is lost costs time, nothing else. */
  async #cancel(): Promise<void> {
    await this.#statement.cancel().catch(() => undefined);
  }
}
