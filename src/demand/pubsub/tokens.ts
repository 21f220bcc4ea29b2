/**
 * Who we are to Google: an access token of the machine's own identity, or one that is had for a JWT signed with a service account's key (RFC 7523). It is kept
 * until shortly before it ends, and asked for once for all who wait.
 */
import { sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import type { ConnectionOf } from "../connections.ts";
import { endedBy } from "../ended-by.ts";
import { demandError } from "../errors.ts";
import { fetchJson } from "../http-json.ts";

const SCOPE = "https://www.googleapis.com/auth/monitoring.read";
const TOKEN_URI = "https://oauth2.googleapis.com/token";
/** As Google's own libraries name it. */
const METADATA_HOST_VARIABLE = "GCE_METADATA_HOST";
const METADATA_HOST = "metadata.google.internal";
const FETCH_LIMIT_MS = 10_000;
const EARLY_MS = 300_000;
const LONGEST_S = 3_600;
/** Our clock may be ahead: a token from the future is refused. */
const BACKDATED_S = 300;

interface Token {
  readonly value: string;
  /** Monotonic. */
  readonly goodUntil: number;
}

export class AccessTokens {
  readonly #auth: ConnectionOf<"google-monitoring">["auth"];
  readonly #clock: Clock;
  readonly #who: string;
  #token: Token | undefined;
  #fetching: Promise<Token> | undefined;

  constructor({ auth, name }: ConnectionOf<"google-monitoring">, clock: Clock) {
    this.#auth = auth;
    this.#clock = clock;
    this.#who = `Google's tokens (connection ${name})`;
  }

  /** Undefined: nobody asks who we are. Throws `demand_credentials_refused` or `demand_unreachable`. */
  async current(signal: AbortSignal): Promise<string | undefined> {
    if (this.#auth === "none") return undefined;
    if (this.#token !== undefined && this.#clock.monotonic() < this.#token.goodUntil) return this.#token.value;
    // Not by the caller's signal: others wait for the same one.
    this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined));
    this.#token = await endedBy(signal, this.#fetching, this.#who);
    return this.#token.value;
  }

  /** It was not taken: the next is a new one. */
  refused(): void {
    this.#token = undefined;
  }

  async #fetch(): Promise<Token> {
    const limit = new AbortController();
    const timer = this.#clock.after(FETCH_LIMIT_MS, () => limit.abort());
    try {
      const body = this.#auth === "metadata" ? await this.#ofMachine(limit.signal) : await this.#ofKey(limit.signal);
      const answer = tokenSchema.safeParse(body);
      if (!answer.success) throw demandError("credentials_refused", `${this.#who}: the answer is no token`);
      const { access_token: value, expires_in: seconds } = answer.data;
      return { value, goodUntil: this.#clock.monotonic() + Math.min(seconds, LONGEST_S) * 1_000 - EARLY_MS };
    } finally {
      timer.cancel();
    }
  }

  async #ofMachine(signal: AbortSignal): Promise<unknown> {
    const host = process.env[METADATA_HOST_VARIABLE] ?? METADATA_HOST;
    const url = new URL(`http://${host}/computeMetadata/v1/instance/service-accounts/default/token`);
    url.searchParams.set("scopes", SCOPE);
    return (await fetchJson({ url, who: `${this.#who}: the metadata server`, headers: { "metadata-flavor": "Google" } }, signal)).body;
  }

  async #ofKey(signal: AbortSignal): Promise<unknown> {
    const { keyFile } = this.#auth as { readonly keyFile: string };
    const key = await readKey(keyFile, this.#who);
    const assertion = signedJwt(key, Math.floor(this.#clock.now() / 1_000), this.#who);
    const form = { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion };
    // Google answers 400 for a key that it does not know.
    return (await fetchJson({ url: new URL(key.token_uri), who: this.#who, form, refusals: [400, 401, 403] }, signal)).body;
  }
}

const tokenSchema = z.object({ access_token: z.string().min(1), expires_in: z.number().positive() });

const keySchema = z.object({
  type: z.literal("service_account"),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.url().default(TOKEN_URI),
});
type Key = z.output<typeof keySchema>;

/** Read each time, so that it can be exchanged. */
async function readKey(path: string, who: string): Promise<Key> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw demandError("credentials_refused", `${who}: the key file cannot be read`, { found: (cause as Error).message, cause });
  }
  const parsed = keySchema.safeParse(jsonOf(text));
  // Not what was found: it is a secret.
  if (!parsed.success)
    throw demandError("credentials_refused", `${who}: ${path} is no key of a service account`, {
      allowed: "the JSON that Google gives out for one",
    });
  return parsed.data;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function signedJwt(key: Key, now: number, who: string): string {
  const header = { alg: "RS256", typ: "JWT", ...(key.private_key_id === undefined ? {} : { kid: key.private_key_id }) };
  const iat = now - BACKDATED_S;
  const claims = { iss: key.client_email, scope: SCOPE, aud: key.token_uri, iat, exp: iat + LONGEST_S };
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  try {
    return `${signed}.${sign("RSA-SHA256", Buffer.from(signed), key.private_key).toString("base64url")}`;
  } catch {
    throw demandError("credentials_refused", `${who}: the private key in the key file is none`);
  }
}
