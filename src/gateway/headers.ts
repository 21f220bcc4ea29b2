/**
 * What passes a hop and what does not. Request heads are read once from node's flat `[name, value, …]` list, answer heads once from undici's object;
 * both loops are on the path of every request.
 */
import { HEADERS } from "../model/membership.ts";

type Role =
  | "drop"
  | "host"
  | "connection"
  | "length"
  | "transfer"
  | "expect"
  | "token"
  | "cookie"
  | "key"
  | "upgrade"
  | "forwarded-for"
  | "forwarded-proto"
  | "forwarded-host";

/** Hop-by-hop names, and those that only the gateway may set. */
const DROPPED = [
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "http2-settings",
  HEADERS.instance,
  HEADERS.retried,
  HEADERS.queued,
  HEADERS.rejected,
  HEADERS.session,
  HEADERS.notTaken,
  HEADERS.writerEpoch,
] as const;

function table<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T | undefined>> {
  return Object.assign(Object.create(null) as Record<string, T>, entries);
}

const REQUEST_ROLES = table<Role>({
  ...Object.fromEntries(DROPPED.map((name) => [name, "drop" as const])),
  host: "host",
  Host: "host",
  connection: "connection",
  Connection: "connection",
  "content-length": "length",
  "Content-Length": "length",
  "transfer-encoding": "transfer",
  expect: "expect",
  [HEADERS.token]: "token",
  cookie: "cookie",
  "idempotency-key": "key",
  upgrade: "upgrade",
  "x-forwarded-for": "forwarded-for",
  "x-forwarded-proto": "forwarded-proto",
  "x-forwarded-host": "forwarded-host",
});

const ANSWER_DROPPED = table<true>({
  ...Object.fromEntries(DROPPED.map((name) => [name, true as const])),
  connection: true,
  "transfer-encoding": true,
  upgrade: true,
  [HEADERS.token]: true,
});

export interface RequestHead {
  /** For the instance: flat names and values, hop-by-hop ones left out, forwarding ones added. */
  readonly headers: string[];
  readonly host: string | undefined;
  /** -1 when it was not given. */
  readonly contentLength: number;
  readonly chunked: boolean;
  /** More than one `Host`: others on the way may go by another one than we do (RFC 9112 §3.2). */
  readonly namesTwoHosts: boolean;
  /** A transfer coding besides `chunked`, which cannot be passed on. */
  readonly transfersOtherwise: boolean;
  readonly expectsContinue: boolean;
  readonly hasKey: boolean;
  readonly token: string | undefined;
  readonly cookie: string | undefined;
  readonly upgrade: string | undefined;
}

