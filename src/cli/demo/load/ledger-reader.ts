/** Asks the ledger what it has. */
import { z } from "zod";
import type { Clock } from "../../../kernel/clock.ts";
import { RelevoError } from "../../../kernel/errors.ts";
import { Http1Transport } from "./http1-transport.ts";

const CHECK_BATCH = 2_000;
const LIMIT_MS = 10_000;

const missingSchema = z.object({ missing: z.array(z.string()) });
const countsSchema = z.object({ doubledIds: z.array(z.string()) });

export class LedgerReader {
  readonly #transport: Http1Transport;

  constructor(url: string, clock: Clock) {
    this.#transport = new Http1Transport({ origin: url, clock });
  }

  /** Of these ids, those that the ledger does not have. Errors: `ledger_unreachable`. */
  async findMissing(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const missing = new Set<string>();
    for (let from = 0; from < ids.length; from += CHECK_BATCH) {
      const body = JSON.stringify({ ids: ids.slice(from, from + CHECK_BATCH) });
      for (const id of missingSchema.parse(await this.#send("POST", "/check", body)).missing) missing.add(id);
    }
    return missing;
  }

  /** Ids of work that was done twice and may not be. Errors: `ledger_unreachable`. */
  async doubledIds(): Promise<readonly string[]> {
    return countsSchema.parse(await this.#send("GET", "/counts", null)).doubledIds;
  }

  close(): void {
    this.#transport.close();
  }

  async #send(method: "GET" | "POST", path: string, body: string | null): Promise<unknown> {
    const reply = await this.#transport.send({ method, path, headers: {}, body, limitMs: LIMIT_MS });
    if (reply.kind === "answer" && reply.status === 200) return JSON.parse(reply.text);
    throw new RelevoError("ledger_unreachable", "The ledger did not answer: without it nothing can be counted.", {
      found: reply.kind === "answer" ? `status ${reply.status}` : reply.kind,
    });
  }
}
