/** Looks at the exchange again and again while queries run, and keeps what was the most (T13). */
import { describeError } from "../../kernel/errors.ts";
import { within } from "./bounded.ts";
import type { GateContext } from "./context.ts";
import type { ExchangeEntry } from "./ports.ts";
import type { ExchangeRecord } from "./record.ts";

const LIST_MS = 15_000;
const SAMPLE = 5;

export class ExchangeWatch {
  readonly #context: Pick<GateContext, "listing" | "clock" | "at">;
  #listings = 0;
  #fullest: readonly ExchangeEntry[] = [];
  #firstAt: number | null = null;
  #error: string | null = null;
  #left: number | null = null;

  constructor(context: Pick<GateContext, "listing" | "clock" | "at">) {
    this.#context = context;
  }

  get hasSeen(): boolean {
    return this.#firstAt !== null;
  }

  async list(queryIds: readonly string[]): Promise<void> {
    const entries = await this.#read(queryIds);
    if (entries === undefined) return;
    this.#listings++;
    if (entries.length > 0) this.#firstAt ??= this.#context.at();
    if (entries.length > this.#fullest.length) this.#fullest = entries;
  }

  /** What remains once the queries have ended: the engine clears up by itself. */
  async listLeft(queryIds: readonly string[]): Promise<void> {
    this.#left = (await this.#read(queryIds))?.length ?? null;
  }

  record(): ExchangeRecord {
    return {
      location: this.#context.listing.location,
      listings: this.#listings,
      entries: this.#fullest.length,
      bytes: this.#fullest.reduce((sum, { bytes }) => sum + bytes, 0),
      firstAt: this.#firstAt,
      sample: this.#fullest.slice(0, SAMPLE).map(({ path }) => path),
      error: this.#error,
      left: this.#left,
    };
  }

  async #read(queryIds: readonly string[]): Promise<readonly ExchangeEntry[] | undefined> {
    const { listing, clock } = this.#context;
    try {
      const lists = queryIds.map((queryId) => within(clock, LIST_MS, `A listing of ${listing.location}`, listing.list(queryId)));
      return (await Promise.all(lists)).flat();
    } catch (error) {
      this.#error = describeError(error);
      return undefined;
    }
  }
}