/** `authority` is what HTTP/2 sends instead of a `host`. */
export function readRequestHead(raw: readonly string[], clientAddress: string, authority?: string): RequestHead {
  const headers: string[] = [];
  let host = authority;
  let namesTwoHosts = false;
  let contentLength = -1;
  let chunked = false;
  let transfersOtherwise = false;
  let expectsContinue = false;
  let hasKey = false;
  let token: string | undefined;
  let cookie: string | undefined;
  let upgrade: string | undefined;
  let forwardedFor = clientAddress;
  let proto = "http";
  let forwardedHost: string | undefined;
  let named: string | undefined;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] as string;
    const value = raw[index + 1] as string;
    const role = REQUEST_ROLES[name] ?? REQUEST_ROLES[name.toLowerCase()];
    if (role === undefined) {
      if (name.charCodeAt(0) !== 58) headers.push(name, value);
      continue;
    }
    switch (role) {
      case "drop":
        break;
      case "host":
        if (host !== undefined && authority === undefined) namesTwoHosts = true;
        host ??= value;
        break;
      case "connection":
        if (value !== "keep-alive" && value !== "close") named = named === undefined ? value : `${named},${value}`;
        break;
      case "length":
        contentLength = Number(value);
        break;
      case "transfer":
        chunked = true;
        transfersOtherwise ||= value.toLowerCase() !== "chunked";
        break;
      case "expect":
        expectsContinue = value.toLowerCase() === "100-continue";
        break;
      case "token":
        token = value;
        break;
      case "cookie":
        cookie = cookie === undefined ? value : `${cookie}; ${value}`;
        break;
      case "key":
        hasKey = true;
        headers.push(name, value);
        break;
      case "upgrade":
        upgrade = value;
        break;
      case "forwarded-for":
        forwardedFor = `${value}, ${clientAddress}`;
        break;
      case "forwarded-proto":
        proto = value;
        break;
      case "forwarded-host":
        forwardedHost = value;
        break;
      default:
        role satisfies never;
    }
  }
  if (named !== undefined) dropNamed(headers, named);
  if (cookie !== undefined) headers.push("cookie", cookie);
  if (host !== undefined) headers.push("host", host);
  if (contentLength >= 0) headers.push("content-length", String(contentLength));
  headers.push("x-forwarded-for", forwardedFor, "x-forwarded-proto", proto);
  const shownHost = forwardedHost ?? host;
  if (shownHost !== undefined) headers.push("x-forwarded-host", shownHost);
  return { headers, host, namesTwoHosts, contentLength, chunked, transfersOtherwise, expectsContinue, hasKey, token, cookie, upgrade };
}

/** Names that `Connection` lists concern this hop only. */
function dropNamed(headers: string[], connection: string): void {
  const names = new Set(
    connection
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
  let kept = 0;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] as string;
    if (names.has(name.toLowerCase())) continue;
    headers[kept] = name;
    headers[kept + 1] = headers[index + 1] as string;
    kept += 2;
  }
  headers.length = kept;
}

export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Flat names and values for the client. */
export function answerHeaders(given: AnswerHeaders): string[] {
  const headers: string[] = [];
  const connection = given["connection"];
  for (const name in given) {
    if (ANSWER_DROPPED[name] === true) continue;
    const value = given[name];
    if (typeof value === "string") headers.push(name, value);
    else if (value !== undefined) for (const one of value) headers.push(name, one);
  }
  if (typeof connection === "string" && connection !== "keep-alive" && connection !== "close") dropNamed(headers, connection);
  return headers;
}

/** What the client is told of the way that its request has gone. */
export function addWay(headers: string[], tries: number, queuedMs: number): void {
  if (tries > 1) headers.push(HEADERS.retried, String(tries - 1));
  if (queuedMs > 0) headers.push(HEADERS.queued, String(Math.ceil(queuedMs)));
}

/** The first value of a header, or undefined. */
export function firstValue(headers: AnswerHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : value?.[0];
}

const IDEMPOTENT = table<true>({ GET: true, HEAD: true, OPTIONS: true, PUT: true, DELETE: true, TRACE: true });

/** By RFC 9110 §9.2.2, or because the client gave it a key. */
export function isIdempotent(method: string, head: RequestHead): boolean {
  return head.hasKey || IDEMPOTENT[method] === true;
}

/** `a.example.com:8080` → `a.example.com`; IPv6 literals keep their brackets. */
export function hostName(host: string): string {
  const name = host.startsWith("[") ? host.slice(0, host.indexOf("]") + 1) : (host.split(":", 1)[0] ?? "");
  return name.toLowerCase();
}

/** Names that come more than once get arrays, as node's object forms want them. */
export function flatToObject(flat: readonly string[]): Record<string, string | string[]> {
  // Without a prototype: `constructor` is a name like any other.
  const object = Object.create(null) as Record<string, string | string[]>;
  for (let index = 0; index + 1 < flat.length; index += 2) {
    const name = flat[index] as string;
    const value = flat[index + 1] as string;
    const known = object[name];
    object[name] = known === undefined ? value : Array.isArray(known) ? [...known, value] : [known, value];
  }
  return object;
}
