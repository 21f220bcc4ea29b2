/**
 * EC2's instance metadata, version 2: each question carries a token, which is asked for again before it ends and when it is refused. A path that is not there
 * says nothing; anything else but an answer in the known form is a failed look.
 */
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { MachineIdentity } from "../../notices/agent-report.ts";
import { EC2_ALL_PATHS, type Ec2Path, readEc2 } from "../../notices/ec2-metadata/read.ts";
import type { Look } from "../../notices/standing.ts";
import type { HttpAnswer, HttpCaller } from "../http.ts";
import { type Cloud, MAX_METADATA_BYTES, METADATA_TIMEOUT_MS, sentenceOf, type Watch } from "./cloud.ts";

export interface Ec2Options {
  readonly http: HttpCaller;
  readonly clock: Clock;
  readonly baseUrl: string;
  readonly everyMs?: number;
  /** The longest that EC2 grants is six hours. */
  readonly tokenTtlSeconds?: number;
}

const EVERY_MS = 5_000;
const TOKEN_TTL_SECONDS = 21_600;
/** Of its life, after which a token is asked for anew. */
const TOKEN_USED_FOR = 2 / 3;

export class Ec2Cloud implements Cloud {
  readonly name = "aws";
  readonly source = "ec2-metadata";
  readonly watches: readonly Watch[];
  readonly #options: Ec2Options;
  #token: { readonly value: string; readonly until: number } | undefined;

  constructor(options: Ec2Options) {
    this.#options = options;
    this.watches = [{ everyMs: options.everyMs ?? EVERY_MS, goneAfter: 3, look: (signal) => this.#look(signal) }];
  }

  async identify(signal: AbortSignal): Promise<MachineIdentity> {
    const [id, zone] = await Promise.all([this.#text("instance-id", signal), this.#text("placement/availability-zone", signal)]);
    if (!/^i-[0-9A-Za-z-]{1,64}$/.test(id) || !/^[a-z0-9-]{1,64}$/.test(zone))
      throw new RelevoError("metadata_odd", "EC2's metadata names no machine.", { found: `${id} in ${zone}` });
    return { providerID: `aws:///${zone}/${id}` };
  }

  async #look(signal: AbortSignal): Promise<readonly Look[]> {
    try {
      await this.#freshToken(signal);
    } catch (error) {
      signal.throwIfAborted();
      return EC2_ALL_PATHS.map((kind) => ({ kind, failed: sentenceOf(error) }));
    }
    return Promise.all(EC2_ALL_PATHS.map((kind) => this.#lookAt(kind, signal)));
  }

  async #lookAt(kind: Ec2Path, signal: AbortSignal): Promise<Look> {
    try {
      const { status, text } = await this.#get(kind, signal);
      if (status === 404) return { kind, said: [] };
      if (status !== 200) return { kind, failed: `${kind}: status ${status}` };
      return { kind, said: readEc2(kind, text) };
    } catch (error) {
      signal.throwIfAborted();
      return { kind, failed: `${kind}: ${sentenceOf(error)}` };
    }
  }

  async #text(path: string, signal: AbortSignal): Promise<string> {
    const { status, text } = await this.#get(path, signal);
    if (status === 200) return text.trim();
    throw new RelevoError("metadata_refused", `EC2's metadata has no ${path}.`, { class: "retryable", found: `status ${status}` });
  }

  /** A token that was refused, as after the machine was moved, is asked for anew, once. */
  async #get(path: string, signal: AbortSignal): Promise<HttpAnswer> {
    const token = await this.#freshToken(signal);
    const answer = await this.#ask(path, token, signal);
    if (answer.status !== 401) return answer;
    if (this.#token?.value === token) this.#token = undefined;
    return this.#ask(path, await this.#freshToken(signal), signal);
  }

  #ask(path: string, token: string, signal: AbortSignal): Promise<HttpAnswer> {
    const { http, baseUrl } = this.#options;
    return http(
      {
        url: `${baseUrl}/latest/meta-data/${path}`,
        headers: { "x-aws-ec2-metadata-token": token },
        timeoutMs: METADATA_TIMEOUT_MS,
        maxBytes: MAX_METADATA_BYTES,
      },
      signal,
    );
  }

  async #freshToken(signal: AbortSignal): Promise<string> {
    const { http, baseUrl, clock, tokenTtlSeconds = TOKEN_TTL_SECONDS } = this.#options;
    const asked = clock.monotonic();
    if (this.#token !== undefined && asked < this.#token.until) return this.#token.value;
    const { status, text } = await http(
      {
        method: "PUT",
        url: `${baseUrl}/latest/api/token`,
        headers: { "x-aws-ec2-metadata-token-ttl-seconds": String(tokenTtlSeconds) },
        timeoutMs: METADATA_TIMEOUT_MS,
        maxBytes: 4_096,
      },
      signal,
    );
    const value = text.trim();
    if (status !== 200 || !/^[\x21-\x7e]{1,1024}$/.test(value))
      throw new RelevoError("metadata_refused", "EC2's metadata gives no token.", { class: "retryable", found: `status ${status}` });
    this.#token = { value, until: asked + tokenTtlSeconds * 1_000 * TOKEN_USED_FOR };
    return value;
  }
}
