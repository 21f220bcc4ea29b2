/** In whose transaction a query runs, as far as this replica saw it begin: the page that ends a transaction does not say which. Bounded; the oldest is forgotten. */
import { LIMITS } from "../limits.ts";

export class TransactionsOfQueries {
  readonly #known = new Map<string, string>();

  remember(queryId: string, transaction: string): void {
    this.#known.set(queryId, transaction);
    if (this.#known.size <= LIMITS.trinoTransactions) return;
    const oldest = this.#known.keys().next().value;
    if (oldest !== undefined) this.#known.delete(oldest);
  }

  of(queryId: string): string | undefined {
    return this.#known.get(queryId);
  }

  forget(queryId: string): void {
    this.#known.delete(queryId);
  }
}
