/**
 * What a client of Trino keeps between its statements. The server keeps none of it: each answer says what changed, each request says all of it again.
 */
import { type HttpAnswer, headerOf, headersOf } from "./http.ts";

const REPLACED = { catalog: "x-trino-set-catalog", schema: "x-trino-set-schema", path: "x-trino-set-path" } as const;
const NO_TRANSACTION = "NONE";

export class TrinoSession {
  readonly properties: Map<string, string>;
  /** Prepared statements: their text by their name. */
  readonly prepared = new Map<string, string>();
  /** By catalog; `system` for all: `ROLE{analyst}`, as Trino writes it. */
  readonly roles = new Map<string, string>();
  transactionId: string | undefined;
  readonly #place: { catalog?: string; schema?: string; path?: string };

  constructor(
    properties: Readonly<Record<string, string>>,
    place: { readonly catalog?: string | undefined; readonly schema?: string | undefined },
  ) {
    this.properties = new Map(Object.entries(properties));
    this.#place = {
      ...(place.catalog === undefined ? {} : { catalog: place.catalog }),
      ...(place.schema === undefined ? {} : { schema: place.schema }),
    };
  }

  /** Of the request that begins a statement. */
  headers(): Record<string, string> {
    const { catalog, schema, path } = this.#place;
    return {
      // Without it the server refuses to begin a transaction; NONE: able, and in none.
      "x-trino-transaction-id": this.transactionId ?? NO_TRANSACTION,
      ...(catalog === undefined ? {} : { "x-trino-catalog": catalog }),
      ...(schema === undefined ? {} : { "x-trino-schema": schema }),
      ...(path === undefined ? {} : { "x-trino-path": path }),
      ...(this.properties.size === 0 ? {} : { "x-trino-session": pairs(this.properties) }),
      ...(this.roles.size === 0 ? {} : { "x-trino-role": pairs(this.roles) }),
      ...(this.prepared.size === 0 ? {} : { "x-trino-prepared-statement": pairs(this.prepared) }),
    };
  }

  /** Takes over what an answer changes. Gives the transaction that it began. */
  take(answer: HttpAnswer): string | undefined {
    for (const [part, name] of Object.entries(REPLACED)) {
      const value = headerOf(answer, name);
      if (value !== undefined) this.#place[part as keyof typeof REPLACED] = value;
    }
    for (const [name, value] of pairsOf(headersOf(answer, "x-trino-set-session"))) this.properties.set(name, value);
    for (const name of headersOf(answer, "x-trino-clear-session")) this.properties.delete(name);
    for (const [name, value] of pairsOf(headersOf(answer, "x-trino-set-role"))) this.roles.set(name, value);
    for (const [name, value] of pairsOf(headersOf(answer, "x-trino-added-prepare"))) this.prepared.set(name, value);
    for (const name of headersOf(answer, "x-trino-deallocated-prepare")) this.prepared.delete(decode(name));
    const started = headerOf(answer, "x-trino-started-transaction-id");
    if (headerOf(answer, "x-trino-clear-transaction-id") === "true") this.transactionId = undefined;
    if (started !== undefined) this.transactionId = started;
    return started;
  }
}

function pairs(values: ReadonlyMap<string, string>): string {
  return [...values].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join(",");
}

function pairsOf(headers: readonly string[]): [string, string][] {
  return headers
    .flatMap((header) => header.split(","))
    .map((pair) => pair.trim())
    .filter((pair) => pair.includes("="))
    .map((pair) => [decode(pair.slice(0, pair.indexOf("="))), decode(pair.slice(pair.indexOf("=") + 1))]);
}

/** As a form is encoded: a plus is a blank. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text; // not encoded: then it is meant as it stands
  }
}
