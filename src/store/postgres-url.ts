/** What a `postgresql://` URL says: where, as whom, how encrypted, and with what limits. What it does not say is safe: encrypted and verified unless on this machine. */
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { RelevoError } from "../kernel/errors.ts";

export interface TlsOptions {
  /** False: encrypted, but to whomever. */
  readonly rejectUnauthorized: boolean;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Present: the certificate is verified, the host's name is not. */
  readonly checkServerIdentity?: () => undefined;
}

export interface PostgresTarget {
  /** A name, an address, or the folder of a socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Undefined: PGPASSWORD, or the file of PGPASSFILE. */
  readonly password: string | undefined;
  readonly tls: false | TlsOptions;
  /** In which the tables are. */
  readonly schema: string;
  readonly applicationName: string;
  /** Connections at most. */
  readonly poolSize: number;
  /** For a connection, free or new. */
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** The URL as it may be shown: no password, no parameters. */
  readonly where: string;
}

const PARAMETERS = [
  "host",
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "schema",
  "application_name",
  "pool_size",
  "connect_timeout_ms",
  "statement_timeout_ms",
  "lock_timeout_ms",
];
const SSL_MODES = ["disable", "require", "verify-ca", "verify-full"] as const;
/** Ours goes into SQL as it is. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1|\/.*)$/;
const DEFAULT_PORT = 5432;

/** Errors: `store_url_invalid`, which never shows the password. */
export function parsePostgresUrl(text: string): PostgresTarget {
  const url = parse(text);
  const parameters = new Map(url.searchParams);
  for (const name of parameters.keys())
    if (!PARAMETERS.includes(name)) throw invalid(`the parameter ${name} is not known`, name, PARAMETERS.join(", "));
  const host = parameters.get("host") ?? (unbracketed(url.hostname) || "localhost");
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  const user = decoded(url.username) || (process.env["PGUSER"] ?? userInfo().username);
  const database = decoded(url.pathname.slice(1)) || user;
  const schema = parameters.get("schema") ?? "relevo";
  if (!SCHEMA.test(schema)) throw invalid("the name of the schema is not usable", schema, "lower-case letters, digits and underscores");
  return {
    host,
    port,
    database,
    user,
    password: url.password === "" ? undefined : decoded(url.password),
    tls: tlsOf(parameters, host),
    schema,
    applicationName: parameters.get("application_name") ?? "relevo",
    poolSize: numberIn(parameters, "pool_size", 10, 1, 200),
    connectTimeoutMs: numberIn(parameters, "connect_timeout_ms", 3_000, 100, 60_000),
    statementTimeoutMs: numberIn(parameters, "statement_timeout_ms", 5_000, 100, 600_000),
    lockTimeoutMs: numberIn(parameters, "lock_timeout_ms", 3_000, 50, 600_000),
    where: `postgresql://${host}:${port}/${database}?schema=${schema}`,
  };
}

/** As the files are now; while one of them is being exchanged, as they were. */
export function tlsAgain(text: string, former: TlsOptions): TlsOptions {
  try {
    return parsePostgresUrl(text).tls || former;
  } catch {
    return former; // the server refuses it when it does not do any more, and that is told
  }
}

function parse(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw invalid("it is no URL", undefined, "postgresql://user@host:5432/database"); // the text may hold a password: it is not shown
  }
}

function tlsOf(parameters: ReadonlyMap<string, string>, host: string): false | TlsOptions {
  const mode = parameters.get("sslmode") ?? (LOOPBACK.test(host) ? "disable" : "verify-full");
  if (!isSslMode(mode)) throw invalid("the sslmode is not known", mode, SSL_MODES.join(", "));
  if (mode === "disable") return false;
  const file = (name: string) => {
    const path = parameters.get(name);
    return path === undefined ? undefined : read(name, path);
  };
  const [ca, cert, key] = [file("sslrootcert"), file("sslcert"), file("sslkey")];
  return {
    rejectUnauthorized: mode !== "require",
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(mode === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
  };
}

function isSslMode(mode: string): mode is (typeof SSL_MODES)[number] {
  return (SSL_MODES as readonly string[]).includes(mode);
}

function read(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw invalid(`the file of ${name} cannot be read`, path, "a file in PEM form", cause);
  }
}

function numberIn(parameters: ReadonlyMap<string, string>, name: string, otherwise: number, least: number, most: number): number {
  const text = parameters.get(name);
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < least || value > most) throw invalid(`${name} is out of range`, text, `${least} to ${most}`);
  return value;
}

function unbracketed(host: string): string {
  return host.startsWith("[") ? host.slice(1, -1) : decoded(host);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("a percent sign stands alone", undefined, "%25 for a percent sign");
  }
}

function invalid(why: string, found: unknown, allowed: string, cause?: unknown): RelevoError {
  return new RelevoError("store_url_invalid", `the URL of the store cannot be used: ${why}`, { found, allowed, cause });
}
