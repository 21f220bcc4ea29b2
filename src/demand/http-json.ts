/** One call for JSON for a look at demand: bounded, ended by its signal, without following anybody elsewhere; what is no success is a trouble with a code. */
import { type Dispatcher, request } from "undici";
import { type Instant, parseInstant } from "../kernel/clock.ts";
import { showable } from "../kernel/errors.ts";
import { demandError, unreachable } from "./errors.ts";

export interface JsonCall {
  readonly url: URL;
  /** For sentences: `Prometheus (connection metrics)`. */
  readonly who: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly dispatcher?: Dispatcher | undefined;
  /** Posted; a GET without. */
  readonly form?: Readonly<Record<string, string>>;
  /** Statuses that mean our credentials; by default 401 and 403. */
  readonly refusals?: readonly number[];
  /** By default 1 MiB. */
  readonly bytesMax?: number;
}

interface TextAnswer {
  readonly text: string;
  /** The server's own clock, to the second; null: it did not say. */
  readonly date: Instant | null;
}

export interface JsonAnswer {
  readonly body: unknown;
  /** The server's own clock, to the second; null: it did not say. */
  readonly date: Instant | null;
}

/** A backlog is a few hundred bytes: more is a query for something else. */
const ANSWER_BYTES_MAX = 2 ** 20;
const REFUSALS: readonly number[] = [401, 403];

/** As `fetchText`; throws `demand_type_changed` for what is no JSON. */
export async function fetchJson(call: JsonCall, signal: AbortSignal): Promise<JsonAnswer> {
  const { text, date } = await fetchText(call, signal);
  return { body: parseJson(text, call.who), date };
}

/**
 * Throws `demand_credentials_refused` for a refusal, `demand_missing` for 404, `demand_unreachable` for any other status, a broken or an endless answer. A
 * server's own words are the error's `found`.
 */
export async function fetchText(call: JsonCall, signal: AbortSignal): Promise<TextAnswer> {
  const { who, refusals = REFUSALS } = call;
  const { status, text, date } = await ask(call, signal);
  if (status < 200 || status >= 300) {
    const found = `${status} ${text.slice(0, 400)}`.trim();
    if (refusals.includes(status)) throw demandError("credentials_refused", `${who} refuses our credentials`, { found });
    if (status === 404) throw demandError("missing", `${who} knows nothing at this address`, { found });
    throw demandError("unreachable", `${who} answered with an error`, { found });
  }
  return { text, date };
}

async function ask(
  { url, who, headers = {}, dispatcher, form, bytesMax = ANSWER_BYTES_MAX }: JsonCall,
  signal: AbortSignal,
): Promise<TextAnswer & { readonly status: number }> {
  try {
    const answer = await request(url, {
      method: form === undefined ? "GET" : "POST",
      headers: {
        accept: "application/json",
        ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        ...headers,
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form).toString() }),
      signal,
      ...(dispatcher === undefined ? {} : { dispatcher }),
    });
    const text = await boundedText(answer.body, who, bytesMax);
    const said = answer.headers["date"];
    return { status: answer.statusCode, text, date: typeof said === "string" ? (parseInstant(said) ?? null) : null };
  } catch (error) {
    throw unreachable(who, error, signal);
  }
}

/** Leaving the loop ends the connection: the rest is not read. */
async function boundedText(body: AsyncIterable<Uint8Array>, who: string, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw demandError("unreachable", `the answer of ${who} is larger than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}

function parseJson(text: string, who: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw demandError("type_changed", `the answer of ${who} is no JSON`, { found: showable(text.slice(0, 200)), cause });
  }
}
