/** What the gateway reads and changes in the head of a request to a Trino cluster. */

export interface TrinoHeaders {
  readonly group: string | undefined;
  readonly user: string | undefined;
  readonly source: string | undefined;
  /** Undefined when there is none, or `NONE`. Of several only the first would count, so that they are told apart. */
  readonly transaction: string | "several" | undefined;
  /** Where the client believes the server to be, as the cluster is told: `http://host:port`. */
  readonly base: string;
}

interface Found {
  group?: string;
  user?: string;
  source?: string;
  transaction?: string;
  host?: string;
  proto?: string;
  port?: string;
}

const NAMES: Readonly<Record<string, keyof Found | undefined>> = {
  "x-trino-routing-group": "group",
  "x-trino-user": "user",
  "x-trino-source": "source",
  "x-trino-transaction-id": "transaction",
  "x-forwarded-host": "host",
  "x-forwarded-proto": "proto",
  "x-forwarded-port": "port",
};

/** Named, and not with a weight of zero. */
const TAKES_GZIP = /(?:^|,)\s*gzip\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)/i;

/**
 * Changes `headers` in place: the port is added that the addresses in answers shall have (the host's and the scheme's stand there already), and what the answer
 * may be compressed with is narrowed to what can be read here.
 */
export function readTrinoHeaders(headers: string[]): TrinoHeaders {
  const found: Found = {};
  let several = false;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = (headers[index] as string).toLowerCase();
    const value = headers[index + 1] as string;
    if (name === "accept-encoding") headers[index + 1] = TAKES_GZIP.test(value) ? "gzip" : "identity";
    const known = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
    if (known === undefined) continue;
    if (known === "transaction" && found.transaction !== undefined) several = true;
    found[known] ??= value.trim();
  }
  const { transaction } = found;
  const host = first(found.host) ?? "localhost";
  const proto = first(found.proto) ?? "http";
  if (found.port === undefined) headers.push("x-forwarded-port", portOf(host) ?? (proto === "https" ? "443" : "80"));
  return {
    group: found.group === "" ? undefined : found.group,
    user: found.user,
    source: found.source,
    transaction: several ? "several" : isNone(transaction) ? undefined : transaction,
    base: `${proto}://${host}`,
  };
}

/** Puts `value` in place of what each header of that name (lower case) says. */
export function replaceHeader(headers: string[], name: string, value: string): void {
  for (let index = 0; index + 1 < headers.length; index += 2)
    if ((headers[index] as string).toLowerCase() === name) headers[index + 1] = value;
}

export function removeHeader(headers: string[], name: string): void {
  for (let index = headers.length - 2; index >= 0; index -= 2)
    if ((headers[index] as string).toLowerCase() === name) headers.splice(index, 2);
}

function isNone(transaction: string | undefined): boolean {
  return transaction === undefined || transaction === "" || transaction.toUpperCase() === "NONE";
}

/** Proxies in front of this one may have made a list of it. */
function first(value: string | undefined): string | undefined {
  const one = value?.split(",", 1)[0]?.trim();
  return one === "" ? undefined : one;
}

function portOf(host: string): string | undefined {
  return /:(\d{1,5})$/.exec(host)?.[1];
}
